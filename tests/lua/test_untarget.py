"""A target is lost: its jobs go where any worker finds them, at their place, or fail; however their lanes stand."""

from __future__ import annotations

from hashlib import sha1

import pytest
from redis.exceptions import ResponseError

from taskq import commands
from taskq.commands import Freed
from taskq.errors import LeadershipLost
from tests.lua.lead import told
from tests.lua.room import T0

WEB = "async;target=web-1"
GPU = "async;label.gpu=a100"


def free(room, klass=WEB, why="lost", limit=100, term=T0):
    return room.do(commands.untarget, klass, why=why, term=term, limit=limit)


def names(room, free=None, **options):
    return [job.id.partition(":")[2] for job in room.claim(free=free or {"async": 100}, **options)]


def test_a_job_goes_to_the_class_without_its_target(room):
    room.add("a", needs="target=web-1")
    room.look()
    room.now += 500
    assert free(room) == Freed(1, 0, 1)
    changed = room.changed()
    assert changed.pop("body:async;target=web-1:0") == []
    assert changed == {
        "job:default:a class": "async",
        "job:default:a entry": None,
        "front:async:0 default:a": T0,
        "levels:async 0": 0,
        "groups:async:0 -": 0,
        "lanes:async:0:- async:0": T0,
        f"levels:{WEB} 0": None,
        f"groups:{WEB}:0 -": None,
        f"lanes:{WEB}:0:- {WEB}:0": None,
        f"empty {WEB}:0": room.now,
        "wake:async 1": room.now,
        "meta term": str(T0),
        "classes async": "executor=async",
        "meta class_version": "2",
    }
    assert names(room) == ["a"]


def test_the_class_it_goes_to_is_one_of_the_queues_though_no_job_was_ever_of_it(room):
    room.add("a", needs="target=web-1")
    version = room.do(commands.classes).version
    free(room)
    assert told(room) == []
    assert room.do(commands.classes).version > version
    assert room.do(commands.demand).waiting == 1


def test_it_keeps_its_place_its_priority_and_what_else_it_needs(room):
    room.add("old")
    room.now += 10
    room.add("a", needs="label.gpu=a100;target=web-1")
    room.add("b", needs="label.gpu=a100;target=web-1", priority=3)
    room.now += 10
    room.add("young", needs="label.gpu=a100")
    assert free(room, f"{GPU};target=web-1") == Freed(2, 0, 2)
    assert room.job()["class"] == GPU
    assert names(room, narrow={GPU: {"async": 1}}) == ["b", "old", "a", "young"]


def test_needs_that_only_the_record_tells_lose_their_target_there(room):
    rest, short = "label.zone=a%20b", "label.zone=ab"
    room.add("a", needs=f"{rest};target=web-1")
    room.add("b", needs=f"{short};target=" + "w" * 128)
    for name in ("a", "b"):
        assert free(room, room.job(name)["class"]) == Freed(1, 0, 1)
    hashed = sha1(rest.encode(), usedforsecurity=False).hexdigest()
    assert (room.job()["class"], room.job()["needs"]) == (f"async;{hashed}", rest)
    assert (room.job("b")["class"], room.job("b").get("needs")) == (f"async;{short}", None)
    assert room.run(commands.classes(room.q)).classes[f"async;{hashed}"] == f"executor=async;{rest}"


def test_those_that_asked_for_it_fail_when_it_is_lost_and_wait_while_it_is_busy(room):
    room.add("a", "c", needs="target=web%20one", on_target_lost="fail")
    room.add("b", needs="target=web%20one")
    klass = room.job()["class"]
    assert free(room, klass, "busy") == Freed(1, 0, 1)
    assert free(room, klass, "busy") == Freed(0, 0, 0)
    assert [room.job(name)["state"] for name in "abc"] == ["available"] * 3
    assert free(room, klass) == Freed(0, 2, 2)
    assert (room.job()["state"], room.job()["reason"]) == ("failed", "target lost: web one")
    assert names(room) == ["b"]


