"""taskiq on a Redis stream, the broker of taskiq-redis that acknowledges."""

from __future__ import annotations

import asyncio
import os

from taskiq_redis import RedisStreamBroker

from tests.bench.peers.counted import JOBS, hit

broker = RedisStreamBroker(url=os.environ["TASKQ_URL"])


@broker.task(task_name="noop")
async def noop() -> None:
    """Nothing."""
    hit()


async def fill() -> None:
    """Enqueue them all."""
    await broker.startup()
    for first in range(0, JOBS, 100):
        await asyncio.gather(*(noop.kiq() for _ in range(min(100, JOBS - first))))
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(fill())
