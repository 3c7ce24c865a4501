"""What one call may carry: 250 jobs, and 1 MiB unless it carries one job."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from taskq import commands
from taskq.commands import Buried, Done, Failure, Held, Release, Snoozed
from taskq.record import JobRecord

MANY = [f"default:j{n}" for n in range(251)]


@pytest.mark.parametrize(
    "name,named",
    [
        ("complete", {"worker": "n.1", "done": [Done(id, 1, b"") for id in MANY]}),
        ("fail", {"worker": "n.1", "failures": [Failure(id, 1, "fail", 0, "{}", "x") for id in MANY]}),
        ("release", {"worker": "n.1", "jobs": [Release(id, 1, "") for id in MANY]}),
        ("snooze", {"worker": "n.1", "grace_ms": 1, "jobs": [Snoozed(id, 1, "snooze", 1, "") for id in MANY]}),
        ("renew", {"lease_ms": 8000, "held": [Held(id, 1, "n.1") for id in MANY]}),
        ("bury", {"worker": "n.1", "why": "x", "jobs": [Buried(id, 1, "lost") for id in MANY]}),
    ],
)
def test_more_than_250_jobs_are_refused_before_anything_is_written(room, name, named):
    room.add("a")
    room.look()
    with pytest.raises(ResponseError, match="at most 250 jobs"):
        room.do(getattr(commands, name), **named)
    assert room.changed() == {}


@pytest.mark.parametrize("verb", [commands.cancel, commands.retry])
def test_more_than_250_ids_are_refused(room, verb):
    with pytest.raises(ResponseError, match="at most 250 jobs"):
        room.do(verb, MANY)


@pytest.mark.parametrize("from_front", [False, True])
def test_a_claim_stops_before_its_reply_is_larger_than_a_mebibyte(room, from_front):
    """What it doesn't give stays at its place, and somebody is woken for it."""
    for name in "abcde":
        room.add(name, payload=b"x" * 400_000)
    if from_front:
        for job in room.claim("n.9", 2) + room.claim("n.9", 1):
            room.do(commands.release, worker="n.9", jobs=[Release(job.id, job.epoch, "")])
    room.client.delete(room.q.wake("async"))
    given = [[job.id for job in room.claim()] for _ in range(3)]
    assert given == [["default:a", "default:b"], ["default:c", "default:d"], ["default:e"]]
    assert room.client.exists(room.q.wake("async")) or not room.claim()


def test_one_job_larger_than_that_is_given_alone(room):
    room.add("a", payload=b"x" * 1_500_000)
    room.add("b")
    assert [[job.id for job in room.claim()] for _ in range(2)] == [["default:a"], ["default:b"]]


def test_a_cancelled_job_keeps_the_attempt_that_was_stopped(room):
    epoch = room.held()
    room.do(commands.cancel, ["default:a"])
    assert room.do(commands.release, worker="n.1", jobs=[Release("default:a", epoch, "")]) == ["cancelled"]
    assert room.job()["attempt"] == "1"


def test_a_repeat_with_another_verb_is_no_repeat(room):
    """`ok` would say that the job failed for good, when it waits for its retry."""
    epoch = room.held()
    assert room.do(commands.fail, worker="n.1", failures=[Failure("default:a", epoch, "retry", 9, "{}", "x")]) == [
        "retryable"
    ]
    assert room.do(commands.fail, worker="n.1", failures=[Failure("default:a", epoch, "fail", 0, "{}", "x")]) == [
        "lost"
    ]


def test_why_a_job_was_handed_back_is_shown_while_it_waits(room):
    epoch = room.held()
    room.do(
        commands.snooze,
        worker="n.1",
        grace_ms=9000,
        jobs=[Snoozed("default:a", epoch, "unknown", 10, "no task t")],
    )
    ((_, fields),) = room.run(commands.fetch(room.q, ["default:a"]))
    assert JobRecord.from_fields("default:a", fields).to_dict()["reason"] == "no task t"
    room.now += 10
    (job,) = room.claim()
    room.do(commands.complete, worker="n.1", done=[Done("default:a", job.epoch, b"")])
    ((_, fields),) = room.run(commands.fetch(room.q, ["default:a"]))
    assert JobRecord.from_fields("default:a", fields).to_dict()["reason"] is None
