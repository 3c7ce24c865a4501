"""Telling observers of a firing: each is called, whatever another one raises."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from taskq.log import get_logger
from taskq.schedules.run import Run

log = get_logger(__name__)

Observers = Iterable[Callable[[Run], Any]]


def tell(observers: Observers, run: Run, wait: Callable[[Awaitable[Any]], Any] | None = None) -> None:
    """Call each. `wait` has what an `async def` gives awaited on a loop; without a loop these are left out."""
    for fn in list(observers):
        try:
            if wait is not None or not inspect.iscoroutinefunction(fn):
                answer = fn(run)
                if wait is not None and inspect.isawaitable(answer):
                    wait(answer)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (user code: whatever it does, its caller goes on)
            _complain(fn, run, error)


async def atell(observers: Observers, run: Run) -> None:
    """Call each, awaiting those that are `async def`."""
    for fn in list(observers):
        try:
            answer = fn(run)
            if inspect.isawaitable(answer):
                await answer
        except (Exception, SystemExit) as error:  # noqa: BLE001 (as above; a cancellation is its caller's)
            _complain(fn, run, error)


def _complain(fn: Callable[[Run], Any], run: Run, error: BaseException) -> None:
    name = getattr(fn, "__qualname__", None) or type(fn).__name__
    log.error("an observer of schedules raised", observer=name, schedule=run.schedule, exc_info=error)
