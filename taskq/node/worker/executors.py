"""Where a job's code runs: `async def` on the worker's loop, `def` in threads.

The threads are ours and not concurrent.futures': they are daemons, so that one stuck in user code doesn't keep the
process from ending, and their answers come back to the loop together, one wake-up for all that ended meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from taskq.node.worker import forked

_Work = tuple["asyncio.Future[Any]", contextvars.Context, Callable[..., Any], Sequence[Any], Mapping[str, Any]]
_Answer = tuple["asyncio.Future[Any]", Any, BaseException | None]


class Threads:
    """At most `limit` daemon threads; each is started when all the others are busy.

    The claimer never has more thread jobs than `limit`, so that nothing waits here for a thread.
    """

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        self.limit = limit
        self._loop = loop
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._answers: deque[_Answer] = deque()
        self._threads: list[threading.Thread] = []
        self._called = False
        self._busy = 0

    def run(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> asyncio.Future[Any]:
        """Call `fn` in a thread, in a copy of the caller's context. The future has its value or its exception."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._busy += 1
        if self._busy > len(self._threads) and len(self._threads) < self.limit:
            name = f"taskq-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._serve, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._work.put((future, contextvars.copy_context(), fn, args, kwargs))
        return future

    def close(self) -> None:
        """Let the idle threads end. One that is stuck in user code ends with the process."""
        for _ in self._threads:
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            future, context, fn, args, kwargs = work
            try:
                answer: _Answer = (future, context.run(fn, *args, **kwargs), None)
                forked.leave()
            except BaseException as error:  # noqa: BLE001 (the job's own failure, SystemExit included)
                forked.leave(error)
                answer = (future, None, error)
            del work, future, context, fn, args, kwargs  # what a job held isn't kept until the thread's next one
            self._answer(answer)
            del answer

    def _answer(self, answer: _Answer) -> None:
        # Append, then look; `_deliver` lowers the flag, then looks: an answer is always seen by one of the two.
        self._answers.append(answer)
        if not self._called:
            self._called = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: the worker ends without this job
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._called = False
        while self._answers:
            future, value, error = self._answers.popleft()
            self._busy -= 1
            if future.cancelled():
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(_raisable(error))


def _raisable(error: BaseException) -> BaseException:
    """A future refuses StopIteration (it would end the coroutine that awaits it); asyncio does the same."""
    if not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError("the task raised StopIteration")
    wrapped.__cause__ = error
    return wrapped
