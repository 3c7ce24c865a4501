"""An async task is a coroutine like any other: timeouts, task groups, threads, context variables, async generators."""

import asyncio
import contextvars

from tests.guide.app import app

request: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="none")


@app.task
async def group() -> list[int]:
    async def double(n: int) -> int:
        await asyncio.sleep(0.01)
        return 2 * n

    async with asyncio.TaskGroup() as tasks:
        found = [tasks.create_task(double(n)) for n in range(3)]
    return [task.result() for task in found]


@app.task
async def bounded() -> str:
    try:
        async with asyncio.timeout(0.05):
            await asyncio.sleep(60)
    except TimeoutError:
        return "too slow"
    return "?"


@app.task
async def several_ways() -> list[object]:
    task = asyncio.current_task()
    assert task is not None
    first = await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0.01, 2))
    second = await asyncio.wait_for(asyncio.shield(asyncio.sleep(0.01, 3)), 1)
    third = await asyncio.to_thread(lambda: 4)
    return [*first, second, third, [n async for n in count()]]


async def count():
    for n in range(3):
        await asyncio.sleep(0)
        yield n


@app.task
async def remembered(word: str) -> str:
    request.set(word)
    await asyncio.sleep(0.02)
    return request.get()


@app.task
async def cancels_itself() -> str:
    sleeping = asyncio.ensure_future(asyncio.sleep(60))
    asyncio.get_running_loop().call_soon(sleeping.cancel)
    try:
        await sleeping
    except asyncio.CancelledError:
        return "its own business"
    return "?"


def test_a_task_group():
    assert group.enqueue().result(timeout=10) == [0, 2, 4]


def test_a_timeout_of_its_own():
    assert bounded.enqueue().result(timeout=10) == "too slow"


def test_the_rest_of_asyncio():
    assert several_ways.enqueue().result(timeout=10) == [1, 2, 3, 4, [0, 1, 2]]


def test_context_variables_are_each_jobs_own():
    jobs = app.enqueue_many([remembered.call(word) for word in "abcdefgh"])
    assert [job.result(timeout=10) for job in jobs] == list("abcdefgh")


def test_a_cancel_inside_is_no_cancel_of_the_job():
    assert cancels_itself.enqueue().result(timeout=10) == "its own business"
