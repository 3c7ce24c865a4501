"""Enqueueing: one at a time beside the library's own EVALSHA of the same script, and many in pipelined calls."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import redis
import redis.asyncio

from taskq import TaskQ, commands, keys, scripts
from tests.bench.row import Row

ONE_BY_ONE = 5_000
MANY = 50_000


def rows(url: str) -> list[Row]:
    """Sync, async and many."""
    app = TaskQ(url, namespace="bench")

    @app.task(name="noop")
    async def noop(text: str) -> None: ...

    payload = "x" * 200
    noop.enqueue(payload)
    own = _best(lambda: _enqueue(noop, payload))
    library = _best(lambda: _evalsha(url))
    own_async, library_async = asyncio.run(_async(url, app, noop, payload))
    start = time.perf_counter()
    app.enqueue_many([noop.call(payload) for _ in range(MANY)])
    many = MANY / (time.perf_counter() - start)
    app.close()
    return [
        Row("enqueue one at a time, sync", own, "jobs/s", library, "redis-py EVALSHA", "≥ 0.80"),
        Row("enqueue one at a time, async", own_async, "jobs/s", library_async, "redis-py EVALSHA", "≥ 0.80"),
        Row("enqueue_many", many, "jobs/s", None, "", "65,000"),
    ]


def _best(measure: Any) -> float:
    return max(measure() for _ in range(3))


def _enqueue(task: Any, payload: str) -> float:
    start = time.perf_counter()
    for _ in range(ONE_BY_ONE):
        task.enqueue(payload)
    return ONE_BY_ONE / (time.perf_counter() - start)


def _command(number: int) -> commands.Command[list[str]]:
    job = commands.NewJob(f"default:own-{number}", "", "noop", "async", 0, "", "", {"payload": b"x" * 210})
    return commands.enqueue(keys.queue("bench", "default"), [job])


def _evalsha(url: str) -> float:
    """The library alone: the same script, keys and arguments, made beforehand."""
    base = time.monotonic_ns()
    calls = [_command(base + number) for number in range(ONE_BY_ONE)]
    sha = scripts.load("enqueue").sha
    with redis.Redis.from_url(url, protocol=2) as client:
        client.script_load(scripts.load("enqueue").source)
        start = time.perf_counter()
        for call in calls:
            client.evalsha(sha, len(call.keys), *call.keys, *call.args)
        return ONE_BY_ONE / (time.perf_counter() - start)


async def _async(url: str, app: TaskQ, task: Any, payload: str) -> tuple[float, float]:
    await task.aenqueue(payload)
    start = time.perf_counter()
    for _ in range(ONE_BY_ONE):
        await task.aenqueue(payload)
    own = ONE_BY_ONE / (time.perf_counter() - start)
    base = time.monotonic_ns()
    calls = [_command(base + number) for number in range(ONE_BY_ONE)]
    sha = scripts.load("enqueue").sha
    async with redis.asyncio.Redis.from_url(url, protocol=2) as client:
        start = time.perf_counter()
        for call in calls:
            await client.evalsha(sha, len(call.keys), *call.keys, *call.args)
        library = ONE_BY_ONE / (time.perf_counter() - start)
    await app.aclose()
    return own, library
