"""purge, pause, resume, wake: what operators do to a queue."""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.commands import Purged
from tests.lua.room import LEASE_MS, T0, new


def test_all_that_waits_is_cancelled_and_what_runs_is_left(room):
    room.held("running")
    room.do(commands.enqueue, [new("a"), new("b", priority=5, executor="thread"), new("c", due="+9")])
    room.look()
    assert room.do(commands.purge) == Purged(3, 3)
    changed = room.changed()
    for name in "abc":
        assert changed[f"job:default:{name} state"] == "cancelled"
        assert changed[f"job:default:{name} reason"] == "purged"
        assert changed[f"cancelled default:{name}"] == T0
    assert not [row for row in changed if "running" in row]
    kinds = {name.partition(":")[0] for name in room.keyspace.dump()}
    assert not kinds & {"levels", "lanes", "groups", "front", "scheduled"}


def test_only_the_states_asked_for(room):
    room.do(commands.enqueue, [new("a"), new("b", due="+9")])
    assert room.do(commands.purge, states=["scheduled"]) == Purged(1, 1)
    assert room.job("a")["state"] == "available"


def test_in_bounded_steps_to_the_last(room):
    room.do(commands.enqueue, [new(f"j{n}", priority=n % 3) for n in range(7)] + [new("s", due="+9")])
    steps = [room.do(commands.purge, limit=3) for _ in range(4)]
    assert [step.cancelled for step in steps] == [3, 3, 2, 0]
    assert room.do(commands.counts).cancelled == 8


def test_jobs_that_came_back_too(room):
    epoch = room.held()
    room.do(commands.release, worker="n.1", jobs=[commands.Release("default:a", epoch, "")])
    assert room.do(commands.purge) == Purged(1, 1)
    assert room.claim("n.2") == []


def test_no_ghost_starts_later(room):
    room.do(commands.enqueue, [new(f"j{n}", due="+5" if n % 2 else "") for n in range(6)])
    room.do(commands.purge)
    room.now += 5
    room.do(commands.promote)
    assert room.claim() == []


def test_marks_without_a_job_are_looked_at_and_dropped(room):
    room.add("a")
    room.client.delete(room.q.job("default:a"))
    room.client.zadd(room.q.fixed("scheduled"), {"default:x": 1})
    assert room.do(commands.purge) == Purged(0, 2)
    assert not {"scheduled", "levels:async"} & room.keyspace.dump().keys()


@pytest.mark.parametrize("states", [["running"], ["scheduled", "completed"], ["job"], ["leases"], [""]])
def test_a_state_that_does_not_wait_stops_the_whole_call(room, states):
    room.held("a")
    room.do(commands.enqueue, [new("b"), new("c", due="+9")])
    room.look()
    with pytest.raises(Exception, match="state cannot be"):
        room.do(commands.purge, states=states)
    assert room.changed() == {}


# --- pause, resume


def test_pause_and_resume_say_whether_they_changed_anything(room):
    room.look()
    assert [room.do(commands.pause), room.do(commands.pause)] == [True, False]
    assert room.changed() == {"meta paused": str(T0)}
    assert [room.do(commands.resume), room.do(commands.resume)] == [True, False]
    assert room.changed() == {"meta paused": None}


def test_resume_wakes_every_class(room):
    room.do(commands.enqueue, [new("a"), new("b", executor="thread")])
    room.do(commands.pause)
    room.look()
    room.do(commands.resume)
    assert room.changed() == {"meta paused": None, "wake:async 1": T0, "wake:thread 1": T0}


def test_what_runs_while_paused_ends_as_usual(room):
    epoch = room.held()
    room.do(commands.pause)
    held = [commands.Held("default:a", epoch, "n.1")]
    assert room.do(commands.renew, lease_ms=LEASE_MS, held=held) == ["ok"]
    assert room.do(commands.complete, worker="n.1", done=[commands.Done("default:a", epoch, b"")]) == ["ok"]


# --- markers


def test_wake_sets_one_marker_a_class(room):
    for _ in range(2):
        room.now += 1
        room.do(commands.wake, ["async", "thread"])
    assert room.changed() == {"wake:async 1": room.now, "wake:thread 1": room.now}


def test_waking_is_a_chain(room):
    """Whoever stops short of the work that is left wakes the next; who takes the last wakes nobody."""
    room.add("a", "b", "c")
    for worker in ("n.1", "n.2", "n.3"):
        assert room.client.zpopmin(room.q.wake("async")), f"{worker} sleeps on"
        assert len(room.claim(worker, limit=1)) == 1
    assert room.client.zcard(room.q.wake("async")) == 0


def test_a_limit_that_other_states_used_up_leaves_the_lanes_alone(room):
    room.do(commands.enqueue, [new("a"), new("b"), new("c", due="+9"), new("d", due="+9")])
    assert room.do(commands.purge, states=["scheduled", "available"], limit=2) == Purged(2, 2)
    assert {room.job(name)["state"] for name in "ab"} == {"available"}


def test_what_waits_for_a_gate_is_purged_too(room):
    room.held("holder", lane="-:!account=7")
    room.do(commands.enqueue, [new("a", lane="-:!account=7"), new("b", lane="acme:!account=7")])
    assert room.claim() == []
    assert room.do(commands.purge) == Purged(2, 2)
    kinds = {name.partition(":")[0] for name in room.keyspace.dump()}
    assert not kinds & {"levels", "lanes", "groups", "front", "parked", "parks", "gates"}
