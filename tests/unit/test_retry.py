"""Backoff at every attempt, its stored form, and what an attempt's end leads to."""

import logging
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq.retry import DEFAULT_BACKOFF, Backoff, Discard, NextState, Retry, Snooze, next_state
from taskq.state import State

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MIDDLE: Callable[[], float] = lambda: 0.5  # noqa: E731 (a constant chance)

strategies = st.builds(
    lambda make, base, cap: make(base, cap),
    st.sampled_from([Backoff.exponential, Backoff.fibonacci, Backoff.fixed]),
    st.timedeltas(timedelta(milliseconds=1), timedelta(days=400)),
    st.timedeltas(timedelta(0), timedelta(days=400)),
)
attempts = st.one_of(st.integers(1, 100), st.sampled_from([1000, 10**6, 2**63, 10**30]))
chances = st.floats(0, 1, exclude_max=True)


def nominal(backoff: Backoff, *upto: int) -> list[int]:
    return [backoff.nominal_ms(attempt) for attempt in upto]


def test_exponential_doubles_from_the_first_failure() -> None:
    assert nominal(Backoff.exponential(base=2, cap="1h"), 1, 2, 3, 4) == [2000, 4000, 8000, 16_000]
    assert nominal(Backoff.exponential(base=2, cap="5s"), 1, 2, 3, 4) == [2000, 4000, 5000, 5000]


def test_fibonacci_adds_up() -> None:
    assert nominal(Backoff.fibonacci(base=1), 1, 2, 3, 4, 5, 6) == [1000, 2000, 3000, 5000, 8000, 13_000]
    assert nominal(Backoff.fibonacci(base=1, cap="6s"), 4, 5, 6) == [5000, 6000, 6000]


def test_fixed_stays() -> None:
    assert nominal(Backoff.fixed("10s"), 1, 2, 1000) == [10_000] * 3
    assert nominal(Backoff.fixed("10s", cap="4s"), 1, 2) == [4000, 4000]
    assert Backoff.fixed(0).delay_ms(1) == 0


def test_defaults() -> None:
    assert (DEFAULT_BACKOFF.base_ms, DEFAULT_BACKOFF.cap_ms, DEFAULT_BACKOFF.strategy) == (
        15_000,
        HOUR_MS,
        "exponential",
    )
    assert Backoff.exponential() == Backoff.exponential(2, "24h")
    assert Backoff.fibonacci() == Backoff.fibonacci(1, "24h")
    assert DEFAULT_BACKOFF.jitter


@pytest.mark.parametrize("make", [Backoff.exponential, Backoff.fibonacci])
@pytest.mark.parametrize("attempt", [33, 64, 1000, 10**6, 10**100])
def test_late_attempts_wait_the_cap(make: Callable[[], Backoff], attempt: int) -> None:
    backoff = make()
    assert backoff.nominal_ms(attempt) == DAY_MS
    assert 0.6 * DAY_MS <= backoff.delay_ms(attempt) <= DAY_MS


@given(strategies, attempts, chances)
def test_a_delay_is_never_negative_and_never_above_the_cap(backoff: Backoff, attempt: int, chance: float) -> None:
    assert 0 <= backoff.delay_ms(attempt, random=lambda: chance) <= backoff.cap_ms


@given(strategies, attempts, chances)
def test_jitter_is_a_fifth_and_at_the_cap_60_to_100_percent(backoff: Backoff, attempt: int, chance: float) -> None:
    plain, delay = backoff.nominal_ms(attempt), backoff.delay_ms(attempt, random=lambda: chance)
    low, high = (0.6, 1.0) if plain == backoff.cap_ms else (0.8, 1.2)
    assert plain * low - 1 <= delay <= plain * high + 1


@given(strategies, st.integers(1, 200))
def test_a_later_attempt_never_waits_less(backoff: Backoff, attempt: int) -> None:
    assert backoff.nominal_ms(attempt) <= backoff.nominal_ms(attempt + 1) <= backoff.cap_ms


