"""Options: what each takes and refuses, how layers merge, and what is stored with a job."""

import copy
import json
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq.options import Options, declare, heard, merge, stored_fields, told
from taskq.retry import DEFAULT_BACKOFF, Backoff

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)
NOON_MS = 1_896_091_200_000

LATER = "after on_parent_failed"
TASK_LATER = (
    "aliases retry_on discard_on retry_until before_run after_run before_retry on_failure middleware"
    " memory_limit capture"
)

GOOD: list[tuple[str, Any, str, Any]] = [
    ("queue", "email", "queue", "email"),
    ("priority", 0, "priority", 0),
    ("priority", -512, "priority", -512),
    ("priority", 511, "priority", 511),
    ("delay", "1m", "delay_ms", 60_000),
    ("delay", 0, "delay_ms", 0),
    ("delay", timedelta(seconds=2), "delay_ms", 2000),
    ("at", NOON, "at_ms", NOON_MS),
    ("expires", "1m", "expires", "+60000"),
    ("expires", NOON, "expires", str(NOON_MS)),
    ("max_attempts", 1, "max_attempts", 1),
    ("max_attempts", 1000, "max_attempts", 1000),
    ("backoff", DEFAULT_BACKOFF, "backoff", DEFAULT_BACKOFF),
    ("timeout", 30, "timeout_ms", 30_000),
    ("timeout", 0, "timeout_ms", 0),
    ("hard_timeout", "2m", "hard_timeout_ms", 120_000),
    ("tags", ["a", "b", "a"], "tags", ("a", "b")),
    ("tags", (), "tags", ()),
    ("tags", {"é" * 128}, "tags", ("é" * 128,)),
    ("meta", {"request_id": "7"}, "meta", {"request_id": "7"}),
    ("id", "order-7.2_X", "id", "order-7.2_X"),
    ("keep", 0, "keep_ms", 0),
    ("keep_result", "5m", "keep_result_ms", 300_000),
    ("on_lease_lost", "fail", "on_lease_lost", "fail"),
    ("labels", {"gpu": "a100"}, "labels", {"gpu": "a100"}),
    ("resources", {"cpu": 0.5, "memory": "1KiB", "gpu": 0}, "takes", {"cpu": 500, "memory": 1_024_000}),
    ("target", "web-1", "target", "web-1"),
    ("strict", True, "strict", True),
    ("on_target_lost", "fail", "on_target_lost", "fail"),
]


@pytest.mark.parametrize("name, given, field, value", GOOD)
def test_each_option_is_read(name: str, given: Any, field: str, value: Any) -> None:
    options = Options(**{name: given})  # type: ignore[misc]
    assert getattr(options, field) == value
    assert declare({name: given}).options == options


