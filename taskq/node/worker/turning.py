"""The worker's event loop: uvloop where it is installed, and one that a stray SystemExit doesn't end.

asyncio lets SystemExit and KeyboardInterrupt out of the loop when a callback raises them, such as in a task that user
code started beside its job. For a worker that is one job's fault and no reason to drop the others: the loop turns on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from taskq.log import get_logger
from taskq.node.worker import forked
from taskq.record.failure import line_of

_TIDY_S = 1.0

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
    loop.set_exception_handler(_unheard)
    task = loop.create_task(main, name="taskq worker")
    _turn(loop, task)
    _turn(loop, loop.create_task(_tidy(), name="tidy"))
    loop.close()
    return task.result()


def _unheard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """As asyncio does, but a handler of the log that fails must not end the loop: in asyncio it does."""
    with contextlib.suppress(Exception, SystemExit):
        loop.default_exception_handler(context)


def _turn(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    task.add_done_callback(lambda _: loop.stop())
    while not task.done():
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            forked.leave(error)
            log.warning("code outside a job tried to end the worker", error=line_of(error))


async def _tidy() -> None:
    """End what user code left running on the loop; what doesn't heed is left to the process's end."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=_TIDY_S)
    await asyncio.get_running_loop().shutdown_asyncgens()
