"""A job that fails is run again, after a backoff, at most `max_attempts` times."""

from pathlib import Path

import pytest

from taskq import AttemptsExhausted, Backoff, Discard, JobFailed, Retry, Snooze, current
from tests.guide.app import app
from tests.waiting import wait_until


@app.task(max_attempts=3, backoff=Backoff.fixed(0.05))
async def flaky(good_at: int) -> int:
    if current().attempt < good_at:
        raise ConnectionError("not yet")
    return current().attempt


@app.task(max_attempts=5, backoff=lambda attempt, error: 0.01 * attempt)
async def counted() -> int:
    if not current().is_last_attempt:
        raise ConnectionError("again")
    return current().attempt


@app.task(backoff=Backoff.exponential(base="1h"))
async def patient(asked: float) -> str:
    if current().attempt == 1:
        raise Retry(delay=asked)
    return "done"


@app.task(max_attempts=1)
def until_ready(path: str) -> str:
    if not Path(path).exists():
        raise Snooze(0.1)
    return "ready"


@app.task
async def hopeless() -> None:
    raise Discard("the account is closed")


def test_it_fails_twice_and_then_succeeds():
    job = flaky.enqueue(good_at=3)
    assert job.result(timeout=10) == 3
    errors = job.refresh().record.errors
    assert [(error.attempt, error.type, error.message) for error in errors] == [
        (1, "ConnectionError", "not yet"),
        (2, "ConnectionError", "not yet"),
    ]
    assert 'raise ConnectionError("not yet")' in errors[0].traceback


def test_it_fails_for_good():
    job = flaky.enqueue(good_at=9)
    with pytest.raises(AttemptsExhausted):
        job.result(timeout=10)
    assert (job.state, job.attempt) == ("failed", 3)


def test_a_backoff_may_be_any_callable():
    assert counted.enqueue().result(timeout=10) == 5


def test_fewer_attempts_for_one_job():
    job = flaky.using(max_attempts=1).enqueue(good_at=2)
    with pytest.raises(JobFailed):
        job.result(timeout=10)
    assert job.attempt == 1


def test_retry_when_the_task_says():
    assert patient.enqueue(0.1).result(timeout=10) == "done"


def test_snooze_waits_without_counting_an_attempt(tmp_path):
    sign = tmp_path / "sign"
    job = until_ready.enqueue(str(sign))
    wait_until(lambda: job.refresh().state == "scheduled")
    sign.touch()
    assert job.result(timeout=10) == "ready"
    assert job.attempt == 1


def test_discard_fails_at_once():
    job = hopeless.enqueue()
    with pytest.raises(JobFailed, match="the account is closed"):
        job.result(timeout=10)
    assert job.attempt == 1


def test_a_failed_job_can_be_run_again_by_hand():
    job = flaky.enqueue(good_at=9)
    job.join(timeout=10)
    assert job.retry().state == "available"
    assert job.join(timeout=10) == "failed"
    assert [error.attempt for error in job.record.errors] == [1, 2, 3]
