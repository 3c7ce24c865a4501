"""Waiting for what a test wants to see, never for a time.

`wait_until` for tests that run plainly, `await_until` for those on an event
loop. Both give back what the predicate returned, and fail with its last value.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_STEP_S = 0.01  # short beside any deadline, long enough to leave the processor to what is waited for


def wait_until(predicate: Callable[[], T], timeout: float = 30.0, *, step_s: float = _STEP_S, what: str = "") -> T:
    """Call `predicate` until it returns something true, and return that; AssertionError after `timeout` seconds."""
    until = time.monotonic() + timeout
    while True:
        seen = predicate()
        if seen:
            return seen
        if time.monotonic() > until:
            raise AssertionError(_never(predicate, what, timeout, seen))
        time.sleep(step_s)


async def await_until(predicate: Callable[[], T | Awaitable[T]], timeout: float = 30.0, *, what: str = "") -> T:
    """As `wait_until`, on the event loop; the predicate may be a coroutine function."""
    until = time.monotonic() + timeout
    while True:
        answer = predicate()
        seen: T = await answer if inspect.isawaitable(answer) else answer
        if seen:
            return seen
        if time.monotonic() > until:
            raise AssertionError(_never(predicate, what, timeout, seen))
        await asyncio.sleep(_STEP_S)


def _never(predicate: Callable[[], object], what: str, timeout: float, seen: object) -> str:
    wanted = what or getattr(predicate, "__qualname__", repr(predicate))
    return f"{wanted} did not come true within {timeout:g} s; at last it was {seen!r}"
