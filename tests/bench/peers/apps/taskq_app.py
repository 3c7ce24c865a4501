"""taskq, with default settings."""

from __future__ import annotations

import os

from taskq import TaskQ
from tests.bench.peers.counted import JOBS, hit

app = TaskQ(os.environ["TASKQ_URL"], namespace="peers")


@app.task
async def noop() -> None:
    """Nothing."""
    hit()


def fill() -> None:
    """Enqueue them all."""
    app.enqueue_many([noop.call() for _ in range(JOBS)])


if __name__ == "__main__":
    fill()
