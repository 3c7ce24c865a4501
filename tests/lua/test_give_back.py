"""release and snooze: a holder lets go, and the attempt is refunded."""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.commands import Release, Snoozed
from tests.lua.room import T0, new


def release(room, epoch, executor="", name="a", worker="n.1"):
    (word,) = room.do(commands.release, worker=worker, jobs=[Release(f"default:{name}", epoch, executor)])
    return word


def snooze(room, epoch, kind="snooze", *, delay_ms=1000, grace_ms=60_000, name="a"):
    jobs = [Snoozed(f"default:{name}", epoch, kind, delay_ms, "no such task here")]
    (word,) = room.do(commands.snooze, worker="n.1", grace_ms=grace_ms, jobs=jobs)
    return word


# --- release


def test_it_goes_to_the_front_at_its_own_place(room):
    epoch = room.held()
    room.now += 5
    room.add("b")
    room.look()
    room.now += 5
    assert release(room, epoch) == "available"
    assert room.changed() == {
        "job:default:a state": "available",
        "job:default:a attempt": "0",
        "job:default:a released": "1",
        "job:default:a ended": f"{epoch} release",
        "leases default:a": None,
        "front:async:0 default:a": T0,
        "lanes:async:0:- async:0": T0,
        "wake:async 1": room.now,
    }
    assert room.told == {"available": ["default:a"]}
    assert [job.id for job in room.claim()] == ["default:a", "default:b"]


def test_released_jobs_keep_the_order_they_had(room):
    for name in "abcd":
        room.add(name)
        room.now += 1
    held = room.claim(limit=3)
    for job in reversed(held):
        assert release(room, job.epoch, name=job.id[-1]) == "available"
    assert [job.id[-1] for job in room.claim()] == list("abcd")


def test_a_job_that_was_late_keeps_the_place_it_got_when_it_became_due(room):
    room.add("late", due="+50")
    room.now += 10
    room.add("b")
    room.now += 40
    held = {job.id: job.epoch for job in room.claim()}
    assert list(held) == ["default:b", "default:late"]
    for id, epoch in reversed(held.items()):
        release(room, epoch, name=id.partition(":")[2])
    assert room.keyspace.dump()["front:async:0"] == {"default:b": T0 + 10, "default:late": T0 + 50}


def test_another_class_moves_it_there_refunded(room):
    epoch = room.held()
    room.look()
    assert release(room, epoch, "thread") == "available"
    changed = room.changed()
    assert changed["job:default:a class"] == "thread"
    assert changed["front:thread:0 default:a"] == T0
    assert changed["classes thread"] == "executor=thread"
    assert changed["meta class_version"] == "2"
    assert changed["wake:thread 1"] == T0
    assert "wake:async 1" not in changed
    assert [job.id for job in room.claim(free={"thread": 1})] == ["default:a"]


def test_joining_a_lane_of_younger_and_older_jobs_it_leads(room):
    """A lane stands by the time of its head, and the front is its head."""
    room.add("old", executor="thread")
    room.now += 10
    room.add("a")
    (job,) = room.claim(free={"async": 1})
    release(room, job.epoch, "thread")
    assert room.keyspace.dump()["lanes:thread:0:-"] == {"thread:0": T0 + 10}


def test_the_same_class_changes_nothing_of_it(room):
    release(room, room.held(), "async")
    assert "class" not in room.job()
    assert room.keyspace.dump()["meta"]["class_version"] == "1"


def test_a_job_whose_cancel_was_asked_is_cancelled(room):
    epoch = room.held()
    room.do(commands.cancel, ["default:a"])
    room.look()
    assert release(room, epoch) == "cancelled"
    changed = room.changed()
    assert changed["job:default:a reason"] == "cancelled while running"
    assert changed["cancelled default:a"] == T0
    assert not any(row.startswith("front") for row in changed)


def test_attempts_are_refunded_twenty_times_in_a_row_then_they_count(room):
    room.add("a", max_attempts=2)
    words = []
    for _ in range(22):
        (job,) = room.claim()
        words.append((release(room, job.epoch), int(room.job()["attempt"])))
    assert words == [("available", 0)] * 20 + [("available", 1), ("failed", 2)]
    assert room.job()["reason"] == "attempts exhausted: given back 20 times in a row"


@pytest.mark.parametrize("ran", ["fail", "snooze", "lost"])
def test_in_a_row_means_that_it_did_not_run_in_between(room, ran):
    room.add("a", max_attempts=9)
    for _ in range(20):
        (job,) = room.claim()
        release(room, job.epoch)
    (job,) = room.claim()
    if ran == "fail":
        failures = [commands.Failure(job.id, job.epoch, "retry", 0, "{}", "x")]
        room.do(commands.fail, worker="n.1", failures=failures)
    elif ran == "snooze":
        snooze(room, job.epoch, delay_ms=0)
    else:
        room.do(commands.bury, worker="n.1", why="x", jobs=[commands.Buried(job.id, job.epoch, "lost")])
    (job,) = room.claim("n.2")
    before = job.attempt
    assert release(room, job.epoch, worker="n.2") == "available"
    assert int(room.job()["attempt"]) == before - 1


def test_said_again_release_is_ok(room):
    epoch = room.held()
    release(room, epoch)
    room.look()
    assert release(room, epoch, "thread") == "ok"
    assert room.changed() == {}


# --- snooze


def test_a_snoozed_job_waits_and_its_attempt_is_refunded(room):
    epoch = room.held()
    room.look()
    assert snooze(room, epoch) == "scheduled"
    assert room.changed() == {
        "job:default:a state": "scheduled",
        "job:default:a attempt": "0",
        "job:default:a scheduled_at": str(T0 + 1000),
        "job:default:a ended": f"{epoch} snooze",
        "leases default:a": None,
        "scheduled default:a": T0 + 1000,
        "wake:async 1": T0,
    }


def test_a_snooze_may_repeat_for_ever(room):
    room.add("a", max_attempts=1)
    for _ in range(50):
        (job,) = room.claim()
        assert snooze(room, job.epoch, delay_ms=0) == "scheduled"


def test_an_unknown_job_fails_once_the_grace_has_passed(room):
    room.add("a", max_attempts=1)
    words = []
    for _ in range(3):
        (job,) = room.claim()
        words.append(snooze(room, job.epoch, "unknown", delay_ms=0, grace_ms=2000))
        room.now += 1000
    assert words == ["scheduled", "scheduled", "failed"]
    assert room.job()["reason"] == "no such task here"
    assert int(room.job()["attempt"]) <= 1


@pytest.mark.parametrize("kind", ["snooze", "unknown"])
def test_a_cancel_ends_a_snooze(room, kind):
    epoch = room.held()
    room.do(commands.cancel, ["default:a"])
    assert snooze(room, epoch, kind) == "cancelled"


def test_a_snooze_far_ahead_is_exact(room):
    hundred_years = 100 * 365 * 86_400_000
    snooze(room, room.held(), delay_ms=hundred_years)
    assert room.job()["scheduled_at"] == str(T0 + hundred_years)
    assert room.keyspace.dump()["scheduled"] == {"default:a": T0 + hundred_years}


def test_the_whole_batch_answers(room):
    room.do(commands.enqueue, [new(name) for name in "ab"])
    held = room.claim()
    jobs = [Release(job.id, job.epoch, "") for job in held] + [Release("default:x", 1, "")]
    assert room.do(commands.release, worker="n.1", jobs=jobs) == ["available", "available", "gone"]
