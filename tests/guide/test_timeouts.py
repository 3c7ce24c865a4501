"""Timeouts: an attempt that takes too long has failed; code that doesn't heed it is stopped by force."""

import asyncio
import time

import pytest

from taskq import Backoff, JobTimeout, current
from tests.guide.app import app


@app.task(timeout=0.2, max_attempts=2, backoff=Backoff.fixed(0.05))
async def slow() -> None:
    await asyncio.sleep(60)


@app.task(timeout="200ms", max_attempts=1)
def polite() -> str:
    while not current().cancel_requested:
        time.sleep(0.01)
    return "stopped by itself"


def test_a_coroutine_is_stopped_and_the_attempt_has_failed():
    job = slow.enqueue()
    with pytest.raises(JobTimeout, match="longer than its timeout"):
        job.result(timeout=10)
    assert [error.type for error in job.record.errors] == ["JobTimeout", "JobTimeout"]


def test_code_in_a_thread_is_told_and_should_look():
    with pytest.raises(JobTimeout):
        polite.enqueue().result(timeout=10)


def test_a_timeout_for_one_job():
    with pytest.raises(JobTimeout):
        slow.using(timeout=0.1, max_attempts=1).enqueue().result(timeout=10)
