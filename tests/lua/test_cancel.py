"""cancel and retry: by hand, all or none, or an answer for each."""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.errors import InvalidTransition, JobNotFound
from tests.lua.room import LEASE_MS, T0, new

WAITING = ("available", "scheduled", "retryable")
FORTNIGHT_MS = 14 * 86_400_000


def seed(room, state, name="a", **options):
    """A job in that state."""
    id = f"default:{name}"
    if state == "scheduled":
        room.add(name, due="+1000", **options)
        return id
    room.add(name, **options)
    if state == "available":
        return id
    if state == "cancelled":
        room.do(commands.cancel, [id])
        return id
    (job,) = room.claim(free={"async": 1})
    if state == "completed":
        room.do(commands.complete, worker="n.1", done=[commands.Done(id, job.epoch, b"r")])
    elif state in {"retryable", "failed"}:
        verb = "retry" if state == "retryable" else "fail"
        failures = [commands.Failure(id, job.epoch, verb, 1000, "{}", "broken")]
        room.do(commands.fail, worker="n.1", failures=failures)
    return id


# --- cancel


@pytest.mark.parametrize("state", WAITING)
def test_a_waiting_job_is_cancelled_at_once(room, state):
    id = seed(room, state)
    room.look()
    assert room.do(commands.cancel, [id]) == ["removed"]
    changed = room.changed()
    leaves = {
        "available": {
            "body:async:0": [],
            "levels:async 0": None,
            "groups:async:0 -": None,
            "lanes:async:0:- async:0": None,
            "empty async:0": T0,
            f"job:{id} entry": "gone",
        },
        "scheduled": {f"scheduled {id}": None},
        "retryable": {f"retryable {id}": None},
    }
    assert changed == leaves[state] | {
        f"job:{id} state": "cancelled",
        f"job:{id} reason": "cancelled",
        f"job:{id} finished_at": str(T0),
        f"cancelled {id}": T0,
        f"prune {id}": T0 + FORTNIGHT_MS,
    }
    assert room.told == {"cancelled": [id]}


def test_a_job_that_came_back_leaves_the_front(room):
    epoch = room.held()
    room.do(commands.release, worker="n.1", jobs=[commands.Release("default:a", epoch, "")])
    room.do(commands.cancel, ["default:a"])
    assert not [name for name in room.keyspace.dump() if name.startswith(("front", "lanes", "levels"))]
    assert room.claim() == []


def test_from_the_middle_of_a_lane_the_others_stay(room):
    room.add("a", "b", "c")
    room.look()
    room.do(commands.cancel, ["default:b"])
    changed = room.changed()
    assert changed["body:async:0"] == ["default:a", "default:c"]
    assert not {"levels:async 0", "lanes:async:0:- async:0", "empty async:0"} & changed.keys()


def test_the_head_of_a_lane_gives_its_position_to_the_next(room):
    room.add("a")
    room.now += 5
    room.add("b")
    room.do(commands.cancel, ["default:a"])
    assert room.keyspace.dump()["lanes:async:0:-"] == {"async:0": T0 + 5}


def test_a_running_job_is_asked(room):
    id = seed(room, "running")
    room.look()
    assert room.do(commands.cancel, [id]) == ["requested"]
    assert room.changed() == {f"job:{id} cancel": "1"}
    assert room.told == {"cancelling": [id]}
    assert room.do(commands.cancel, [id], force=True) == ["requested"]
    assert room.changed() == {f"job:{id} cancel": "force"}


def test_a_running_job_may_be_refused(room):
    id = seed(room, "running")
    room.look()
    with pytest.raises(InvalidTransition, match="running"):
        room.do(commands.cancel, [id], running=False)
    assert room.do(commands.cancel, [id], running=False, partial=True) == ["running"]
    assert room.changed() == {}


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_what_has_ended_is_too_late(room, state):
    id = seed(room, state)
    room.look()
    with pytest.raises(InvalidTransition, match=state):
        room.do(commands.cancel, [id])
    assert room.do(commands.cancel, [id], partial=True) == ["too_late"]
    assert room.changed() == {}


def test_an_unknown_id_leaves_no_mark_that_hits_a_later_job(room):
    with pytest.raises(JobNotFound, match="default:a"):
        room.do(commands.cancel, ["default:a"])
    assert room.do(commands.cancel, ["default:a"], partial=True) == ["missing"]
    assert room.changed() == {}
    room.add("a")
    assert [job.id for job in room.claim()] == ["default:a"]


def test_all_or_none(room):
    waiting, ended = seed(room, "available"), seed(room, "cancelled", "b")
    room.look()
    with pytest.raises(InvalidTransition):
        room.do(commands.cancel, [waiting, ended])
    assert room.changed() == {}
    assert room.do(commands.cancel, [waiting, ended, "default:x"], partial=True) == ["removed", "too_late", "missing"]
    assert room.job()["state"] == "cancelled"


@pytest.mark.parametrize("call", ["cancel", "retry"])
def test_an_id_said_twice_moves_once(room, call):
    id = seed(room, "available" if call == "cancel" else "failed")
    words = room.do(getattr(commands, call), [id, id])
    assert words == ["removed" if call == "cancel" else "available"] * 2
    stats = room.keyspace.dump()["stats"]
    assert stats["cancelled t" if call == "cancel" else "available t"] == "1"


def test_a_cancelled_expiring_job_does_not_expire_too(room):
    room.add("a", expires="+100")
    room.do(commands.cancel, ["default:a"])
    assert "expiring" not in room.keyspace.dump()


