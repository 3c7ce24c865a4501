"""Cancel: a waiting job is removed at once, a running one is asked to stop."""

import asyncio
import time

import pytest

from taskq import InvalidTransition, JobCancelled, JobNotFound, current
from tests.guide.app import app
from tests.waiting import wait_until


@app.task
async def wait_long() -> None:
    await asyncio.sleep(60)


@app.task
def wait_in_steps() -> None:
    for _ in range(6000):
        if current().cancel_requested:
            raise JobCancelled  # what returns has done its work, and is completed
        time.sleep(0.01)


def running(job) -> bool:
    return job.refresh().state == "running"


def test_a_waiting_job_is_removed():
    job = wait_long.using(delay="1h").enqueue()
    assert job.cancel() == "removed"
    with pytest.raises(JobCancelled):
        job.result(timeout=10)


@pytest.mark.parametrize("task", [wait_long, wait_in_steps], ids=["on the loop", "in a thread"])
def test_a_running_job_is_asked_to_stop(task):
    job = task.enqueue()
    wait_until(lambda: running(job))
    assert job.cancel() == "requested"
    assert job.join(timeout=10) == "cancelled"


def test_only_if_it_does_not_run_yet():
    job = wait_long.enqueue()
    wait_until(lambda: running(job))
    with pytest.raises(InvalidTransition):
        job.cancel(running=False)
    job.cancel()
    job.join(timeout=10)


def test_too_late():
    job = wait_long.using(delay="1h").enqueue()
    job.cancel()
    assert job.cancel() == "too_late"


def test_no_such_job():
    with pytest.raises(JobNotFound):
        app.job("default:nobody").cancel()


def test_a_cancelled_job_can_be_run_again():
    job = wait_long.using(delay="1h").enqueue()
    job.cancel()
    assert job.retry().state == "available"
    wait_until(lambda: running(job))
    job.cancel()
    job.join(timeout=10)
