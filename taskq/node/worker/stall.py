"""Whether the worker's loop stood still just now: code of a job's that blocks it, or the whole process was stopped.

A call to Redis whose time ran out meanwhile says nothing of Redis: its answer may have been there all along.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from taskq.log import get_logger
from taskq.node.worker.running import Running

BEAT_S = 0.5
HELD_S = 1.0  # a loop that comes so late to its beat was held
_AFTER_S = 1.0  # by then, what timed out during the hold has come up

log = get_logger(__name__)


class Stall:
    """Knows by the loop's own beat.

    Args:
        held: the jobs that the worker holds.
        clock: monotonic s; tests pass their own.
    """

    def __init__(self, held: Callable[[], Iterable[Running]], clock: Callable[[], float] = time.monotonic) -> None:
        self._held = held
        self._clock = clock
        self._beat_at = clock()
        self._over_at = float("-inf")
        self._held_s = 0.0
        self._said = False

    def beat(self) -> None:
        """Called by the loop every BEAT_S."""
        now = self._clock()
        late_s, self._beat_at = now - self._beat_at - BEAT_S, now
        if late_s >= HELD_S:
            self._over_at, self._held_s, self._said = now, late_s, False

    def explains(self) -> bool:
        """Whether a call that failed just now may have failed of it; says so once for each time."""
        now = self._clock()
        if now - self._beat_at - BEAT_S >= HELD_S:  # whoever asks was woken before the beat
            self.beat()
        if now - self._over_at > _AFTER_S:
            return False
        if not self._said:
            self._said = True
            event = f"the event loop was held for {self._held_s:.0f} s; what it asked of Redis is asked again"
            log.warning(event, **self._who())
        return True

    def _who(self) -> dict[str, object]:
        """The job that may have done it, if there is one: one on the loop rather than one in a thread."""
        begun = [job for job in self._held() if job.current is not None]
        jobs = [job for job in begun if job.executor == "async"] or begun
        return {"job_id": jobs[0].id} if len(jobs) == 1 else {"jobs": len(jobs)}
