"""Queues: several of them, paused and resumed, emptied, counted, listed."""

import asyncio

import pytest

from taskq import JobCancelled
from tests.guide.app import app
from tests.waiting import wait_until


@app.task(queue="guide-slow")
async def resize(name: str) -> str:
    await asyncio.sleep(0)
    return f"{name} resized"


@app.task(queue="guide-slow", max_attempts=1)
async def broken() -> None:
    raise ValueError("no")


queue = app.queue("guide-slow")


@pytest.fixture(autouse=True)
def _empty_at_first():
    wait_until(lambda: "guide-slow" in [row["queue"] for row in app.inspector.queues()], what="the node's word for it")
    queue.resume()
    queue.purge()
    queue.clear(states=["completed", "failed", "cancelled"])


def test_a_task_names_its_queue_and_a_job_may_go_to_another():
    assert resize.enqueue("a").queue == "guide-slow"
    assert resize.using(queue="default").enqueue("a").result(timeout=10) == "a resized"


def test_a_paused_queue_hands_out_nothing():
    assert queue.pause()
    assert not queue.pause()
    job = resize.enqueue("a")
    assert queue.counts().paused
    assert queue.counts().available == 1
    assert queue.resume()
    assert job.result(timeout=10) == "a resized"


def test_purge_cancels_what_waits():
    queue.pause()
    jobs = [resize.enqueue("a"), resize.using(delay="1h").enqueue("b")]
    assert queue.purge() == 2
    for job in jobs:
        with pytest.raises(JobCancelled, match="purged"):
            job.result(timeout=10)
    queue.resume()


def test_clear_deletes_what_has_failed():
    broken.enqueue().join(timeout=10)
    assert queue.counts().failed == 1
    assert queue.clear(states=["failed"]) == 1
    assert queue.counts().failed == 0


def test_lists_newest_first():
    jobs = [resize.using(delay="1h").enqueue(str(n)) for n in range(3)]
    page = queue.jobs("scheduled", limit=2)
    assert page["total"] == 3
    assert {job["state"] for job in page["data"]} == {"scheduled"}
    assert {job["id"] for job in page["data"]} <= {job.id for job in jobs}
    assert page["data"][0]["args"] == ["2"]


def test_all_queues_by_name():
    resize.using(delay="1h").enqueue("a")
    rows = {row["queue"]: row for row in app.inspector.queues()}
    assert rows["guide-slow"]["scheduled"] == 1


async def test_every_call_has_its_async_twin():
    assert await app.aping()
    assert await queue.apause()
    job = await resize.aenqueue("a")
    assert (await queue.acounts()).available == 1
    assert (await job.arefresh()).state == "available"
    assert await queue.apurge() == 1
    assert await job.ajoin(timeout=10) == "cancelled"
    assert (await job.aretry()).state == "available"
    assert (await queue.ajobs("available"))["total"] == 1
    assert await job.acancel() == "removed"
    assert await queue.aclear(states=["cancelled"]) == 1
    assert await queue.aresume()


def test_jobs_wait_for_their_queue_and_nothing_else():
    queue.pause()
    waiting = resize.enqueue("a")
    assert resize.using(queue="default").enqueue("b").result(timeout=10) == "b resized"
    assert waiting.refresh().state == "available"
    queue.resume()
    wait_until(lambda: waiting.refresh().state == "completed")
