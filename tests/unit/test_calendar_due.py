"""What fires now: on time, after an outage, with jitter, with a last run; and nothing twice or for ever."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskq.calendar import ON_TIME_MS, cron, due, every, fires_at, next_after, next_times

MINUTE = 60_000
NOON = 1_767_268_800_000  # 2026-01-01T12:00:00Z
HOURS_6 = 6 * 60 * MINUTE


def test_a_time_that_has_just_come_fires_and_the_next_is_told():
    rule = cron("* * * * *")
    assert due(rule, NOON - 1, NOON) == ((NOON,), NOON + MINUTE)
    assert due(rule, NOON, NOON + 1) == ((), NOON + MINUTE)
    assert due(rule, NOON, NOON + MINUTE - 1) == ((), NOON + MINUTE)


@pytest.mark.parametrize("missed", ["skip", "latest", "all"])
def test_a_change_of_leaders_loses_and_heaps_up_nothing(missed):
    """Less than `ON_TIME_MS` isn't an outage, whatever the policy: each second has its firing."""
    rule = every("1s", missed=missed)
    times, next_ms = due(rule, NOON, NOON + 8_000)
    assert times == tuple(range(NOON + 1000, NOON + 8001, 1000))
    assert next_ms == NOON + 9000


def test_missed_is_what_readme_says_it_is():
    """Two times of `every("3s")` in 6 s without a leader are late; one that waited for more than 15 s is an outage."""
    rule = every("3s")
    assert rule.missed == "latest"
    assert due(rule, NOON, NOON + 6_000).times == (NOON + 3_000, NOON + 6_000)
    assert due(rule, NOON, NOON + 21_000).times == (NOON + 21_000,)
    readme = Path(__file__).parents[2] / "README.md"
    assert f"when some time is late by more than {ON_TIME_MS // 1000} s: the newest alone" in readme.read_text()


@pytest.mark.parametrize(
    "missed, back_after, count",
    [
        ("skip", 5_000, 1),
        ("skip", 30_000, 0),
        ("latest", 5_000, 1),
        ("latest", 30_000, 1),
        ("unsaid", 30_000, 1),
        ("all", 30_000, 100),
    ],
)
def test_six_hours_without_a_leader(missed, back_after, count):
    rule = cron("* * * * *", **({} if missed == "unsaid" else {"missed": missed}))
    now = NOON + HOURS_6 + back_after
    times, next_ms = due(rule, NOON, now)
    assert times == tuple(NOON + HOURS_6 - MINUTE * back for back in reversed(range(count)))
    assert next_ms == NOON + HOURS_6 + MINUTE


def test_all_means_all_within_the_limit():
    rule = cron("* * * * *", missed="all")
    assert len(due(rule, NOON, NOON + HOURS_6, 360).times) == 360
    assert due(rule, NOON, NOON + HOURS_6, 1).times == (NOON + HOURS_6,)
    assert due(rule, NOON, NOON + HOURS_6, 0) == ((), NOON + HOURS_6 + MINUTE)


def test_a_year_of_seconds_costs_no_walk_through_them():
    year_later = NOON + 365 * 24 * 60 * MINUTE
    for rule in (cron("* * * * * *", missed="all"), every("1s", missed="all"), cron("* * * 2 3 *", missed="all")):
        times, next_ms = due(rule, NOON, year_later)
        assert len(times) == 100
        assert next_ms is not None
        assert list(times) == sorted(set(times))
        assert next_after(rule, times[-1]) == next_ms > year_later


def test_a_clock_set_back_fires_nothing_again():
    rule = cron("* * * * *", missed="all")
    assert due(rule, NOON, NOON - HOURS_6) == ((), NOON + MINUTE)


def test_a_rule_due_in_the_past_is_over():
    rule = cron("@daily", end="2020-01-01T00:00:00Z")
    assert due(rule, NOON, NOON + HOURS_6) == ((), None)
    assert due(every("1h", end="2026-01-01T12:00:00Z"), NOON - 1, NOON) == ((NOON,), None)


