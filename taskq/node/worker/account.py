"""What a worker runs, with the stacks of its jobs, its other coroutines and its threads, told to the log when asked.

It is asked by its node, on SIGUSR1, and told from the thread that watches the node: so also by a worker whose loop is
held by user code. All is read from beside, while it moves: a stack may be of two moments.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any

from taskq.log import get_logger
from taskq.node.worker.runners import to_its_end
from taskq.node.worker.running import Running

JOBS_MAX = 250
OTHERS_MAX = 100
FRAMES_MAX = 30

log = get_logger(__name__)


class Account:
    """What one worker will tell. Before `of` it knows of threads alone."""

    def __init__(self) -> None:
        self._worker = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._held: Callable[[], Iterable[Running]] = tuple

    def of(self, worker: str, loop: asyncio.AbstractEventLoop, held: Callable[[], Iterable[Running]]) -> None:
        """Say whose jobs, and on which loop."""
        self._worker, self._loop, self._held = worker, loop, held

    def tell(self) -> None:
        """Log it. Never raises: it is called in a thread that must live."""
        try:
            self._tell()
        except Exception:  # noqa: BLE001 (whatever moved while it was read)
            log.warning("what runs could not be told; ask again", worker=self._worker)

    def _tell(self) -> None:
        jobs = _copied(self._held)
        told: set[asyncio.Task[Any]] = set()
        now = time.monotonic()
        for job in jobs[:JOBS_MAX]:
            code = job.code
            if code is not None:
                told.add(code)
            log.warning(
                "runs",
                worker=self._worker,
                job_id=job.id,
                task=job.fields.get(b"task", b"").decode(errors="replace"),
                attempt=job.attempt,
                executor=job.executor,
                for_s=round(now - job.since, 1),
                stage="ended" if job.ended else "waits" if job.current is None else "runs",
                stack=list(awaited(code)) if code is not None else [],
            )
        others = [task for task in _copied(self._tasks) if task not in told and not task.done()]
        for task in others[:OTHERS_MAX]:
            log.warning("coroutine", worker=self._worker, name=task.get_name(), stack=list(awaited(task)))
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():  # noqa: SLF001 (there is no other way)
            if ident != threading.get_ident():
                log.warning("thread", worker=self._worker, name=names.get(ident, str(ident)), stack=called(frame))
        left = max(0, len(jobs) - JOBS_MAX) + max(0, len(others) - OTHERS_MAX)
        log.warning("that is what runs", worker=self._worker, jobs=len(jobs), not_told=left)

    def _tasks(self) -> Iterable[asyncio.Task[Any]]:
        return asyncio.all_tasks(self._loop) if self._loop is not None else ()


def _copied(read: Callable[[], Iterable[Any]]) -> list[Any]:
    """A collection that may change while it is copied."""
    for _ in range(10):
        with contextlib.suppress(RuntimeError):
            return list(read())
    return []


def awaited(task: asyncio.Task[Any]) -> Iterator[str]:
    """Where a task stands: its coroutine, what that waits for, and so on; the innermost last."""
    step: Any = task.get_coro()
    for _ in range(FRAMES_MAX):
        for frame, code, inner in (
            ("cr_frame", "cr_code", "cr_await"),
            ("gi_frame", "gi_code", "gi_yieldfrom"),
            ("ag_frame", "ag_code", "ag_await"),
        ):
            if hasattr(step, code):
                at = getattr(step, frame)
                yield _place(getattr(step, code), at.f_lineno if at is not None else 0)
                driven = at is not None and at.f_code is to_its_end.__code__
                step = at.f_locals.get("code") if driven else getattr(step, inner)
                break
        else:
            return


def called(frame: Any) -> list[str]:
    """Where a thread stands: who called whom, the innermost last."""
    places: list[str] = []
    while frame is not None and len(places) < FRAMES_MAX:
        places.append(_place(frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return places[::-1]


def _place(code: CodeType, line: int) -> str:
    return f"{code.co_filename}:{line} {code.co_qualname}"
