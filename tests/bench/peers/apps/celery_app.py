"""Celery on Redis, acknowledging late, so that a killed worker's jobs come back; without results."""

from __future__ import annotations

import os

from celery import Celery

from tests.bench.peers.counted import JOBS, hit

app = Celery("peers", broker=os.environ["TASKQ_URL"])
app.conf.update(task_acks_late=True, task_ignore_result=True, worker_prefetch_multiplier=100)


@app.task(name="noop")
def noop() -> None:
    """Nothing."""
    hit()


def fill() -> None:
    """Enqueue them all."""
    with app.producer_pool.acquire() as producer:
        for _ in range(JOBS):
            noop.apply_async(producer=producer)


if __name__ == "__main__":
    fill()