def test_the_last_run_is_the_last():
    rule = every("1s", max_runs=5)
    assert due(rule, NOON, NOON + 2000, runs=2) == ((NOON + 1000, NOON + 2000), NOON + 3000)
    assert due(rule, NOON, NOON + 3000, runs=2) == ((NOON + 1000, NOON + 2000, NOON + 3000), None)
    assert due(rule, NOON, NOON + 3000, runs=5) == ((), None)
    assert due(rule, NOON, NOON + 3000, runs=9) == ((), None)


# --- jitter


def test_jitter_is_the_same_everywhere_and_spreads():
    rule = cron("@hourly", jitter="10m")
    assert fires_at(rule, "report", NOON) == NOON + 45_945  # a stored fact: every version must say the same
    waits = [fires_at(rule, f"s{number}", NOON) - NOON for number in range(500)]
    assert 0 <= min(waits) < 30_000
    assert 570_000 < max(waits) <= 600_000
    assert 250_000 < sum(waits) / 500 < 350_000


def test_without_jitter_it_fires_at_its_time():
    assert fires_at(cron("@hourly"), "report", NOON) == NOON


def test_jitter_ends_before_the_next_time():
    rule = cron("* * * * * *", jitter="1h")
    times = next_times(rule, 5000, after_ms=NOON)
    assert all(earlier <= fires_at(rule, "x", earlier) < later for earlier, later in pairwise(times))


def test_a_jittered_time_is_due_when_it_fires():
    rule = cron("@hourly", jitter="10m")
    fires = fires_at(rule, "report", NOON)
    assert due(rule, NOON - 1, fires - 1, name="report") == ((), NOON)
    assert due(rule, NOON - 1, fires, name="report") == ((NOON,), NOON + 60 * MINUTE)
    # Its wait isn't lateness: it is on time though ten minutes have passed.
    assert due(cron("@hourly", jitter="10m", missed="skip"), NOON - 1, fires + 1, name="report").times == (NOON,)


# --- any history


@given(
    rule=st.sampled_from(
        [
            every("7s", missed="all"),
            cron("*/13 * * * * *", missed="all", jitter="9s"),
            cron("* * * * *", missed="all", tz="Australia/Lord_Howe"),
            every("90s", start="2026-01-01T12:00:31Z", missed="all", jitter="80s"),
        ]
    ),
    waits=st.lists(st.integers(-30_000, 120_000), max_size=30),
)
@settings(max_examples=60, deadline=None)
def test_each_time_once_however_the_leader_looks(rule, waits):
    """Calls at any moments, the clock set back between some: together they fire each time exactly once, in order."""
    now, after, fired = NOON, NOON, []
    for wait in waits:
        now += wait
        times, next_ms = due(rule, after, now, 1000, name="x")
        fired += times
        after = times[-1] if times else after
        assert next_ms is not None
        assert fires_at(rule, "x", next_ms) > now
        assert all(fires_at(rule, "x", time) <= now for time in times)
    assert tuple(fired) == next_times(rule, len(fired), after_ms=NOON)


@given(
    late=st.integers(0, 10**9),
    limit=st.integers(1, 20),
    expression=st.sampled_from(["*/3 * * * *", "0 */5 * * *", "30 2 * * *", "0 0 1 * *", "*/20 * 3 * * *"]),
    missed=st.sampled_from(["skip", "latest", "all"]),
)
@settings(max_examples=100, deadline=None)
def test_an_outage_gives_the_newest_and_settles_the_rest(late, limit, expression, missed):
    rule = cron(expression, tz="America/Havana", missed=missed)
    now = NOON + late
    times, next_ms = due(rule, NOON, now, limit)
    assert next_ms is not None
    assert next_ms > now
    everything = [time for time in next_times(rule, 3 * limit, after_ms=times[0] - 1 if times else now) if time <= now]
    assert list(times) == everything
    assert next_after(rule, times[-1] if times else now) == next_ms
    first = next_after(rule, NOON)
    if missed != "all" and first is not None and first < now - ON_TIME_MS:
        assert len(times) <= 1
    if missed != "skip" and first is not None and first <= now:
        assert times
