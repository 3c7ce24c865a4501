"""The options that name keys: what they take, where they look, and what stands in the names of keys for it."""

from __future__ import annotations

import json
import re
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq import BadArguments, Concurrency, Debounce, Lock, Options, Rate, TaskQ, Throttle, Unique, lanes
from taskq.keyed import shared_limits
from taskq.node.worker.load import greeting
from taskq.options import heard, told

KEY_SAFE = re.compile(r"[A-Za-z0-9._~@+/%-]{1,64}")


def keys_of(task: Any, *args: Any, **kwargs: Any) -> tuple[str, str]:
    job = task.plan().new_job(b"", args, kwargs)
    return job.lane, job.once


def made(fn: Any = None, **options: Any) -> Any:
    return TaskQ().task(name="t", **options)(fn or (lambda tenant, n=1, *, note="x", **more: None))


# --- values in the names of keys

VALUES = st.one_of(
    st.text(), st.integers(), st.booleans(), st.none(), st.uuids(), st.dates(), st.decimals(allow_nan=False)
)


def as_text(value: Any) -> Any:
    return tuple(map(as_text, value)) if isinstance(value, tuple) else str(value)


@given(VALUES, VALUES)
def test_other_values_are_other_keys(a, b):
    assert (lanes.encoded(a) == lanes.encoded(b)) == (as_text(a) == as_text(b))
    assert KEY_SAFE.fullmatch(lanes.encoded(a))


@given(st.lists(VALUES, min_size=2, max_size=4), st.lists(VALUES, min_size=2, max_size=4))
def test_so_are_other_tuples(a, b):
    one, other = lanes.encoded(tuple(a)), lanes.encoded(tuple(b))
    assert (one == other) == (as_text(tuple(a)) == as_text(tuple(b)))
    assert KEY_SAFE.fullmatch(one)


@given(st.text(max_size=5))
def test_what_is_short_can_be_read_back(text):
    assert lanes.decoded(lanes.encoded(text)) == text


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    "value, text",
    [
        ("acme", "acme"),
        ("a.b_c~d@e+f/g-h", "a.b_c~d@e+f/g-h"),
        ("a b:c,d=e#f!g*h{i}%", "a%20b%3Ac%2Cd%3De%23f%21g%2Ah%7Bi%7D%25"),
        ("é", "%C3%A9"),
        ("\ud800", "%ED%A0%80"),
        ("", "%"),
        ("-", "%2D"),
        ("~x", "%7Ex"),
        (("a", "b/c", ""), "a/b%2Fc/%"),
        (7, "7"),
        (2.0, "2"),
        (None, "None"),
        (True, "True"),
        (Colour.RED, "red"),
        (Decimal("1.50"), "1.50"),
        (date(2030, 1, 2), "2030-01-02"),
        (datetime(2030, 1, 2, tzinfo=UTC), "2030-01-02%2000%3A00%3A00+00%3A00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("x" * 64, "x" * 64),
    ],
)
def test_a_value_stays_readable(value, text):
    assert lanes.encoded(value) == text


def test_a_long_one_is_its_digest():
    assert re.fullmatch("~[0-9a-f]{40}", lanes.encoded("x" * 65))
    assert lanes.encoded("x" * 65) != lanes.encoded("x" * 66)


@pytest.mark.parametrize("value", [[1], {}, {1}, object(), b"x", len, ("a", [1]), (("a",), "b")])
def test_nothing_can_be_named_after_what_has_no_text(value):
    task = made(fair="tenant")
    with pytest.raises(BadArguments, match=r"^t: nothing can be named after .* \(fair\): it is no text"):
        keys_of(task, value)


# --- where a value is looked up


def test_a_value_is_found_however_it_was_given():
    task = made(fair="tenant", lock=Lock("n", by="n"))
    assert keys_of(task, "acme") == ("acme:!n=1", "")
    assert keys_of(task, tenant="acme", n=2) == ("acme:!n=2", "")
    assert keys_of(task, "acme", 3) == ("acme:!n=3", "")


def test_defaults_keyword_only_and_extra_ones_too():
    task = made(fair=("note", "region"))
    assert keys_of(task, "acme", region="eu") == ("x/eu:", "")
    with pytest.raises(
        BadArguments, match=r"fair= names the task's parameter 'region', and .* no value for it: give the task region="
    ):
        keys_of(task, "acme")


