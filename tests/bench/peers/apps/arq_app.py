"""arq, with 100 jobs at a time, as taskq has by default."""

from __future__ import annotations

import asyncio
import os
from typing import Any, ClassVar

from arq import create_pool
from arq.connections import RedisSettings

from tests.bench.peers.counted import JOBS, hit

SETTINGS = RedisSettings.from_dsn(os.environ["TASKQ_URL"])


async def noop(_: Any) -> None:
    """Nothing."""
    hit()


class WorkerSettings:
    """What `arq` starts."""

    functions: ClassVar[list[Any]] = [noop]
    redis_settings = SETTINGS
    max_jobs = 100
    keep_result = 0
    poll_delay = 0.01


async def fill() -> None:
    """Enqueue them all."""
    pool = await create_pool(SETTINGS)
    for first in range(0, JOBS, 100):
        await asyncio.gather(*(pool.enqueue_job("noop") for _ in range(min(100, JOBS - first))))


if __name__ == "__main__":
    asyncio.run(fill())
