"""`current()`: what a running job knows about itself, on the loop and in threads alike."""

import pytest

from taskq import NotInJob, current
from tests.guide.app import app


def facts() -> dict[str, object]:
    job = current()
    return {
        "id": job.id,
        "task": job.task,
        "queue": job.queue,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "last": job.is_last_attempt,
        "epoch": job.epoch,
        "deadline": job.deadline is not None,
    }


@app.task(timeout=30)
async def on_the_loop() -> dict[str, object]:
    return facts()


@app.task(timeout=30)
def in_a_thread() -> dict[str, object]:
    return facts()


@pytest.mark.parametrize("task", [on_the_loop, in_a_thread], ids=["on the loop", "in a thread"])
def test_a_job_knows_itself(task):
    job = task.enqueue()
    assert job.result(timeout=10) == {
        "id": job.id,
        "task": task.name,
        "queue": "default",
        "attempt": 1,
        "max_attempts": 3,
        "last": False,
        "epoch": job.record.epoch,
        "deadline": True,
    }


def test_outside_of_a_job_there_is_none():
    with pytest.raises(NotInJob):
        current()
