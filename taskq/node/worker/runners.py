"""Runs the coroutines of jobs on the loop: a task for each job that waits, one task for many that don't.

Making, scheduling and ending an asyncio task costs more than everything else this worker does for a job that does
nothing. So a runner, which is one task, takes job after job as long as they end without waiting. The first that waits
keeps its runner for itself, from its first line to its last, so that `current_task()` never changes under it; other
runners are started for the rest. Each job has a context of its own.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from types import coroutine
from typing import Any

from taskq.log import get_logger
from taskq.node.worker import forked
from taskq.node.worker.running import Running

log = get_logger(__name__)


class Runners:
    """Starts jobs. `run` is the coroutine function that takes one job to its outcome; it never raises."""

    def __init__(self, run: Callable[[Running], Coroutine[Any, Any, None]]) -> None:
        self._run = run
        self._waiting: deque[Running] = deque()
        # What the app set when it was loaded. Jobs begin in it whoever starts them, which may be another job's end.
        self._context = contextvars.copy_context()

    def start(self, jobs: Iterable[Running]) -> None:
        """Run these jobs, in this order. They begin after what is about to be sent: the next claim shall be on its way
        while they run.
        """
        self._waiting.extend(jobs)
        asyncio.get_running_loop().call_soon(self._more, 1)

    def _more(self, runners: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(min(runners, len(self._waiting))):
            # Not loop.create_task: uvloop's takes half as long again. The loop's factory, if any, is our own affair.
            task: asyncio.Task[None] = asyncio.Task(
                self._serve(), loop=loop, name="taskq runner", context=self._context
            )
            del task  # the loop keeps it while it is scheduled, and what it waits for afterwards

    async def _serve(self) -> None:
        try:
            await self._take_jobs()
        except BaseException:  # a fault of ours: whatever it is, the other jobs must be run
            log.exception("a runner failed")
            self._more(1)

    @coroutine
    def _take_jobs(self) -> Generator[Any, Any, None]:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (this is only ever run by one)
        waiting = self._waiting
        while waiting:
            job = waiting.popleft()
            job.code = task
            code = self._run(job)
            inside = contextvars.copy_context().run
            try:
                awaited = inside(code.send, None)
            except StopIteration:
                if task.cancelling():  # the job cancelled its own task: that must not hit the next one
                    self._more(1)
                    return
                continue
            forked.leave()
            task.set_name(job.id)
            self._more(2)  # each that waits starts two: many that wait begin within a few turns of the loop
            yield from to_its_end(code, inside, awaited)
            return


def to_its_end(code: Coroutine[Any, Any, None], inside: Callable[..., Any], awaited: Any) -> Generator[Any, Any, None]:
    """Pass on what the loop sends and throws, in the job's context."""
    try:
        while True:
            try:
                sent = yield awaited
            except BaseException as error:  # noqa: BLE001 (a cancellation, most of all: it belongs to the job)
                awaited = inside(code.throw, error)
            else:
                awaited = inside(code.send, sent)
            forked.leave()
    except StopIteration:
        return
