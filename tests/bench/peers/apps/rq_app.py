"""RQ, with the worker that doesn't fork for each job: the quickest it has."""

from __future__ import annotations

import os

from redis import Redis
from rq import Queue

from tests.bench.peers.counted import JOBS, hit


def noop() -> None:
    """Nothing."""
    hit()


def fill() -> None:
    """Enqueue them all."""
    queue = Queue(connection=Redis.from_url(os.environ["TASKQ_URL"]))
    for first in range(0, JOBS, 500):
        queue.enqueue_many([Queue.prepare_data(noop) for _ in range(min(500, JOBS - first))])


if __name__ == "__main__":
    from tests.bench.peers.apps import rq_app

    rq_app.fill()