@pytest.mark.parametrize("name", sorted({name for name, *_ in GOOD}))
def test_none_says_nothing(name: str) -> None:
    assert Options(**{name: None}) == Options()  # type: ignore[misc]


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"queue": "E-Mail"}, "queue='E-Mail' is no name"),
        ({"queue": ""}, "queue='' is no name"),
        ({"priority": 512}, "priority=512 is out of range: give an integer from -512 to 511"),
        ({"priority": 1.5}, "priority=1.5 is out of range"),
        ({"priority": True}, "priority=True is out of range"),
        ({"delay": -1}, "delay=-1 is negative"),
        ({"delay": "soon"}, "delay='soon' is no duration"),
        ({"at": NOON.replace(tzinfo=None)}, "has no time zone: give an aware datetime"),
        ({"delay": 1, "at": NOON}, "give delay= or at=, not both"),
        ({"expires": 0}, "expires=0 leaves no time to start"),
        ({"expires": "5s", "delay": "5s"}, "would expire before it may start"),
        ({"expires": NOON, "at": NOON}, "would expire before it may start"),
        ({"max_attempts": 0}, "max_attempts=0 is out of range: give an integer from 1 to"),
        ({"backoff": 5}, "backoff=5 is none: give Backoff"),
        ({"timeout": "x"}, "timeout='x' is no duration"),
        ({"timeout": 30, "hard_timeout": 20}, "hard_timeout=20s lies before timeout=30s"),
        ({"tags": "urgent"}, "tags='urgent' is no list"),
        ({"tags": {"a": "b"}}, "is no list"),
        ({"tags": 5}, "tags=5 is no list"),
        ({"tags": [""]}, "a tag is text of 1 to 128 characters"),
        ({"tags": ["x" * 129]}, "a tag is text of 1 to 128 characters"),
        ({"tags": [7]}, "tags holds 7: a tag is text"),
        ({"tags": ["\ud800"]}, "a tag is text"),
        ({"tags": [str(n) for n in range(33)]}, "tags holds more than 32 tags"),
        ({"meta": ["a"]}, "is no mapping"),
        ({"meta": {"n": 7}}, "meta holds 'n': 7: both must be text"),
        ({"meta": {7: "n"}}, "meta holds 7: 'n': both must be text"),
        ({"meta": {"n": "\ud800"}}, "both must be text"),
        ({"meta": {"n": "x" * 8192}}, "meta holds 8193 bytes: a job has at most 8192"),
        ({"id": ""}, "id='' is no id"),
        ({"id": "x" * 65}, "is no id"),
        ({"id": "email:7"}, "without the queue, which is put before it"),
        ({"id": 7}, "id=7 is no id"),
        ({"keep": -1}, "keep=-1 is negative"),
        ({"keep_result": "x"}, "keep_result='x' is no duration"),
        ({"on_lease_lost": "ignore"}, "on_lease_lost='ignore' is none"),
    ],
)
def test_refusals_name_the_option_and_the_rule(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 (the words are checked below)
        Options(**wrong)
    assert words in str(refusal.value)
    with pytest.raises(ValueError, match=r"."):
        declare(wrong)


@pytest.mark.parametrize("name", LATER.split())
def test_options_of_a_later_version_are_refused_and_never_ignored(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"^{name}= isn't here yet"):
        Options(**{name: "x"})  # type: ignore[misc]
    with pytest.raises(NotImplementedError, match=rf"^{name}= isn't here yet"):
        declare({name: "x"})


@pytest.mark.parametrize("name", TASK_LATER.split())
def test_a_tasks_own_options_of_a_later_version_too(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"^{name}= isn't here yet"):
        declare({name: "x"})
    with pytest.raises(TypeError, match=rf"^{name}= belongs to the task, not to a job, and isn't here yet"):
        Options(**{name: "x"})  # type: ignore[misc]


@pytest.mark.parametrize(
    "slip, meant",
    [
        ("queu", "queue"),
        ("max_attempt", "max_attempts"),
        ("uniqe", "unique"),
        ("max_retries", "max_attempts"),
        ("countdown", "delay"),
        ("zzz", None),
    ],
)
def test_unknown_options_are_answered_with_the_nearest(slip: str, meant: str | None) -> None:
    hint = f" (did you mean '{meant}'?)" if meant else ""
    for refuse in (lambda: Options(**{slip: 1}), lambda: declare({slip: 1})):  # type: ignore[misc]
        with pytest.raises(TypeError) as refusal:
            refuse()
        assert str(refusal.value) == f"there is no option '{slip}'{hint}"


# --- layers -------------------------------------------------------------------


def test_the_strongest_layer_speaks() -> None:
    defaults = Options(queue="slow", priority=1, timeout=60)
    task = Options(queue="email", max_attempts=5, tags=["a"])
    using = Options(priority=0, tags=["b"])
    merged = merge(defaults, task, using)
    assert merged == Options(queue="email", priority=0, timeout=60, max_attempts=5, tags=["b"])


def test_meta_adds_up_and_tags_replace() -> None:
    merged = merge(Options(meta={"team": "x", "env": "a"}, tags=["a"]), Options(meta={"env": "b"}, tags=[]))
    assert merged.meta == {"team": "x", "env": "b"}
    assert merged.tags == ()


def test_delay_and_at_replace_each_other() -> None:
    assert merge(Options(delay=5), Options(at=NOON)).due == str(NOON_MS)
    assert merge(Options(at=NOON), Options(delay=5)).due == "+5000"
    assert merge(Options(at=NOON), Options(delay=0)).due == ""
    assert merge(Options(at=NOON), Options(priority=1)).due == str(NOON_MS)


def test_a_stronger_timeout_takes_the_hard_one_with_it() -> None:
    task = Options(timeout=10, hard_timeout=15)
    assert merge(task, Options(timeout=60)).kill_after_ms == 70_000
    assert merge(task, Options(priority=1)).kill_after_ms == 15_000
    assert merge(task, Options(hard_timeout=0)).kill_after_ms == 0


def test_layers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="would expire before it may start"):
        merge(Options(expires="1m"), Options(delay="2m"))
    with pytest.raises(ValueError, match="lies before timeout"):
        merge(Options(timeout=30), Options(hard_timeout=20))


