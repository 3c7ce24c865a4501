"""promote and expire: what waits for a time, and how others hear of it."""

from __future__ import annotations

import pytest

from taskq import commands
from tests.lua.room import LEASE_MS, T0, new


def test_a_due_job_joins_the_end_of_its_lane(room):
    room.add("a", due="+1000")
    room.add("b")
    room.look()
    room.now += 1000
    assert room.do(commands.promote) == 1
    assert room.changed() == {
        "job:default:a state": "available",
        "job:default:a entry": "*",
        "job:default:a place": str(room.now),
        "scheduled default:a": None,
        "body:async:0": ["default:b", "default:a"],
        "wake:async 1": room.now,
    }
    assert room.told == {"available": ["default:a"]}


def test_a_ms_too_early_nothing_happens(room):
    room.add("a", due="+1000")
    room.look()
    room.now += 999
    assert room.do(commands.promote) == 0
    assert room.changed() == {}


def test_a_backoff_that_is_over_makes_it_available(room):
    epoch = room.held()
    room.do(commands.fail, worker="n.1", failures=[commands.Failure("default:a", epoch, "retry", 50, "{}", "x")])
    room.now += 50
    assert room.do(commands.promote) == 1
    assert room.job()["state"] == "available"
    assert "retryable" not in room.keyspace.dump()


def test_so_many_at_a_time_the_earliest_first(room):
    room.do(commands.enqueue, [new(f"j{n}", due=f"+{100 - n}") for n in range(5)])
    room.now += 100
    assert room.do(commands.promote, limit=2) == 2
    assert room.keyspace.dump()["scheduled"].keys() == {"default:j0", "default:j1", "default:j2"}
    assert room.do(commands.promote, limit=0) == 0
    assert room.do(commands.promote, limit=9) == 3


def test_due_and_expired_is_expired(room):
    room.add("a", due="+100", expires="+100")
    room.now += 100
    room.do(commands.promote)
    assert room.job()["reason"] == "expired"
    assert "expiring" not in room.keyspace.dump()


def test_each_class_that_got_work_is_woken_once(room):
    room.do(
        commands.enqueue, [new(f"{kind}{n}", executor=kind, due="+5") for kind in ("async", "thread") for n in "ab"]
    )
    room.now += 5
    room.look()
    room.do(commands.promote)
    changed = room.changed()
    assert changed["wake:async 1"] == changed["wake:thread 1"] == room.now


def test_a_paused_queue_goes_on_promoting_but_gives_nothing_out(room):
    room.add("a", due="+5")
    room.do(commands.pause)
    room.now += 5
    assert room.do(commands.promote) == 1
    assert room.do(commands.counts).available == 1


# --- who waits for the next due time


@pytest.mark.parametrize("due, told", [("+500", True), ("+1000", True), ("+1500", False)])
def test_an_earlier_time_wakes_somebody_a_later_one_does_not(room, due, told):
    room.add("b", due="+1000")
    room.look()
    room.add("a", due=due)
    assert ("wake:async 1" in room.changed()) == told


def test_a_backoff_that_ends_first_wakes_somebody(room):
    epoch = room.held()
    room.add("b", due="+1000")
    room.look()
    room.do(commands.fail, worker="n.1", failures=[commands.Failure("default:a", epoch, "retry", 10, "{}", "x")])
    assert room.changed()["wake:async 1"] == T0


# --- expire


@pytest.mark.parametrize("due", ["", "+500"])
def test_a_job_that_waited_too_long_is_cancelled(room, due):
    room.add("a", due=due, expires="+100")
    room.look()
    room.now += 100
    assert room.do(commands.expire) == 1
    changed = room.changed()
    assert changed["job:default:a state"] == "cancelled"
    assert changed["job:default:a reason"] == "expired"
    assert changed["expiring default:a"] is None
    assert changed["cancelled default:a"] == room.now
    assert not {"scheduled", "levels:async"} & room.keyspace.dump().keys()


def test_a_ms_before_nothing_expires(room):
    room.add("a", expires="+100")
    room.look()
    room.now += 99
    assert room.do(commands.expire) == 0
    assert room.changed() == {}


def test_a_job_that_was_started_in_time_does_not_expire_when_it_waits_again(room):
    epoch = room.held(expires="+100")
    room.now += 200
    assert room.do(commands.expire) == 0
    room.do(commands.fail, worker="n.1", failures=[commands.Failure("default:a", epoch, "retry", 5000, "{}", "x")])
    assert "expiring" not in room.keyspace.dump()
    assert room.do(commands.expire) == 0
    room.now += 5000
    assert room.do(commands.promote) == 1
    assert room.job()["state"] == "available"


def test_expire_takes_so_many_at_a_time(room):
    room.do(commands.enqueue, [new(f"j{n}", expires=f"+{n}") for n in range(5)])
    room.now += 10
    assert [room.do(commands.expire, limit=2) for _ in range(4)] == [2, 2, 1, 0]


def test_marks_without_a_job_are_dropped(room):
    room.add("a")
    room.client.zadd(room.q.fixed("expiring"), {"default:a": 1, "default:x": 1})
    room.client.zadd(room.q.fixed("scheduled"), {"default:a": 1, "default:x": 1})
    room.client.zadd(room.q.fixed("retryable"), {"default:a": 1, "default:x": 1})
    room.look()
    assert room.do(commands.promote) == 4
    assert room.do(commands.expire) == 2
    marks = ("expiring", "scheduled", "retryable")
    assert room.changed() == {f"{mark} default:{name}": None for mark in marks for name in "ax"}


@pytest.mark.parametrize("call", ["promote", "expire", "prune"])
@pytest.mark.parametrize("limit", [-1, "x", "nan"])
def test_a_limit_that_makes_no_sense_changes_nothing(room, call, limit):
    room.add("a", due="+5", expires="+5")
    room.now += 5 + LEASE_MS
    room.look()
    with pytest.raises(Exception, match="limit cannot be"):
        room.do(getattr(commands, call), limit=limit)
    assert room.changed() == {}