def test_a_step_is_bounded_and_they_end(room):
    room.add(*(f"a{n:02}" for n in range(25)), needs="target=web-1")
    steps = [free(room, limit=10) for _ in range(3)]
    assert steps == [Freed(10, 0, 10), Freed(10, 0, 10), Freed(5, 0, 5)]
    assert names(room) == [f"a{n:02}" for n in range(25)]


def test_lanes_with_keys_are_taken_too_also_where_they_are_parked(room):
    room.do(commands.declare, kinds={}, retention={}, limits={"crm": "c=1"})
    room.add("holder", lane="-:crm")
    (holder,) = room.claim(free={"async": 1})
    room.add("a", "b", needs="target=web-1", lane="-:crm")
    room.add("c", needs="target=web-1", lane="acme:")
    assert names(room, narrow={WEB: {"async": 1}}, limit=1) == ["c"]
    assert names(room, narrow={WEB: {"async": 1}}) == []
    assert room.keyspace.dump()[f"parked:crm:{WEB}"]
    room.add("d", needs="target=web-1", lane="acme:")
    assert free(room).moved == 3
    found = room.keyspace.dump()
    assert f"parked:crm:{WEB}" not in found
    assert not any(name.startswith((f"front:{WEB}", f"lanes:{WEB}", f"levels:{WEB}")) for name in found)
    assert names(room) == ["d"]
    room.do(commands.complete, worker="n.1", done=[commands.Done(holder.id, holder.epoch, b"")])
    assert names(room) == ["a"]


def test_what_is_no_waiting_job_of_the_lane_is_dropped(room):
    room.add("a", "b", "c", "d", needs="target=web-1")
    room.client.delete(room.q.job("default:a"))
    room.client.hset(room.q.job("default:b"), "state", "running")
    room.client.delete(room.q.job("default:c"))
    room.client.set(room.q.job("default:c"), "x")
    assert free(room) == Freed(1, 0, 4)
    assert room.job("c")["state"] == "failed"
    assert free(room) == Freed(0, 0, 0)
    assert names(room) == ["d"]


def test_a_job_that_is_due_later_is_met_once_it_is(room):
    room.add("a", needs="target=web-1", due="+1000")
    assert free(room) == Freed(0, 0, 0)
    room.now += 1000
    room.do(commands.promote)
    assert free(room) == Freed(1, 0, 1)


def test_it_waits_for_its_lock_as_long_as_before(room):
    room.add("a", needs="target=web-1", lane="-:!x=1", lock_wait="60000")
    until = room.job()["lock_until"]
    room.now += 1000
    free(room)
    assert room.job()["lock_until"] == until
    assert room.keyspace.dump()["expiring"] == {"default:a": T0 + 60_000}


def test_a_leader_of_the_past_is_refused_and_changes_nothing(room):
    room.add("a", needs="target=web-1")
    room.add("b", needs="target=web-1", on_target_lost="fail")
    assert free(room, why="busy", limit=1, term=T0 + 2) == Freed(1, 0, 1)
    room.look()
    for why in ("lost", "busy"):
        with pytest.raises(LeadershipLost):
            free(room, why=why, term=T0 + 1)
    assert room.changed() == {}
    assert free(room, term=T0 + 2) == Freed(0, 1, 1)


def test_a_term_of_a_clock_that_was_set_back_stops_nobody(room):
    room.add("a", needs="target=web-1")
    room.client.hset(room.q.fixed("meta"), "term", room.now + 60_001)
    assert free(room, term=T0) == Freed(1, 0, 1)


def test_without_a_term_nobody_may(room):
    with pytest.raises(ResponseError, match="term cannot be"):
        room.raw("untarget", room.now, WEB, "lost", 100, "")


@pytest.mark.parametrize("klass", ["async", "x", ""])
def test_a_class_that_can_have_no_target_is_refused(room, klass):
    with pytest.raises(Exception, match="has no target"):
        free(room, klass)


def test_a_class_without_a_target_is_left_alone(room):
    room.add("a", needs="label.gpu=a100")
    room.look()
    with pytest.raises(Exception, match="has no target"):
        free(room, GPU)
    assert room.changed() == {}