def test_merging_leaves_the_layers_alone() -> None:
    weak, strong = Options(meta={"a": "1"}), Options(meta={"b": "2"})
    merge(weak, strong)
    assert (weak, strong) == (Options(meta={"a": "1"}), Options(meta={"b": "2"}))


simple = st.fixed_dictionaries(
    {},
    optional={
        "queue": st.sampled_from(["a", "b"]),
        "priority": st.integers(-512, 511),
        "delay": st.integers(0, 9),
        "timeout": st.integers(0, 99),
        "tags": st.lists(st.sampled_from("xyz")),
        "meta": st.dictionaries(st.sampled_from("kl"), st.sampled_from("vw")),
        "keep": st.integers(0, 9),
    },
).map(lambda given: Options(**given))  # type: ignore[typeddict-item]


@given(simple, simple, simple)
def test_layers_may_be_merged_in_any_grouping(a: Options, b: Options, c: Options) -> None:
    assert merge(a, merge(b, c)) == merge(merge(a, b), c) == merge(a, b, c)
    assert merge(a, Options()) == merge(Options(), a) == a


def test_options_are_frozen_and_travel() -> None:
    options = Options(meta={"a": "1"}, tags=["x"], backoff=Backoff.fixed(5))
    with pytest.raises(AttributeError):
        options.queue = "other"  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(options))  # noqa: S301 (our own bytes)
    assert again == options == copy.deepcopy(options)


def test_a_given_mapping_is_copied() -> None:
    mine = {"a": "1"}
    options = Options(meta=mine)
    mine["a"] = "2"
    assert options.meta == {"a": "1"}


def test_due_as_scripts_read_it() -> None:
    assert (Options().due, Options(delay=0).due) == ("", "")
    assert Options(delay="250ms").due == "+250"
    assert Options(at=NOON).due == str(NOON_MS)


def test_the_hard_timeout_is_ten_seconds_later_by_default() -> None:
    assert Options().kill_after_ms == 0
    assert Options(timeout=0).kill_after_ms == 0
    assert Options(timeout=30).kill_after_ms == 40_000
    assert Options(timeout=30, hard_timeout=31).kill_after_ms == 31_000
    assert Options(hard_timeout=31).kill_after_ms == 31_000


# --- what is stored -----------------------------------------------------------


def test_defaults_are_not_stored() -> None:
    task = Options(queue="email", priority=5, max_attempts=3, on_lease_lost="retry", tags=[], meta={}, timeout=30)
    assert stored_fields(merge(task, Options()), Options()) == {}


