"""Huey on a Redis list, without results."""

from __future__ import annotations

import os

from huey import RedisHuey

from tests.bench.peers.counted import JOBS, hit

huey = RedisHuey("peers", url=os.environ["TASKQ_URL"], results=False)


@huey.task()
def noop() -> None:
    """Nothing."""
    hit()


def fill() -> None:
    """Enqueue them all."""
    for _ in range(JOBS):
        noop()


if __name__ == "__main__":
    from tests.bench.peers.apps import huey_app

    huey_app.fill()
