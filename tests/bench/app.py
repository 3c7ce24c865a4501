"""The tasks that are measured. Where the server is comes from TASKQ_URL."""

from __future__ import annotations

import asyncio
import time

from taskq import TaskQ

app = TaskQ(namespace="bench")


@app.task
async def noop() -> None:
    """Nothing: what is left is taskq."""


@app.task
async def nap() -> None:
    """50 ms of waiting."""
    await asyncio.sleep(0.05)


@app.task
async def stamp(sent_ns: int) -> int:
    """How long ago the job was sent, by the clock both processes share."""
    return time.monotonic_ns() - sent_ns
