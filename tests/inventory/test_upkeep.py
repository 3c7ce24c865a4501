"""Rows 114, 126 and 238: what counts can be read, what ended runs again as if new, and how long an end is kept."""

from __future__ import annotations

import pytest

from taskq import Options, TaskQ, commands
from taskq.commands import Done, Failure

DAY_MS = 86_400_000


def ended(room, state, **fields):
    """A job with a past, in this state."""
    room.add("a", **fields)
    if state == "cancelled":
        room.do(commands.cancel, ["default:a"])
        return
    (job,) = room.claim()
    if state == "completed":
        room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"\x07")])
    else:
        verb = "retry" if state == "retryable" else "fail"
        failure = Failure(job.id, job.epoch, verb, DAY_MS, '{"type":"E"}', "E: no")
        room.do(commands.fail, worker="n.1", failures=[failure])
    assert room.job()["state"] == state


def test_what_counts_for_jobs_can_be_read():
    app = TaskQ(defaults=Options(queue="low", max_attempts=9, timeout=5))

    @app.task(name="own", queue="email", max_attempts=2, timeout="1m")
    def own(): ...

    @app.task(name="plain")
    def plain(): ...

    assert (app.defaults.queue, app.defaults.max_attempts, app.defaults.timeout_ms) == ("low", 9, 5_000)
    assert [(each.queue, each.options.max_attempts, each.timeout_ms) for each in (own, plain)] == [
        ("email", 2, 60_000),
        ("low", 9, 5_000),
    ]
    assert TaskQ().task(name="bare")(lambda: None).timeout_ms is None, "none unless told"


@pytest.mark.parametrize("state", ["failed", "completed", "cancelled", "retryable"])
def test_whatever_has_ended_or_waits_for_its_backoff_runs_again_now(room, state):
    ended(room, state)
    room.now += 5_000
    assert room.do(commands.retry, ["default:a"]) == ["available"]
    job = room.job()
    assert (job["state"], job["attempt"]) == ("available", "0")
    gone = {"result", "finished_at", "reason", "started_at", "scheduled_at", "error:1"}
    assert {field for field in gone & job.keys() if job[field]} == set()
    (claimed,) = room.claim()
    assert (claimed.id, claimed.attempt) == ("default:a", 1)


@pytest.mark.parametrize("state, days", [("completed", 1), ("failed", 14), ("cancelled", 14)])
def test_an_end_is_kept_for_its_days_and_no_longer(room, state, days):
    ended(room, state)
    room.now += days * DAY_MS - 1
    room.do(commands.prune)
    assert room.job()["state"] == state
    room.now += 1
    room.do(commands.prune)
    assert room.job() is None


@pytest.mark.parametrize("state", ["available", "scheduled", "running", "retryable"])
def test_what_has_not_ended_is_never_pruned(room, state):
    if state == "retryable":
        ended(room, state)
    else:
        room.add("a", due="+1000" if state == "scheduled" else "")
        if state == "running":
            room.claim()
    room.now += 400 * DAY_MS
    room.do(commands.prune)
    assert room.job()["state"] == state
