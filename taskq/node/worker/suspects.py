"""Jobs whose worker died twice under them begin one at a time.

A job that kills its worker takes an attempt of every job that runs beside it, and comes back together with them: after
three such rounds all would have failed, the innocent too. So a job whose last attempt died with its worker, and whose
next is the third or the last, waits until the one before it has been answered, or has run for a while. The killer then
dies alone, and those who wait, not having begun, lose nothing. A job whose code had ended takes its turn as well: it
may have left something behind that killed, such as a timer, for which the next also waits a moment.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from taskq.node.worker.running import Running

PROOF_S = 3.0  # who has run so long is believed; long jobs must not wait for one another for ever
AFTER_S = 0.1  # what a job leaves behind mostly goes off at once
_ROUNDS = 3


def is_suspect(job: Running) -> bool:
    """Whether the job may have killed its last worker, and should have no company in the next round."""
    attempt = job.attempt
    if attempt < 2 or attempt < min(_ROUNDS, job.max_attempts):
        return False
    return b'"JobCrashed"' in job.fields.get(b"error:%d" % (attempt - 1), b"")


class Suspects:
    """Those of one worker. `run` begins jobs."""

    def __init__(self, run: Callable[[Iterable[Running]], None]) -> None:
        self._run = run
        self._waiting: deque[Running] = deque()
        self._alone: Running | None = None
        self._timer: asyncio.TimerHandle | None = None

    def hold(self, jobs: Iterable[Running]) -> None:
        """Have these begin, each in its turn."""
        self._waiting.extend(jobs)
        if self._alone is None:
            self._next()

    def settled(self, job: Running) -> None:
        """Redis has answered for a job, so its worker's death can no longer cost it anything."""
        if job is self._alone:
            self._next_after(AFTER_S)

    @property
    def waiting(self) -> list[Running]:
        """Those whose turn hasn't come."""
        return list(self._waiting)

    def let_go(self) -> None:
        """Those who were asked to stop don't wait for their turn: they end at once, unbegun."""
        stopped = [job for job in self._waiting if job.stop is not None]
        if stopped:
            self._waiting = deque(job for job in self._waiting if job.stop is None)
            self._run(stopped)

    def _next_after(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._next)

    def _next(self) -> None:
        self._alone = self._waiting.popleft() if self._waiting else None
        if self._alone is not None:
            self._next_after(PROOF_S)
            self._run([self._alone])