def test_a_callable_gets_the_whole_call():
    task = made(fair=lambda tenant, n, *, note, **_: (tenant.lower(), n, note))
    assert keys_of(task, "ACME") == ("acme/1/x:", "")
    assert keys_of(task, n=5, tenant="B", note="") == ("b/5/%:", "")


@pytest.mark.parametrize("option", ["fair", "limits", "lock", "unique", "debounce", "throttle"])
def test_a_slip_is_told_where_it_is_declared(option):
    by = "tenat"
    given: dict[str, Any] = {
        "fair": by,
        "limits": Concurrency(1, by=by),
        "lock": Lock("x", by=("n", by)),
        "unique": Unique(by=by),
        "debounce": Debounce(1, by=by),
        "throttle": Throttle(1, by=by),
    }

    def fn(tenant: str, n: int = 1, *more: int) -> None: ...

    app = TaskQ()
    for declare in (
        lambda: app.task(**{option: given[option]})(fn),
        lambda: app.stub(**{option: given[option]})(fn),
        lambda: app.task(name="u")(fn).using(**{option: given[option]}),
    ):
        with pytest.raises(
            ValueError, match=rf"{option}= names 'tenat', and .* has no such parameter \(did you mean 'tenant'"
        ):
            declare()


def test_what_stands_for_many_arguments_is_no_parameter():
    def fn(*args: int, **kwargs: int) -> None: ...

    for name in ("args", "kwargs"):
        with pytest.raises(ValueError, match=f"names '{name}'"):
            TaskQ().task(fair=name)(fn)


def test_a_callable_that_cant_take_the_call_is_told_where_it_is_declared():
    def fn(a: int, *, b: int = 1) -> None: ...

    with pytest.raises(ValueError, match=r"the callable of fair= takes \(a\), and is called with the arguments of"):
        TaskQ().task(fair=lambda a: a)(fn)
    TaskQ().task(fair=lambda a, b: (a, b))(fn)
    TaskQ().task(fair=lambda *a, **b: a)(fn)


@pytest.mark.parametrize("by", [7, "", "a b", "class", (), ("a", 1), [], {"a"}, None])
def test_what_can_tell_no_calls_apart_is_refused(by):
    if by is None:
        assert Options(fair=None) == Options()
        return
    with pytest.raises(ValueError, match=r"fair=.* can tell no calls apart"):
        Options(fair=by)


def test_a_task_known_by_name_looks_where_its_nodes_told():
    app = TaskQ()
    declared = Options(fair="tenant", limits=Concurrency(2, by="n"), unique=Unique(by=("n", "tenant")))
    words = told(declared, ["tenant", "n"])
    app.hearsay.take("t", {"queue": "q", "options": json.dumps(words)})
    task = app.by_name("t")
    assert keys_of(task, "acme", 5) == ("acme:t=5", "t:5/acme finished existing")
    assert keys_of(task, "acme", n=6) == ("acme:t=6", "t:6/acme finished existing")
    with pytest.raises(BadArguments, match="parameter 'n'"):
        keys_of(task, "acme")


def test_of_a_function_only_the_workers_know_a_task_known_by_name_says_so():
    app = TaskQ()
    app.hearsay.take("t", {"queue": "q", "options": '{"fair": false}'})
    with pytest.raises(BadArguments, match=r"t: fair= is a function of the workers' code"):
        keys_of(app.by_name("t"), "acme")


def test_a_plain_task_has_no_keys():
    assert keys_of(made(), "acme") == ("", "")


# --- limits


def test_limits_of_one_name_and_one_value_are_one_gate():
    task = made(limits=[Concurrency(2, by="tenant", name="crm"), Rate("100/min", by="tenant", name="crm", cost=3)])
    assert keys_of(task, "acme") == ("-:crm=acme#3", "")
    assert keys_of(made(limits=Concurrency(2)), "acme") == ("-:t", "")
    both = made(limits=[Concurrency(2), Rate("1/s", name="b", by="n")], lock="z", fair="tenant")
    assert keys_of(both, "acme") == ("acme:!z,b=1,t", "")


