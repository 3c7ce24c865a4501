"""When a worker that was started for a burst is done: nothing runs here, nothing waits for an answer, nothing is due.

What it runs may enqueue more, and a finish may make a retry due at once; so the queues are asked only after the last
finish was answered, and their answer counts only if nothing was begun meanwhile.
"""

from __future__ import annotations

from taskq.node.worker.claimer import Claimer
from taskq.node.worker.desk import Desk


async def until_done(claimer: Claimer, desk: Desk) -> None:
    """Return when the queues have nothing available or due, and this worker has nothing in its hands."""
    while not claimer.stopping:
        await desk.empty.wait()
        if await claimer.nothing_left() and desk.empty.is_set():
            return
