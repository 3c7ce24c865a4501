"""MEM-05: who enqueues and never asks for a result listens to nothing, before and after a cut, and doesn't grow."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from tests.client.test_result import subscriptions

GROWTH_MB = 8


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.long)])
async def test_results_that_nobody_reads_cost_nothing(on_loop, raw, count):
    task = on_loop.by_name("x").using(keep=0)

    async def produce(n):
        for _ in range(n // 100):
            await asyncio.gather(*(task.aenqueue() for _ in range(50)))
            await on_loop.aenqueue_many(task.call() for _ in range(48))
            task.enqueue()
            task.enqueue()

    await produce(1_000)
    gc.collect()
    before = resident_mb()
    await produce(count // 2)
    raw.client_kill_filter(_type="normal", skipme=True)
    await produce(count // 2)
    gc.collect()
    assert resident_mb() - before < GROWTH_MB
    assert (raw.pubsub_channels(), subscriptions(raw)) == ([], 0)
    assert on_loop.queue("default").counts().available == 1_000 + count