def test_jitter_reaches_both_ends_evenly() -> None:
    below, at = Backoff.fixed(10), Backoff.fixed(10, cap=10)
    assert [below.delay_ms(1, random=lambda c=c: c) for c in (0.0, 0.5, 0.999999)] == [8000, 10_000, 12_000]
    assert [at.delay_ms(1, random=lambda c=c: c) for c in (0.0, 0.5, 0.999999)] == [6000, 8000, 10_000]
    # Near the cap the range ends there instead of piling jobs up on it.
    near = Backoff.fixed(10, cap=11)
    assert [near.delay_ms(1, random=lambda c=c: c) for c in (0.0, 0.5, 0.999999)] == [8000, 9500, 11_000]


def test_at_the_cap_jobs_spread() -> None:
    delays = {DEFAULT_BACKOFF.delay_ms(1000) for _ in range(200)}
    assert len(delays) > 100


def test_without_jitter() -> None:
    assert [Backoff.exponential(2, jitter=False).delay_s(n) for n in (1, 2, 3)] == [2.0, 4.0, 8.0]


def test_attempt_zero_waits_as_the_first() -> None:
    assert nominal(Backoff.exponential(2), 0, -5) == [2000, 2000]
    assert nominal(Backoff.fibonacci(2), 0, -5) == [2000, 2000]


def test_a_callable_decides() -> None:
    seen = []

    def wait(attempt: int, error: BaseException | None) -> int:
        seen.append((attempt, error))
        return attempt * 10

    error = OSError("disk full")
    assert Backoff.of(wait).delay_ms(3, error) == 30_000
    assert seen == [(3, error)]
    assert Backoff.of(lambda _attempt, _error: "1m").delay_s(1) == 60.0


