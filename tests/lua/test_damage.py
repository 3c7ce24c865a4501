"""Damage: a record that is none, a key that is gone. One of them stops nobody else, and nothing is stuck for ever."""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.commands import Buried, Done, Failure, Held, Release, Snoozed
from tests.lua.room import LEASE_MS, T0, new
from tests.lua.test_cancel import seed

KEYS = [
    *("meta", "classes", "scheduled", "retryable", "expiring", "leases", "completed", "failed", "cancelled", "prune"),
    *("events", "stats", "empty", "kinds", "levels:async", "groups:async:0", "lanes:async:0:-", "body:async:0"),
    *("front:async:1", "wake:async", "claimed:n.1", "job:default:available", "job:default:running"),
]


def damage(room, name, how):
    """Makes a record something else. Returns what is to be removed at the end, so that it isn't taken for a leak."""
    key = room.q.job(f"default:{name}")
    if how == "no hash":
        room.client.delete(key)
        room.client.set(key, "junk")
    elif how == "no state":
        room.client.hdel(key, "state")
    else:
        room.client.delete(key)


# --- a record that is none


@pytest.mark.parametrize("how, told", [("no hash", {"task": "?", "reason": "BadRecord: this was no job record"}),
                                       ("no state", {"task": "t", "reason": "BadRecord: it names no state",
                                                     "entry": "gone"})])  # fmt: skip
def test_a_claim_puts_it_aside_and_gives_out_the_others(room, how, told):
    room.add("a", "bad", "b")
    damage(room, "bad", how)
    assert [job.id for job in room.claim()] == ["default:a", "default:b"]
    assert room.job("bad") == {"state": "failed", "created_at": str(T0), "finished_at": str(T0), **told}
    assert room.keyspace.dump()["failed"] == {"default:bad": T0}
    assert room.client.get(room.q.fixed("aside:job:default:bad")) == (b"junk" if how == "no hash" else None)


@pytest.mark.parametrize("how", ["no hash", "no state", "gone"])
def test_at_the_head_of_a_lane_it_wedges_nothing(room, how):
    """What takes from a lane looks at the next head, to place the lane by its time."""
    room.add("a", "bad", "b")
    damage(room, "bad", how)
    assert [job.id for job in room.claim(limit=1)] == ["default:a"]
    assert [job.id for job in room.claim(limit=2)] == ["default:b"]
    assert "levels:async" not in room.keyspace.dump()


@pytest.mark.parametrize("how", ["no hash", "no state", "gone"])
def test_a_due_time_of_it_comes_once(room, how):
    room.do(commands.enqueue, [new("bad", due="+5"), new("b", due="+6")])
    damage(room, "bad", how)
    room.now += 6
    assert room.do(commands.promote) == 2
    assert [job.id for job in room.claim()] == ["default:b"]
    assert "scheduled" not in room.keyspace.dump()
    assert (room.job("bad") or {"state": "gone"})["state"] == ("gone" if how == "gone" else "failed")


@pytest.mark.parametrize("how", ["no hash", "no state", "gone"])
def test_its_lease_is_taken_back(room, how):
    room.held("bad")
    damage(room, "bad", how)
    room.watched()
    assert "leases" not in room.keyspace.dump()
    assert (room.job("bad") or {"state": "gone"})["state"] == ("gone" if how == "gone" else "failed")


@pytest.mark.parametrize("how", ["no hash", "no state", "gone"])
def test_its_holder_hears_that_it_is_gone_and_changes_nothing(room, how):
    epoch = room.held("bad")
    damage(room, "bad", how)
    room.look()
    id = "default:bad"
    assert room.do(commands.renew, lease_ms=LEASE_MS, held=[Held(id, epoch, "n.1")]) == ["lost"]
    assert room.do(commands.complete, worker="n.1", done=[Done(id, epoch, b"")]) == ["gone"]
    assert room.do(commands.fail, worker="n.1", failures=[Failure(id, epoch, "fail", 0, "{}", "x")]) == ["gone"]
    assert room.do(commands.release, worker="n.1", jobs=[Release(id, epoch, "")]) == ["gone"]
    assert room.do(commands.snooze, worker="n.1", grace_ms=1, jobs=[Snoozed(id, epoch, "snooze", 0, "")]) == ["gone"]
    assert room.do(commands.cancel, [id], partial=True) == ["missing"]
    assert room.do(commands.retry, [id], partial=True) == ["missing"]
    assert room.changed() == {}
    assert room.do(commands.bury, worker="n.1", why="x", jobs=[Buried(id, epoch, "lost")]) == []
    room.watched()


@pytest.mark.parametrize("how", ["no hash", "no state", "gone"])
@pytest.mark.parametrize("by", ["time", "number"])
def test_retention_removes_it(room, how, by):
    seed(room, "completed", "bad")
    damage(room, "bad", how)
    if by == "number":
        room.do(commands.declare, kinds={}, retention={"max_completed": 0})
    room.now += 86_400_000 if by == "time" else 300_000
    room.do(commands.prune)
    assert not {"completed", "prune", "job:default:bad"} & room.keyspace.dump().keys()


