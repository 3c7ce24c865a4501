"""From a call to a NewJob: arguments, ids, and what all calls of a task share."""

from __future__ import annotations

import inspect
import time
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq.calls import Plan, Shape, uuid7
from taskq.errors import BadArguments
from taskq.options import Options, merge
from taskq.retry import Backoff


def fits(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        Shape(fn).check(args, kwargs, task="shop.f")
    except BadArguments:
        return False
    return True


def none(): ...
def one(a): ...
def defaulted(a, b=1): ...
def keyword(a, *, b): ...
def optional_keyword(a=0, *, b=1): ...
def positional(a, b=2, /): ...
def rest(a, *more): ...
def named(a, **more): ...
def everything(a, /, b, c=1, *more, d, e=2, **named): ...


@pytest.mark.parametrize(
    "fn",
    [none, one, defaulted, keyword, optional_keyword, positional, rest, named, everything],
    ids=lambda f: f.__name__,
)
@given(args=st.lists(st.integers(), max_size=4), names=st.sets(st.sampled_from("abcdef"), max_size=3))
def test_arguments_fit_exactly_where_the_call_would(fn, args, names):
    kwargs = dict.fromkeys(names, 0)
    try:
        inspect.signature(fn).bind(*args, **kwargs)
        expected = True
    except TypeError:
        expected = False
    assert fits(fn, tuple(args), kwargs) is expected


def test_what_does_not_fit_is_said_with_the_task_and_its_parameters():
    with pytest.raises(BadArguments, match=r"shop\.f\(a, b=1\) doesn't take these arguments: missing .* 'a'"):
        Shape(defaulted).check((), {}, task="shop.f")


def test_ids_are_uuids_of_version_7_and_sort_by_time():
    ids = [uuid7()]
    before = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= before:
        pass
    ids += [uuid7(), uuid7()]
    parsed = [uuid.UUID(each) for each in ids]
    assert all(each.version == 7 and each.variant == uuid.RFC_4122 for each in parsed)
    assert [str(each) for each in parsed] == ids
    assert ids[0] < ids[1] and len(set(ids)) == 3  # noqa: PT018
    assert abs((parsed[0].int >> 80) - time.time_ns() // 1_000_000) < 5000


def test_ids_made_one_after_another_sort_so():
    ids = [uuid7()]
    while len(ids) < 200:
        before = time.time_ns() + 1_000
        while time.time_ns() < before:
            pass
        ids.append(uuid7())
    assert ids == sorted(ids)


def test_ids_keep_their_order_when_the_clock_is_set_back(monkeypatch):
    real = time.time_ns
    ids = [uuid7() for _ in range(50)]
    monkeypatch.setattr(time, "time_ns", lambda: real() - 60_000_000_000)
    ids += [uuid7() for _ in range(50)]
    monkeypatch.undo()
    ids += [uuid7() for _ in range(50)]
    assert ids == sorted(ids)
    assert all(uuid.UUID(each).version == 7 for each in ids)


def plan(options: Options | None = None, said: Options | None = None) -> Plan:
    return Plan("ns", "shop.send", "async", options or Options(), said or Options())


def test_a_plain_job_stores_nothing_but_its_payload():
    job = plan().new_job(b"x")
    assert job.id.startswith("default:") and uuid.UUID(job.id.partition(":")[2]).version == 7  # noqa: PT018
    assert job._replace(id="") == ("", "", "shop.send", "async", 0, "", "", {"payload": b"x"}, "", "", "")


def test_no_arguments_no_payload():
    assert plan().new_job(b"").fields == {}


def test_options_become_fields_and_places():
    job = plan(
        Options(
            queue="email", priority=5, delay="1m", expires=90, tags=["x", "y"], meta={"a": "b"}, keep=0, max_attempts=7
        )
    ).new_job(b"")
    assert (job.id[:6], job.priority, job.due, job.expires) == ("email:", 5, "+60000", "+90000")
    assert job.fields == {"tags": '["x", "y"]', "meta": '{"a": "b"}', "keep": 0, "max_attempts": 7}


def test_an_own_id_gets_a_token_for_each_call_so_that_only_a_resend_is_taken_for_the_same():
    made = plan(Options(queue="email", id="order-7"))
    first, second = made.new_job(b""), made.new_job(b"")
    assert first.id == second.id == "email:order-7"
    assert first.token and second.token and first.token != second.token  # noqa: PT018


def test_backoff_and_timeouts_stay_in_the_workers_code_unless_the_call_sets_them():
    declared = Options(backoff=Backoff.fixed(5), timeout=30)
    assert plan(declared).new_job(b"").fields == {}
    said = Options(timeout=60)
    assert plan(merge(declared, said), said).new_job(b"").fields == {"timeout": 60_000}
    assert plan(declared, declared).new_job(b"").fields == {"backoff": "fixed:5000:86400000", "timeout": 30_000}


def test_payloads_do_not_leak_from_one_job_to_the_next():
    made = plan(Options(tags=["x"]))
    assert made.new_job(b"1").fields["payload"] == b"1"
    assert "payload" not in made.new_job(b"").fields