@pytest.mark.parametrize("answer", [-1, None, float("nan"), "soon", OSError("broken")])
def test_a_callable_that_fails_costs_no_retry(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    def wait(_attempt: int, _error: BaseException | None) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with caplog.at_level(logging.ERROR, "taskq.retry"):
        assert Backoff.of(wait).delay_ms(2, random=MIDDLE) == DEFAULT_BACKOFF.delay_ms(2, random=MIDDLE)
    assert "the default backoff is used" in caplog.text


@pytest.mark.parametrize(
    "wrong, words",
    [
        (5, "is none: give Backoff"),
        ("5s", "is none"),
        (None, "is none"),
        (Backoff, "is none"),
        (Backoff.exponential, r"call it: backoff=Backoff\.exponential\("),
    ],
)
def test_refuses_what_is_no_backoff(wrong: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Backoff.of(wrong)


@pytest.mark.parametrize("make", [Backoff.exponential, Backoff.fibonacci])
def test_refuses_a_base_that_never_grows(make: Callable[..., Backoff]) -> None:
    with pytest.raises(ValueError, match="never grows"):
        make(base=0)
    with pytest.raises(ValueError, match=r"^base=-1 is negative"):
        make(base=-1)
    with pytest.raises(ValueError, match=r"^cap='x' is no duration"):
        make(cap="x")


def test_spec() -> None:
    assert DEFAULT_BACKOFF.spec() == "exponential:15000:3600000"
    assert Backoff.fixed(5, jitter=False).spec() == "fixed:5000:86400000:exact"
    with pytest.raises(ValueError, match="can't be stored with a job"):
        Backoff.of(lambda _attempt, _error: 1).spec()


@given(strategies, st.booleans())
def test_a_spec_reads_back(backoff: Backoff, jitter: bool) -> None:
    whole = Backoff(backoff.strategy, backoff.base_ms, backoff.cap_ms, jitter)
    assert Backoff.from_spec(whole.spec()) == whole


def test_a_strategy_of_a_later_version_waits_exponentially() -> None:
    assert Backoff.from_spec("polynomial:2000:9000") == Backoff.exponential(2, 9)


@pytest.mark.parametrize("damaged", ["", "exponential", "exponential:1", "fixed:-1:5", "fixed:1:5:x", "f" * 5000])
def test_a_damaged_spec_is_refused(damaged: str) -> None:
    with pytest.raises(ValueError, match="is no backoff"):
        Backoff.from_spec(damaged)


@given(st.text(max_size=40) | st.from_regex(r"[a-z]{1,12}:[0-9]{1,14}:[0-9]{1,14}(:exact)?"), attempts)
def test_no_stored_text_breaks_a_retry(spec: str, attempt: int) -> None:
    try:
        backoff = Backoff.from_spec(spec)
    except ValueError:
        return
    assert 0 <= backoff.delay_ms(attempt) <= backoff.cap_ms


# --- what an attempt's end leads to -------------------------------------------


def test_success_completes() -> None:
    assert next_state(1, 3) == NextState(State.COMPLETED)
    assert next_state(3, 3) == NextState(State.COMPLETED)


def test_an_error_is_retried_while_attempts_are_left() -> None:
    told = [next_state(attempt, 3, OSError(), random=MIDDLE) for attempt in (1, 2, 3, 4)]
    assert told == [
        NextState(State.RETRYABLE, 15_000),
        NextState(State.RETRYABLE, 30_000),
        NextState(State.FAILED, reason="attempts exhausted (3 of 3)"),
        NextState(State.FAILED, reason="attempts exhausted (4 of 3)"),
    ]


@pytest.mark.parametrize("unset", [0, -1])
def test_no_maximum_is_read_as_three(unset: int) -> None:
    assert next_state(2, unset, OSError()).state is State.RETRYABLE
    assert next_state(3, unset, OSError()).state is State.FAILED


@given(st.integers(1, 50))
def test_the_maximum_is_exactly_the_number_of_runs(max_attempts: int) -> None:
    runs = 1
    while next_state(runs, max_attempts, OSError()).state is State.RETRYABLE:
        runs += 1
    assert runs == max_attempts


def test_the_tasks_backoff_is_asked_with_the_error() -> None:
    backoff = Backoff.of(lambda attempt, error: 60 * attempt if isinstance(error, OSError) else 1)
    assert next_state(2, 5, OSError(), backoff=backoff).delay_ms == 120_000
    assert next_state(2, 5, ValueError(), backoff=backoff).delay_ms == 1000


def test_retry_brings_its_own_delay_and_counts() -> None:
    assert next_state(1, 3, Retry("5m")) == NextState(State.RETRYABLE, 300_000)
    assert next_state(1, 3, Retry(0)) == NextState(State.RETRYABLE, 0)
    assert next_state(1, 3, Retry(), random=MIDDLE) == NextState(State.RETRYABLE, 15_000)
    assert next_state(3, 3, Retry("5m")).state is State.FAILED


def test_snooze_costs_no_attempt() -> None:
    assert next_state(3, 3, Snooze("10s")) == NextState(State.SCHEDULED, 10_000, refund=True)


def test_discard_fails_at_once() -> None:
    assert next_state(1, 3, Discard("no such user")) == NextState(State.FAILED, reason="no such user")
    assert next_state(1, 3, Discard()).reason == "the task discarded the job"


class Mute(Discard):
    def __str__(self) -> str:
        raise RuntimeError


def test_discard_fails_at_once_whatever_it_was_given() -> None:
    given: Any = ValueError("no such user")
    assert next_state(1, 3, Discard(given)).reason == "no such user"
    assert next_state(1, 3, Discard(given.args)).reason == "('no such user',)"
    assert next_state(1, 3, Mute()) == NextState(State.FAILED, reason="the task discarded the job")
    assert str(Retry(reason=given)) == str(Snooze(1, given)) == "no such user"


def test_a_callable_that_cannot_be_called_so_is_refused_where_it_is_given() -> None:
    wrong: Any = lambda attempt: 1  # noqa: E731
    with pytest.raises(ValueError, match=r"backoff= takes \(attempt\), and is called with \(attempt, error\): "):
        Backoff.of(wrong)
    Backoff.of(lambda attempt, error, more=1: 1)
    Backoff.of(lambda *given: 1)

    def odd(attempt: int, error: Any) -> int:
        return 1

    odd.__signature__ = "none"  # type: ignore[attr-defined]
    assert Backoff.of(odd).function is odd


@pytest.mark.parametrize("raised", [Retry("5m", "busy"), Retry(), Snooze(5), Discard("why"), Discard()])
def test_they_say_what_they_ask_and_survive_a_pickle(raised: Exception) -> None:
    again = pickle.loads(pickle.dumps(raised))  # noqa: S301 (our own bytes)
    assert str(again) == str(raised) != ""
    assert vars(again) == vars(raised)


def test_their_delays_are_checked_where_they_are_raised() -> None:
    with pytest.raises(ValueError, match=r"^Retry\(delay\)=-1 is negative"):
        Retry(-1)
    with pytest.raises(ValueError, match=r"^Snooze\(delay\)='x' is no duration"):
        Snooze("x")
