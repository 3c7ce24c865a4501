"""Dramatiq on its Redis broker."""

from __future__ import annotations

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from tests.bench.peers.counted import JOBS, hit

dramatiq.set_broker(RedisBroker(url=os.environ["TASKQ_URL"]))


@dramatiq.actor
def noop() -> None:
    """Nothing."""
    hit()


def fill() -> None:
    """Enqueue them all."""
    for _ in range(JOBS):
        noop.send()


if __name__ == "__main__":
    fill()