@pytest.mark.parametrize(
    "limits, says",
    [
        ([Concurrency(1), Concurrency(2)], "two Concurrency limits are named 't'"),
        ([Rate("1/s", name="x"), Rate("1/s", name="x")], "two Rate limits are named 'x'"),
        ([Concurrency(1, by="n"), Rate("1/s")], "limits named 't' go by different things"),
    ],
)
def test_limits_that_contradict_each_other_are_refused(limits, says):
    with pytest.raises(ValueError, match=says):
        made(limits=limits)


def test_a_limit_takes_no_name_from_a_task_that_is_called_as_the_queue_itself():
    with pytest.raises(ValueError, match="task queue: its limit needs a name="):
        TaskQ().task(name="queue", limits=Concurrency(1))(lambda: None)
    named = TaskQ().task(name="queue", limits=Concurrency(1, name="one"), lock="z")(lambda: None)
    assert keys_of(named) == ("-:!z,one", "")
    by_default = TaskQ(defaults=Options(limits=Concurrency(1))).task(name="queue")(lambda: None)
    with pytest.raises(ValueError, match="its limit needs a name="):
        by_default.plan()


@pytest.mark.parametrize(
    "rate, limit, period_ms, burst",
    [
        ("100/s", 100, 1000, 10),
        ("100/min", 100, 60_000, 1),
        ("36000/h", 36_000, 3_600_000, 1),
        ("72000/h", 72_000, 3_600_000, 2),
        ("1/day", 1, 86_400_000, 1),
        ("5/10s", 5, 10_000, 1),
        (" 5 / 1h30m ", 5, 5_400_000, 1),
    ],
)
def test_a_rate_is_read(rate, limit, period_ms, burst):
    found = Rate(rate)
    assert (found.limit, found.period_ms, found.burst, found.cost) == (limit, period_ms, burst, 1)
    assert found.words == f"r={limit}/{period_ms}/{burst}"


@pytest.mark.parametrize("rate", ["", "100", "x/s", "0/s", "-1/s", "5/", "5/x", "5/0s", "1.5/s", None, 7, "5//s"])
def test_what_is_no_rate_is_refused(rate):
    with pytest.raises(ValueError, match="is no rate: give such as"):
        Rate(rate)


@pytest.mark.parametrize(
    "rate, more", [("1/day", {"burst": 36_501}), ("1/107d", {"cost": 10**9}), ("1/36500d", {"burst": 2})]
)
def test_a_burst_comes_back_within_a_century(rate, more):
    with pytest.raises(ValueError, match="more than 100 years"):
        Rate(rate, **more)
    assert Rate("1/day", burst=36_500).burst == 36_500
    assert Rate("1/36500d").burst == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Concurrency(0),
        lambda: Concurrency(True),
        lambda: Concurrency("2"),  # type: ignore[arg-type]
        lambda: Concurrency(1, name="queue"),
        lambda: Concurrency(1, name="a\n"),
        lambda: Rate("1/s", burst=0),
        lambda: Rate("1/s", burst=2, cost=3),
        lambda: Rate("1/s", cost=0),
        lambda: Lock(""),
        lambda: Lock("x", wait=-1),
        lambda: Options(limits="crm"),  # type: ignore[arg-type]
        lambda: Options(limits=[1]),  # type: ignore[list-item]
        lambda: Options(limits=[Concurrency(1)] * 9),
        lambda: Options(lock=7),  # type: ignore[arg-type]
        lambda: Options(unique=""),
        lambda: Options(unique=7),  # type: ignore[arg-type]
        lambda: Unique(until="finshed"),
        lambda: Unique(until=0),
        lambda: Unique(scope="app"),  # type: ignore[arg-type]
        lambda: Unique(on_conflict="ignore"),  # type: ignore[arg-type]
        lambda: Debounce(0),
        lambda: Debounce("5s", max_wait="1s"),
        lambda: Options(throttle="soon"),
        lambda: Options(unique="x", throttle=1),
        lambda: Options(debounce=1, delay=1),
    ],
)
def test_what_breaks_a_rule_is_refused(make):
    with pytest.raises(
        ValueError, match=r"give|out of range|leave|no such name|more than|shorter|negative|is a Concurrency|at most 8"
    ):
        make()