# --- retry


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled", "retryable"])
def test_a_job_begins_a_new_life(room, state):
    id = seed(room, state, expires="+9000", max_attempts=2)
    before = room.job()
    room.look()
    room.now += 50
    assert room.do(commands.retry, [id]) == ["available"]
    after = room.job()
    assert after == {
        field: value
        for field, value in before.items()
        if field in {"task", "created_at", "max_attempts", "epoch", "worker", "ended"}
    } | {"state": "available", "attempt": "0", "started_at": "", "place": str(room.now), "entry": "*"}
    changed = room.changed()
    assert changed[f"{state} {id}"] is None
    assert changed["body:async:0"] == [id]
    assert changed["wake:async 1"] == room.now
    assert not {"prune", "expiring"} & room.keyspace.dump().keys()
    (job,) = room.claim()
    assert (job.attempt, job.epoch > int(before.get("epoch", 0))) == (1, True)


@pytest.mark.parametrize("state", ["available", "scheduled", "running"])
def test_what_waits_or_runs_is_not_retried(room, state):
    id = seed(room, state)
    room.look()
    with pytest.raises(InvalidTransition, match=state):
        room.do(commands.retry, [id])
    (word,) = room.do(commands.retry, [id], partial=True)
    assert word == ("waiting" if state == "available" else state)
    assert room.changed() == {}


def test_retry_all_or_none(room):
    failed, running = seed(room, "failed"), seed(room, "running", "b")
    room.look()
    with pytest.raises(InvalidTransition):
        room.do(commands.retry, [failed, running])
    with pytest.raises(JobNotFound):
        room.do(commands.retry, [failed, "default:x"])
    assert room.changed() == {}
    words = room.do(commands.retry, [failed, running, "default:x"], partial=True)
    assert words == ["available", "running", "missing"]


@pytest.mark.parametrize("partial", [False, True])
def test_a_retry_sent_again_is_answered_as_before(room, partial):
    """Its answer got lost; meanwhile the job may wait, run, or have ended again: it isn't run once more."""
    id = seed(room, "failed")
    for _ in range(3):
        assert room.do(commands.retry, [id], token="t1", partial=partial) == ["available"]
        room.look()
        assert room.do(commands.retry, [id], token="t1", partial=partial) == ["available"]
        assert room.changed() == {}
        if room.job()["state"] == "available":
            (job,) = room.claim()
        else:
            room.do(commands.complete, worker=room.job()["worker"], done=[commands.Done(id, job.epoch, b"")])
    assert room.do(commands.retry, [id], token="t") == ["available"]
    with pytest.raises(InvalidTransition):
        room.do(commands.retry, [id], token="t1")


@pytest.mark.parametrize("state, word", [("available", "removed"), ("running", "requested")])
def test_a_cancel_sent_again_is_answered_as_before(room, state, word):
    id = seed(room, state)
    assert room.do(commands.cancel, [id], token="t1") == [word]
    room.look()
    assert room.do(commands.cancel, [id], token="t1") == [word]
    assert room.changed() == {}
    assert room.do(commands.cancel, [id], token="t2", partial=True) == ["too_late" if word == "removed" else word]


def test_those_who_wait_for_it_hear_of_the_new_end_too(room):
    id = seed(room, "running")
    room.run(commands.wait(room.q, id))
    with room.client.pubsub() as heard:
        heard.subscribe(room.q.done(id))
        assert heard.get_message(timeout=5)["type"] == "subscribe"
        for _ in range(2):
            epoch = int(room.job()["epoch"])
            room.do(commands.fail, worker="n.1", failures=[commands.Failure(id, epoch, "fail", 0, "{}", "x")])
            assert heard.get_message(timeout=5)["data"] == b"failed"
            room.do(commands.retry, [id])
            room.claim()


def test_a_cancel_of_the_earlier_life_does_not_hit_the_new_one(room):
    id = seed(room, "running")
    room.do(commands.cancel, [id], force=True)
    epoch = int(room.job()["epoch"])
    room.do(commands.release, worker="n.1", jobs=[commands.Release(id, epoch, "")])
    room.do(commands.retry, [id])
    (job,) = room.claim()
    assert room.do(commands.renew, lease_ms=LEASE_MS, held=[commands.Held(id, job.epoch, "n.1")]) == ["ok"]


def test_retry_forgets_how_often_it_was_given_back(room):
    room.add("a", max_attempts=1)
    for _ in range(20):
        (job,) = room.claim()
        room.do(commands.release, worker="n.1", jobs=[commands.Release(job.id, job.epoch, "")])
    room.do(commands.cancel, ["default:a"])
    room.do(commands.retry, ["default:a"])
    (job,) = room.claim()
    words = room.do(commands.release, worker="n.1", jobs=[commands.Release(job.id, job.epoch, "")])
    assert words == ["available"]


def test_pause_retry_resume_loses_nobody(room):
    for n in range(5):
        seed(room, "failed", f"f{n}")
    room.do(commands.pause)
    room.do(commands.retry, [f"default:f{n}" for n in range(5)])
    room.do(commands.enqueue, [new(f"e{n}") for n in range(5)] + [new(f"d{n}", due="+10") for n in range(5)])
    room.now += 10
    room.do(commands.promote)
    assert room.do(commands.claim, worker="n.9", request=1, lease_ms=LEASE_MS, limit=50, free={"async": 50}).jobs == []
    room.do(commands.resume)
    assert len(room.claim()) == 15
