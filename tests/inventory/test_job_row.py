"""Rows 33–63: what a job's record says at each stage of its life, and what it keeps from one attempt to the next."""

from __future__ import annotations

import json
import re
import time

import pytest

from taskq import JobAlreadyExists, Options, commands, keys
from taskq.commands import Done, Failure, NewJob
from taskq.node.run import new_node_id
from taskq.record import JobRecord
from tests.lua.room import T0, new


def record(room, name="a"):
    """The job as everybody reads it."""
    (found,) = room.run(commands.fetch(room.q, [f"default:{name}"]))
    return JobRecord.from_fields(*found)


def retry(room, job, delay_ms=1_000):
    """The attempt ends badly, as its worker says it."""
    error = json.dumps({"type": "OSError", "message": "no route", "traceback": "…", "at": room.now, "worker": "n-7.1"})
    failure = Failure(job.id, job.epoch, "retry", delay_ms, error, "OSError: no route")
    assert room.do(commands.fail, worker="n-7.1", failures=[failure]) == ["retryable"]


# --- ids


def test_a_node_has_an_id_of_its_own_at_every_start():
    """Nobody can leave it empty or give two processes the same: a node makes its id itself."""
    ids = {new_node_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,64}-\d+-[0-9a-f]{6}", id) for id in ids)


def test_ids_of_jobs_grow(app):
    jobs = []
    for _ in range(5):
        jobs.append(app.by_name("x").enqueue())
        until = time.time_ns() // 1_000_000
        while time.time_ns() // 1_000_000 <= until:
            pass
    assert [job.id for job in jobs] == sorted({job.id for job in jobs})


def test_the_default_queue_is_named_default(app):
    assert app.by_name("x").enqueue().queue == "default"
    assert app.by_name("x").using(queue="email").enqueue().queue == "email"


def test_an_id_that_stands_twice_in_a_batch_adds_nothing(app):
    twice = app.by_name("x").using(id="twice")
    calls = [app.by_name("x").call(1), twice.call(2), twice.call(3)]
    with pytest.raises(JobAlreadyExists, match="default:twice"):
        app.enqueue_many(calls, exists="raise")
    assert app.inspector.queues()[0]["available"] == 0
    assert [job.created for job in app.enqueue_many(calls)] == [True, True, False]
    assert app.job("default:twice").to_dict()["args"] == [2]


# --- a life


def test_a_claim_says_who_and_when(room):
    room.add("a")
    fresh = record(room)
    assert (fresh.state, fresh.attempt, fresh.worker, fresh.node, fresh.started_at_ms) == (
        "available",
        0,
        None,
        None,
        None,
    )
    room.now += 250
    (job,) = room.claim("n-7.1")
    held = record(room)
    assert (held.state, held.attempt, held.worker, held.node) == ("running", 1, "n-7.1", "n-7")
    assert (held.created_at_ms, held.started_at_ms, held.epoch) == (T0, T0 + 250, T0 + 250)
    assert (job.attempt, job.epoch, held.finished_at_ms) == (1, held.epoch, None)


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_an_end_is_dated(room, end):
    epoch = room.held()
    room.now += 40
    if end == "completed":
        room.do(commands.complete, worker="n.1", done=[Done("default:a", epoch, b"\x07")])
    elif end == "failed":
        failure = Failure("default:a", epoch, "fail", 0, '{"type":"E"}', "E: no")
        room.do(commands.fail, worker="n.1", failures=[failure])
    else:
        room.do(commands.cancel, ["default:a"])
        room.do(commands.release, worker="n.1", jobs=[commands.Release("default:a", epoch, "")])
    ended = record(room)
    assert (ended.state, ended.finished_at_ms) == (end, T0 + 40)
    assert ended.result() == (7 if end == "completed" else None)
    assert bool(ended.reason) is (end != "completed")


def test_each_claim_is_an_attempt_and_its_time_is_the_epoch(room):
    room.add("a")
    for attempt in (1, 2, 3):
        (job,) = room.claim("n-7.1")
        assert (job.attempt, job.epoch) == (attempt, room.now)
        if attempt < 3:
            retry(room, job, 700 * attempt)
            assert record(room).scheduled_at_ms == room.now + 700 * attempt
            room.now += 700 * attempt
    assert record(room).started_at_ms == T0, "the first start of this life"