def test_numbers_of_limits_go_to_their_queues():
    app = TaskQ()
    both = [Concurrency(2, by="a", name="crm"), Rate("10/s", by="a", name="crm")]
    app.task(name="one", limits=both)(lambda a: None)
    app.task(name="two", limits=Concurrency(2, by="a", name="crm"))(lambda a: None)
    app.task(name="three", queue="other", limits=Concurrency(9, name="crm"))(lambda: None)
    app.task(name="four x".replace(" ", ":"), limits=Concurrency(1))(lambda: None)
    assert greeting(app, []).limits == {
        "default": {"crm": "c=2 r=10/1000/1", "four%3Ax": "c=1"},
        "other": {"crm": "c=9"},
    }


def test_one_limit_with_other_numbers_names_both_tasks():
    said = [("a", "q", Options(limits=Concurrency(1, name="x"))), ("b", "q", Options(limits=Concurrency(2, name="x")))]
    with pytest.raises(ValueError, match=r"tasks a and b give the limit 'x' of queue q other numbers"):
        shared_limits(said)
    rates = [("a", "q", Options(limits=Rate("1/s", name="x"))), ("b", "q", Options(limits=Rate("2/s", name="x")))]
    with pytest.raises(ValueError, match=r"Rate of 1 in 1000 ms, burst 1 and Rate of 2 in 1000 ms"):
        shared_limits(rates)


# --- once only


@pytest.mark.parametrize(
    "options, once",
    [
        ({"unique": "the key"}, "t:the%20key finished existing"),
        ({"unique": Unique(by="tenant")}, "t:acme finished existing"),
        ({"unique": Unique(by="tenant", scope="queue", until="started")}, ":acme started existing"),
        ({"unique": Unique(by="n", until="1m", on_conflict="replace")}, "t:1 within/60000 replace"),
        ({"unique": Unique(by="n", until=5, on_conflict="raise")}, "t:1 within/5000 raise"),
        ({"debounce": "5s"}, "t:debounce: debounce/5000/- replace"),
        ({"debounce": Debounce("5s", max_wait="1m", by="n")}, "t:debounce:1 debounce/5000/60000 replace"),
        ({"throttle": "1m"}, "t:throttle: throttle/60000 existing"),
        ({"throttle": Throttle(1, by=("tenant", "n"))}, "t:throttle:acme/1 throttle/1000 existing"),
    ],
)
def test_what_a_job_is_unique_by(options, once):
    assert keys_of(made(**options), "acme") == ("", once)
    assert len(once) < 256


def test_a_text_is_a_key_and_no_parameters_name():
    assert keys_of(made(unique="tenant"), "acme") == ("", "t:tenant finished existing")


def test_all_arguments_however_they_are_written():
    task = made(unique=Unique())
    same = [((1,), {}), ((1, 1), {}), ((), {"n": 1, "tenant": 1}), ((1,), {"note": "x"})]
    assert len({keys_of(task, *args, **kwargs) for args, kwargs in same}) == 1
    assert keys_of(task, 1) != keys_of(task, 2)
    assert keys_of(task, [1], a=1, b=2) == keys_of(task, [1], b=2, a=1)


def test_a_debounced_job_waits():
    job = made(debounce="5s").plan().new_job(b"", ("acme",), {})
    assert job.due == "+5000"


def test_the_stronger_layer_says_what_a_job_is_unique_by():
    task = made(debounce="5s")
    assert keys_of(task.using(unique="k"), "acme") == ("", "t:k finished existing")
    assert keys_of(task.using(throttle=1), "acme") == ("", "t:throttle: throttle/1000 existing")
    assert task.using(throttle=1).plan().new_job(b"", (1,), {}).due == ""


def test_a_locks_wait_travels_with_the_job():
    assert made(lock=Lock("x", wait="1h")).plan().new_job(b"", (1,), {}).fields["lock_wait"] == 3_600_000


EVERY = [
    Options(fair="a"),
    Options(fair=("a", "b"), lock=Lock("x", by=("a", "b"), wait="90s")),
    Options(limits=[Concurrency(2, by="a", name="n"), Rate("7/90s", burst=5, cost=2)], lock="y"),
    Options(unique=Unique(by="a", until="90s", scope="queue", on_conflict="raise")),
    Options(unique="text"),
    Options(debounce=Debounce("1s", max_wait="9s", by="a")),
    Options(throttle=Throttle("1m")),
]


@pytest.mark.parametrize("options", EVERY)
def test_what_is_told_is_heard(options):
    words = told(options, ["a"])
    assert words["order"] == ["a"]
    assert heard(json.loads(json.dumps(words))) == options