@pytest.mark.parametrize("how", ["no hash", "no state", "gone"])
def test_a_purge_takes_it_along(room, how):
    room.do(commands.enqueue, [new("bad"), new("b"), new("bad2", due="+5")])
    damage(room, "bad", how)
    damage(room, "bad2", how)
    assert room.do(commands.purge).cancelled == 1
    assert not {"levels:async", "scheduled"} & room.keyspace.dump().keys()
    for name in ("bad", "bad2"):
        assert (room.job(name) or {"state": "gone"})["state"] == ("gone" if how == "gone" else "failed")


def test_a_taken_id_is_taken_whatever_stands_there(room):
    room.add("bad")
    damage(room, "bad", "no hash")
    assert room.do(commands.enqueue, [new("bad", token="x"), new("b")]) == ["existing", "available"]
    room.claim()


@pytest.mark.parametrize("field", ["attempt", "max_attempts", "epoch", "created_at", "expires_at", "timeout", "keep"])
@pytest.mark.parametrize("text", ["junk", "NaN", "inf", "-1e9", "0x10", "1.5", "9" * 17])
def test_a_number_that_is_none_fails_its_job(room, field, text):
    room.add("bad", "b")
    room.client.hset(room.q.job("default:bad"), field, text)
    assert [job.id for job in room.claim()] == ["default:b"]
    assert room.job("bad")["state"] == "failed"
    assert room.job("bad")["reason"] == f"BadRecord: the field {field} is no number that can be"


def test_a_place_that_is_none_is_read_as_not_there(room):
    room.add("bad", "b")
    room.client.hset(room.q.job("default:bad"), "place", "junk")
    claimed = {job.id: job for job in room.claim()}
    assert claimed.keys() == {"default:bad", "default:b"}
    epoch = claimed["default:bad"].epoch
    assert room.do(commands.release, worker="n.1", jobs=[Release("default:bad", epoch, "")]) == ["available"]


# --- a key that is gone


@pytest.mark.parametrize("key", KEYS)
def test_every_script_bears_each_missing_key(room, key):
    """Everything that can be called is, and a new job runs to its end."""
    for state in ("scheduled", "retryable", "completed", "failed", "cancelled", "running", "available"):
        seed(room, state, state, **({"expires": "+10000000"} if state != "running" else {}))
    epoch = int(room.job("running")["epoch"])
    room.add("front", priority=1)
    (front,) = room.claim("n.0", limit=1)
    room.do(commands.release, worker="n.0", jobs=[Release(front.id, front.epoch, "")])
    assert room.client.delete(room.q.fixed(key)) or key == "kinds"
    id = "default:running"
    room.do(commands.renew, lease_ms=LEASE_MS, held=[Held(id, epoch, "n.1")])
    room.do(commands.counts)
    room.do(commands.cancel, ["default:available"], partial=True)
    room.do(commands.retry, ["default:failed", "default:cancelled"], partial=True)
    room.do(commands.promote)
    room.do(commands.expire)
    room.do(commands.bury, worker="n.2", why="x", jobs=[])
    room.add("new")
    claimed = room.claim("n.3")
    assert "default:new" in [job.id for job in claimed]
    done = [Done(job.id, job.epoch, b"") for job in claimed]
    assert room.do(commands.complete, worker="n.3", done=done) == ["ok"] * len(done)
    room.watched()
    room.do(commands.purge)
    room.do(commands.clear, states=["completed"])
    room.now += 10**10
    while room.do(commands.prune):
        pass
    if key == "leases":  # only its holder or its node can bring this one back
        room.do(commands.renew, lease_ms=LEASE_MS, held=[Held(id, epoch, "n.1")])
        assert room.do(commands.complete, worker="n.1", done=[Done(id, epoch, b"")]) in (["ok"], ["lost"], ["gone"])


@pytest.mark.parametrize("key", ["groups:async:0", "lanes:async:0:-"])
def test_a_lane_that_nothing_leads_to_any_more_is_found_again(room, key):
    room.add("a", "b")
    room.client.delete(room.q.fixed(key))
    assert [job.id for job in room.claim(limit=1)] == ["default:a"]
    assert [job.id for job in room.claim(limit=1)] == ["default:b"]
    assert not [name for name in room.keyspace.dump() if name.startswith(("levels", "groups", "lanes"))]


@pytest.mark.parametrize("keys", [("groups:async:0", "body:async:0"), ("lanes:async:0:-", "body:async:0")])
def test_a_level_without_work_is_forgotten(room, keys):
    room.add("a")
    room.add("low", priority=-1)
    room.client.delete(*[room.q.fixed(key) for key in keys])
    assert [job.id for job in room.claim()] == ["default:low"]
    assert not [name for name in room.keyspace.dump() if name.startswith(("levels", "groups", "lanes"))]


def test_a_running_job_without_a_lease_is_returned_by_its_node(room):
    epoch = room.held()
    room.client.delete(room.q.fixed("leases"))
    moved = room.do(commands.bury, worker="n.1", why="x", jobs=[Buried("default:a", epoch, "lost")])
    assert moved == [("default:a", "available")]


def test_ids_in_a_lane_that_wait_no_more_are_skipped(room):
    room.add("a", "b")
    body = room.q.body("async:0")
    room.client.xadd(body, {"id": "default:a"})
    room.client.xadd(body, {"id": "default:nobody"})
    assert [job.id for job in room.claim()] == ["default:a", "default:b"]
    assert room.job("a")["attempt"] == "1"