def test_what_is_stored() -> None:
    task = Options(max_attempts=5, tags=["é", "b"], meta={"k": "ü"}, keep=0, keep_result="1m", on_lease_lost="fail")
    using = Options(timeout=0, hard_timeout=20, backoff=Backoff.fixed(5))
    assert stored_fields(merge(task, using), using) == {
        "max_attempts": 5,
        "tags": '["é", "b"]',
        "meta": '{"k": "ü"}',
        "keep": 0,
        "keep_result": 60_000,
        "on_lease_lost": "fail",
        "backoff": "fixed:5000:86400000",
        "timeout": 0,
        "hard_timeout": 20_000,
    }


def test_the_tasks_backoff_and_timeouts_stay_in_its_code() -> None:
    task = Options(timeout=30, hard_timeout=40, backoff=lambda _attempt, _error: 5)
    assert stored_fields(merge(task, Options()), Options()) == {}


def test_a_callable_backoff_cannot_travel() -> None:
    using = Options(backoff=lambda _attempt, _error: 5)
    with pytest.raises(ValueError, match="give it to the task instead of using"):
        stored_fields(using, using)


@given(st.lists(st.text(min_size=1, max_size=9), max_size=9), st.dictionaries(st.text(max_size=9), st.text(max_size=9)))
def test_stored_tags_and_meta_read_back(tags: list[str], meta: dict[str, str]) -> None:
    try:
        options = Options(tags=tags, meta=meta)
    except ValueError:
        return
    stored = stored_fields(options, Options())
    assert json.loads(stored.get("tags", "[]")) == list(dict.fromkeys(tags))  # type: ignore[arg-type]
    assert json.loads(stored.get("meta", "{}")) == meta  # type: ignore[arg-type]


# --- what belongs to the task -------------------------------------------------


def test_a_task_has_a_name_and_an_executor() -> None:
    assert declare({}) == (None, None, Options())
    assert declare({"name": "mail.send", "executor": "thread", "priority": 1}) == (
        "mail.send",
        "thread",
        Options(priority=1),
    )


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "x" * 201, 5])
def test_refuses_bad_task_names(name: Any) -> None:
    with pytest.raises(ValueError, match="is no task's name"):
        declare({"name": name})


def test_refuses_unknown_executors() -> None:
    with pytest.raises(ValueError, match=r"executor='threads' is none: .* \(did you mean 'thread'\?\)"):
        declare({"executor": "threads"})
    with pytest.raises(NotImplementedError, match=r'^executor="process" isn\'t here yet'):
        declare({"executor": "process"})


@pytest.mark.parametrize("name", ["name", "executor"])
def test_a_tasks_own_options_are_refused_elsewhere(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}= belongs to the task: give it to @app.task\({name}=…\)"):
        Options(**{name: "x"})  # type: ignore[misc]


# --- what a producer without the code must hear


def test_a_tasks_options_are_told_and_heard_without_loss():
    said = {
        "priority": -3, "max_attempts": 1, "tags": ["x", "é"], "meta": {"k": "v"}, "keep": 0, "keep_result": "1h30m",
        "on_lease_lost": "fail", "delay": "250ms", "expires": "1d",
    }  # fmt: skip
    options = Options(**said)
    assert heard(json.loads(json.dumps(told(options)))) == options


def test_what_belongs_to_the_workers_code_or_to_one_call_is_not_told():
    options = Options(queue="email", backoff=Backoff.fixed(1), timeout=5, hard_timeout=9, at=NOON, expires=None, id="x")
    assert told(options) == {}
    assert told(Options(expires=NOON)) == {}
    assert told(Options()) == {}


UNREAD = {"priority": 9999, "nobody": 1, "unique": 7, "lock": {}, "limits": [{}], "fair": 3, "strict": 5}


@pytest.mark.parametrize("words", [None, 7, [], "x", {**UNREAD, "expires": None}])
def test_what_cant_be_read_is_left_out(words):
    assert heard(words) == Options()


def test_what_can_be_read_beside_it_is_heard():
    assert heard({"priority": "high", "max_attempts": 1}) == Options(max_attempts=1)
