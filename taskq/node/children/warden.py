"""Kills the workers that must not go on: one whose job has passed its hard timeout, or the time that a cancel by force
set (it is then cancelled, and no timeout is told of it), and one whose loop is wedged.

A loop that stands still is either held by user code (a blocking call in a coroutine, C code that keeps the GIL) or
wedged. What tells them apart is what could hold it:

- a job on the loop: the loop is busy with it, however long that takes; its hard timeout ends it, if it has one;
- only jobs in threads: they can hold the loop only through the GIL, and then the worker's watching thread stands still
  too. If that thread turns, the loop is wedged;
- no job at all: wedged.

A wedged loop is killed after 10 min (settable): what a job left behind in the loop may hold it for a while too. A busy
one is only spoken of, once a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from taskq.log import get_logger
from taskq.node.children.child import Child, is_stopped
from taskq.node.table import Entry, now_ms

EVERY_S = 0.25
STILL_MS = 30_000  # from here on a busy loop is worth a word
_STEP_MS = 1_000
_AGAIN_MS = 60_000

log = get_logger(__name__)


def overdue(held: Iterable[Entry], now: int) -> frozenset[tuple[str, int]]:
    """The running jobs whose hard deadline has passed, as (id, epoch)."""
    return frozenset((entry.id, entry.epoch) for entry in held if entry.runs and 0 < entry.hard_deadline <= now)


def could_hold(held: Iterable[Entry], *, thread_still: bool) -> list[Entry]:
    """The jobs that may be what holds a loop which stands still."""
    return [entry for entry in held if entry.runs and (thread_still or not entry.threaded)]


class Warden:
    """Looks at every worker four times a second. `wedged_ms`: how long a loop that nothing holds may stand still."""

    def __init__(self, children: Callable[[], Iterable[Child]], *, wedged_ms: int) -> None:
        self._children = children
        self._wedged_ms = wedged_ms
        self._still: dict[str, _Stillness] = {}

    async def step(self) -> float:
        """Look once; kill what must be killed."""
        now = now_ms()
        living = [child for child in self._children() if child.ready]
        self._still = {child.worker: self._still.get(child.worker) or _Stillness(now) for child in living}
        for child in living:
            held = child.held()
            late = overdue(held, now)
            if late:
                forced = {(id, epoch) for word, id, epoch in child.told if word == "force"}
                why = "hard timeout" if late - forced else "cancelled by force"
                ids = sorted(id for id, _ in late)
                log.warning("the worker is replaced", why=why, worker=child.worker, job_ids=ids)
                child.kill(why, late - forced)
            else:
                self._watch_loop(child, held, now)
        return EVERY_S

    def _watch_loop(self, child: Child, held: list[Entry], now: int) -> None:
        still = self._still[child.worker]
        still_ms = still.seen(child.table.worker_age_ms(), now)
        if still_ms < min(STILL_MS, self._wedged_ms) or is_stopped(child.pid):
            return
        suspects = could_hold(held, thread_still=child.table.thread_age_ms() > STILL_MS)
        if suspects:
            if still_ms >= STILL_MS and still.may_speak(now):
                ids = [entry.id for entry in suspects[:10]]
                log.warning(
                    "a worker's loop is held by user code", worker=child.worker, for_s=still_ms // 1000, job_ids=ids
                )
        elif still_ms >= self._wedged_ms:
            log.error("a worker's loop is wedged: it is replaced", worker=child.worker, for_s=still_ms // 1000)
            child.kill("loop stood still")


class _Stillness:
    """How long one loop has stood still *while this node was looking*. When the whole host was suspended, or node and
    workers were stopped together, no loop could turn, and none is to blame.
    """

    def __init__(self, now: int) -> None:
        self._looked = now
        self._ms = 0
        self._spoke = -_AGAIN_MS

    def seen(self, age_ms: int, now: int) -> int:
        """The loop's beat is `age_ms` old: gives how long it stood still under our eyes."""
        self._ms = min(age_ms, self._ms + min(now - self._looked, _STEP_MS))
        self._looked = now
        return self._ms

    def may_speak(self, now: int) -> bool:
        if now - self._spoke < _AGAIN_MS:
            return False
        self._spoke = now
        return True
