"""Rows 342–463: where work runs, what its status is, what an attempt hands on, and what a claim leaves when it ends."""

from __future__ import annotations

import pytest

from taskq import ClaimNotFound, JobNotFound, LeaseLost, commands, keys
from tests.lua.room import T0
from tests.waiting import wait_until

DAY_MS = 86_400_000


@pytest.fixture
def task(app):
    return app.by_name("render", queue="video")


def claimed(app, **options):
    """The only waiting job, claimed by an executor."""
    (job,) = app.client.claim("video", worker="ext-1", **options)
    return job


def test_work_runs_here_or_is_sent_as_its_caller_says(app):
    """Row 342."""
    ran = []

    @app.task(name="send")
    def send(to):
        ran.append(to)
        return len(ran)

    assert send("a") == 1
    job = send.enqueue("b")
    assert ran == ["a"]
    assert job.refresh().state == "available"


def test_a_closed_app_leaves_no_connection(app, raw):
    """Row 362."""
    before = len(raw.client_list())
    app.ping()
    assert len(raw.client_list()) > before
    app.close()
    wait_until(lambda: len(raw.client_list()) == before, what="its connections closed")


def test_a_status_is_found_by_id_or_said_to_be_none(app, task):
    """Rows 363 and 365."""
    job = task.enqueue()
    assert app.client.job(job.id).state == "available"
    claimed(app)
    assert app.client.job(job.id).state == "running"
    found = app.client.jobs([job.id, "video:nobody"])
    assert [each and each.state for each in found] == ["running", None]
    for ask in (lambda: app.client.job("video:nobody"), app.job("video:nobody").refresh):
        with pytest.raises(JobNotFound):
            ask()


def test_a_retry_is_told_what_became_of_the_attempt_before(app, task):
    """Rows 358, 369 and 384: the number of the attempt says whether it is a retry."""
    task.enqueue("a.mov")
    first = claimed(app)
    assert (first.attempt, first.record.errors) == (1, ())
    app.client.fail(first.token, "no such codec", delay=0)
    second = claimed(app)
    assert second.attempt == 2
    assert [(each.attempt, each.message) for each in second.record.errors] == [(1, "no such codec")]
    assert second.arguments() == (("a.mov",), {})


def test_released_it_is_nobodys_and_waits_at_its_place(app, task):
    """Row 411, and its unknown token."""
    first, second = task.enqueue(), task.enqueue()
    offer = claimed(app, start=False, limit=1)
    assert offer.id == first.id
    app.client.release(offer.token)
    assert (first.refresh().state, first.attempt) == ("available", 0)
    assert app.client.leases("video") == []
    with pytest.raises(ClaimNotFound):
        app.client.start(offer.token)
    assert [job.id for job in app.client.claim("video", worker="ext-2", limit=2)] == [first.id, second.id]
    for unknown in ("", "nonsense"):
        with pytest.raises(ClaimNotFound):
            app.client.release(unknown)


def test_the_oldest_is_claimed_first(room):
    """Rows 156, 408 and 409: within a priority by time, whatever the order in which they were enqueued."""
    room.add("late", due="+300")
    room.add("early", due="+100")
    room.add("now", "then")
    room.now += 50
    assert [job.id for job in room.claim(limit=1)] == ["default:now"]
    room.now += 450
    assert [job.id for job in room.claim(limit=9)] == ["default:then", "default:early", "default:late"]


def test_what_nobody_takes_is_never_dropped(room):
    """Row 416: no sweep takes a waiting job, however long it waits."""
    room.add("a")
    for _ in range(400):
        room.now += DAY_MS
        for sweep in (commands.promote, commands.expire, commands.prune, commands.reap):
            options = {"lease_ms": 8_000} if sweep is commands.reap else {}
            room.do(sweep, **options)
    assert (room.job()["state"], room.job()["created_at"]) == ("available", str(T0))
    assert [job.id for job in room.claim()] == ["default:a"]


def test_with_its_end_a_lease_and_its_claim_are_gone(app, task, raw, namespace):
    """Rows 412, 432 and 463."""
    job = task.enqueue()
    mine = claimed(app)
    assert app.client.lease(mine.attempt_key).id == job.id
    app.client.complete(mine.token)
    with pytest.raises(LeaseLost):
        app.client.lease(mine.attempt_key)
    with pytest.raises(ClaimNotFound):
        app.client.get_claim(mine.token)
    assert app.inspector.active(queue="video")["data"] == []
    assert not raw.exists(keys.queue(namespace, "video").fixed("leases"))
