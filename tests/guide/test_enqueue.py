"""Enqueue a call, get its result. The same from sync and from async code, for async and for plain functions."""

import pytest

from taskq import JobFailed
from tests.guide.app import app


@app.task
async def greet(name: str, *, mark: str = "!") -> str:
    return f"hello {name}{mark}"


@app.task
def add(a: int, b: int) -> int:
    return a + b


@app.task(max_attempts=1)
async def divide(a: int, b: int) -> float:
    return a / b


def test_a_job_runs_and_its_result_comes_back():
    job = greet.enqueue("Ada", mark="?")
    assert job.created
    assert job.id.startswith("default:")
    assert job.result(timeout=10) == "hello Ada?"
    assert job.state == "completed"


async def test_the_same_in_async_code():
    job = await greet.aenqueue("Ada")
    assert await job.aresult(timeout=10) == "hello Ada!"


def test_plain_functions_run_in_threads():
    assert add.enqueue(1, 2).result(timeout=10) == 3


def test_a_plain_call_runs_here():
    assert add(1, 2) == 3


def test_a_failed_job_raises_where_its_result_is_asked_for():
    with pytest.raises(JobFailed, match="ZeroDivisionError"):
        divide.enqueue(1, 0).result(timeout=10)


def test_a_job_is_found_by_its_id():
    id = greet.enqueue("Ada").id
    assert app.job(id).result(timeout=10) == "hello Ada!"
    assert greet.job(id).refresh().state == "completed"
