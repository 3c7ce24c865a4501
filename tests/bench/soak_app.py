"""The mixed load of `make soak`: short, long, failing, retrying, large. Where the server is comes from TASKQ_URL.

What has ended is kept for half a minute, so that the server's memory stands still soon, if it does at all.
"""

from __future__ import annotations

import asyncio
import time

from taskq import Backoff, Options, Retention, Snooze, TaskQ, current

SOON = Backoff.fixed(1)

app = TaskQ(
    namespace="soak",
    retention=Retention(completed="30s", failed="30s", cancelled="30s"),
    defaults=Options(max_attempts=2, backoff=SOON, keep_result="30s"),
)


@app.task
async def short(number: int) -> dict[str, int]:
    """Over at once, with a result."""
    return {"number": number}


@app.task(queue="slow")
async def long(seconds: float) -> None:
    """Waits, and heeds a cancel."""
    await asyncio.sleep(seconds)


@app.task(queue="threads")
def work(text: str) -> str:
    """A little of a thread, and a large result."""
    time.sleep(0.005)
    return text * 2


@app.task
async def flaky() -> int:
    """Fails the first time."""
    if current().attempt == 1:
        raise ConnectionError("the first time never works")
    return current().attempt


@app.task(max_attempts=1)
async def broken() -> None:
    """Fails for good."""
    raise ValueError("it never works" + "!" * 200)


@app.task(queue="slow", timeout="200ms", max_attempts=1)
async def too_slow() -> None:
    """Runs into its timeout."""
    await asyncio.sleep(60)


@app.task(queue="slow")
async def shy(until: float) -> None:
    """Puts itself off until a time."""
    if time.time() < until:
        raise Snooze("1s")
