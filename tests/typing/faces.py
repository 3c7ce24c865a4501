"""The rest of the public face: clients, queues, the current job, errors, and everything by `import *`."""

from __future__ import annotations

from typing import assert_type

from taskq import *  # noqa: F403 (that it is typed is what this file is about)
from taskq import AsyncClient, Client, CurrentJob, Discard, JobFailed, Retry, Snooze, State, TaskQ, current

app = TaskQ()


def client(made: Client) -> None:
    assert_type(made.cancel("default:x"), str)
    assert_type(made.cancel_many(["default:x"], partial=True), list[str])
    assert_type(made.retry("default:x"), str)
    assert_type(app.client, Client)
    with made as client:
        assert_type(client, Client)


async def async_client(made: AsyncClient) -> None:
    assert_type(await made.cancel("default:x"), str)
    assert_type(await made.pause("default"), bool)
    assert_type(app.aclient, AsyncClient)
    async with made as client:
        assert_type(client, AsyncClient)


async def queues() -> None:
    queue = app.queue("email")
    assert_type(queue.pause(), bool)
    assert_type(await queue.apurge(states=["scheduled"]), int)
    assert_type(queue.counts().running, int)
    assert_type((await queue.acounts()).paused, bool)
    queue.jobs("failed")
    queue.jobs(State.FAILED)


@app.task
def in_a_job() -> None:
    job = current()
    assert_type(job, CurrentJob)
    assert_type(job.epoch, int)
    assert_type(job.meta, dict[str, str])
    if job.is_last_attempt:
        raise Discard("enough")
    if job.cancel_requested:
        raise Snooze("5m")
    raise Retry(delay=5)


def failures() -> None:
    try:
        assert_type(in_a_job.enqueue().join(timeout=5), State)
    except JobFailed as error:
        assert_type(error.job_id, str | None)
        assert_type(error.reason, str | None)
