"""Sends the mixed load of `make soak` at a steady rate, waits for some results, and cancels some jobs.

In a process of its own, whose memory is watched too: a producer that lives for months must not grow either.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any

from taskq import ResultTimeout, TaskQError, Unavailable
from tests.bench import soak_app as jobs

_SHARES = 50  # a round of the mix


async def send(number: int) -> None:
    """The next job of the mix."""
    at = number % _SHARES
    if at in _RARE:
        await _RARE[at](number)
    elif at % 5 == 0:
        await jobs.work.aenqueue("text" * 250)
    else:
        await jobs.short.aenqueue(number)


async def _waited(number: int) -> None:
    job = await jobs.short.aenqueue(number)
    assert await job.aresult(timeout=60) == {"number": number}


async def _retried(_: int) -> None:
    job = await jobs.flaky.aenqueue()
    assert await job.aresult(timeout=60) == 2


async def _failed(_: int) -> None:
    job = await jobs.broken.aenqueue()
    with suppress(TaskQError):
        await job.aresult(timeout=60)


async def _cancelled(_: int) -> None:
    job = await jobs.long.aenqueue(30.0)
    await asyncio.sleep(1)
    await job.acancel()


async def _cancelled_early(_: int) -> None:
    job = await jobs.long.using(delay=20).aenqueue(30.0)
    await job.acancel()


async def _later(number: int) -> None:
    await jobs.short.using(delay=3, priority=number % 3).aenqueue(number)


async def _long(number: int) -> None:
    await jobs.long.aenqueue(number % 4)


async def _too_slow(_: int) -> None:
    await jobs.too_slow.aenqueue()


async def _shy(_: int) -> None:
    await jobs.shy.aenqueue(time.time() + 2)


async def _many(number: int) -> None:
    await jobs.app.aenqueue_many([jobs.short.call(number) for _ in range(20)])


_RARE: dict[int, Callable[[int], Awaitable[Any]]] = {
    1: _waited,
    7: _waited,
    9: _failed,
    13: _retried,
    17: _cancelled,
    21: _cancelled_early,
    26: _later,
    27: _later,
    33: _long,
    37: _too_slow,
    39: _shy,
    43: _many,
}


class Load:
    """What is under way, and what the server left unanswered: some of that is no fault on a machine that is busy."""

    def __init__(self) -> None:
        self.under_way: set[asyncio.Task[None]] = set()
        self.unanswered = 0
        self.fault: BaseException | None = None

    def begin(self, number: int) -> None:
        """Sends a job, without waiting for it."""
        task = asyncio.create_task(send(number))
        self.under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.under_way.discard(task)
        error = task.exception()
        if isinstance(error, Unavailable | ResultTimeout):
            self.unanswered += 1
            print(f"load: {self.unanswered} unanswered: {error}", file=sys.stderr)
        else:
            self.fault = self.fault or error


async def main(rate: float) -> None:
    """Until it is killed. Jobs are sent when their time has come, and what is late isn't made up for."""
    start, load = time.monotonic(), Load()
    for number in count():
        await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
        start = max(start, time.monotonic() - number / rate - 1)
        load.begin(number)
        if load.fault is not None:
            raise load.fault


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(float(sys.argv[1])))