def test_an_attempts_failure_is_appended(room):
    room.add("a")
    for _ in (1, 2):
        retry(room, room.claim("n-7.1")[0])
        room.now += 1_000
    errors = record(room).errors
    assert [(each.attempt, each.type, each.message, each.at_ms) for each in errors] == [
        (1, "OSError", "no route", T0),
        (2, "OSError", "no route", T0 + 1_000),
    ]
    assert record(room).attempted_by == ("n-7", "n-7"), "by attempt"


def test_a_job_keeps_the_last_twenty_of_its_errors(room):
    room.add("a", max_attempts=30)
    for _ in range(25):
        retry(room, room.claim("n-7.1")[0], 0)
    assert [error.attempt for error in record(room).errors] == list(range(6, 26))


def test_a_retry_is_the_same_job(room):
    """Row 88: one record, in which only the attempt's own traces change."""
    kept = {"payload": b"\x92\x91\x01\x80", "tags": '["x"]', "meta": '{"request_id": "7"}', "timeout": "30000"}
    room.do(commands.enqueue, [NewJob("default:a", "", "mail.send", "async", 5, "", "", kept)])
    before = record(room)
    room.now += 100
    retry(room, room.claim("n-7.1")[0])
    after = record(room)
    assert room.do(commands.counts)[:8] == (0, 0, 0, 0, 1, 0, 0, 0)
    same = ("id", "task", "queue", "priority", "max_attempts", "tags", "meta", "timeout_ms", "created_at_ms")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
    assert after.fields[b"payload"] == kept["payload"]
    assert (after.state, after.attempt, len(after.errors)) == ("retryable", 1, 1)


def test_a_retry_by_hand_is_a_new_life(room):
    room.add("a", max_attempts=1)
    (job,) = room.claim("n-7.1")
    failure = Failure(job.id, job.epoch, "fail", 0, '{"type":"E"}', "E: no")
    room.do(commands.fail, worker="n-7.1", failures=[failure])
    room.now += 5_000
    assert room.do(commands.retry, [job.id]) == ["available"]
    again = record(room)
    assert (again.state, again.attempt, again.errors, again.reason) == ("available", 0, (), None)
    assert (again.started_at_ms, again.finished_at_ms, again.scheduled_at_ms) == (None, None, None)
    room.now += 10
    (second,) = room.claim("n-7.1")
    assert (second.attempt, second.epoch > job.epoch) == (1, True)
    assert record(room).started_at_ms == room.now


@pytest.mark.parametrize("payload", [bytes(range(256)), b"\xc1", b"130775545883395173", b"[]"])
def test_no_script_touches_a_payload(room, payload):
    """SER-03, row 40: byte for byte the same at the worker, whatever way the job has gone."""
    room.do(commands.enqueue, [new("a", due="+50", max_attempts=1, payload=payload)])
    room.now += 50
    (job,) = room.claim("n-7.1")
    room.do(commands.release, worker="n-7.1", jobs=[commands.Release(job.id, job.epoch, "")])
    (job,) = room.claim("n-7.1")
    room.do(commands.snooze, worker="n-7.1", grace_ms=0, jobs=[commands.Snoozed(job.id, job.epoch, "snooze", 50, "")])
    room.now += 50
    (job,) = room.claim("n-7.1")
    failure = Failure(job.id, job.epoch, "fail", 0, '{"type":"E"}', "E: no")
    room.do(commands.fail, worker="n-7.1", failures=[failure])
    room.do(commands.retry, [job.id])
    (job,) = room.claim("n-7.1")
    retry_failure = Failure(job.id, job.epoch, "retry", 50, '{"type":"E"}', "E: no")
    room.do(commands.fail, worker="n-7.1", failures=[retry_failure])
    assert record(room).fields[b"payload"] == job.fields[b"payload"] == payload


def test_the_apps_defaults_are_those_of_its_jobs(app, raw, namespace):
    """Row 44, 118: manager-wide, three unless told; the stored record names only what differs from three."""
    app.configure(defaults=Options(max_attempts=4, timeout=9))

    @app.task(name="x")
    def x(): ...

    assert x.enqueue().refresh().record.max_attempts == 4
    assert x.timeout_ms == 9_000
    assert x.using(max_attempts=3).enqueue().refresh().record.max_attempts == 3
    assert raw.hget(keys.queue(namespace, "default").job(x.enqueue().id), "max_attempts") == b"4"
