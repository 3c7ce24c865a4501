"""How long a job is kept after its end, and how long its result."""

import pytest

from taskq import JobNotFound, ResultExpired
from tests.guide.app import app
from tests.waiting import wait_until


@app.task
async def compute() -> int:
    return 42


@app.task(keep=0)
async def forgotten() -> int:
    return 42


def gone(job) -> bool:
    try:
        job.refresh()
    except JobNotFound:
        return True
    return False


def test_kept_for_a_day_by_default():
    job = compute.enqueue()
    assert job.result(timeout=10) == 42
    assert job.result(timeout=10) == 42


def test_not_at_all():
    job = forgotten.enqueue()
    wait_until(lambda: gone(job))
    with pytest.raises(ResultExpired):
        job.result(timeout=1)


def test_the_result_may_go_before_the_job():
    job = compute.using(keep_result=0.1).enqueue()
    job.join(timeout=10)
    wait_until(lambda: job.refresh().record.dropped)
    assert job.state == "completed"
    with pytest.raises(ResultExpired):
        job.result(timeout=1)
