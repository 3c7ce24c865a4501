"""The worker's event loop: uvloop where it is installed, and one that a stray SystemExit doesn't end.

asyncio lets SystemExit and KeyboardInterrupt out of the loop when a callback raises them, such as in a task that user
code started beside its job. For a worker that is one job's fault and no reason to drop the others: the loop turns on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from taskq.log import get_logger
from taskq.node.failure import line_of

log = get_logger(__name__)


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop, the fastest there is."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def run(main: Coroutine[Any, Any, int]) -> int:
    """Run `main` on a new loop to its end, whatever other code on the loop raises. Gives what it returned."""
    loop = new_loop()
    asyncio.set_event_loop(loop)
    task = loop.create_task(main, name="taskq worker")
    task.add_done_callback(lambda _: loop.stop())
    while not task.done():
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            log.warning("code outside a job tried to end the worker", error=line_of(error))
    return task.result()
