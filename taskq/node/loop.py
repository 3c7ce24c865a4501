"""How a loop of the node turns: take a step, sleep as long as it says, survive whatever it meets.

A loop is a function `step() -> delay in seconds`; tests call it and never wait. An outage of Redis is said once when
it begins and once when it is over, for all loops together: its length must not fill the log.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from taskq.errors import Unavailable
from taskq.log import get_logger

AGAIN_S = 0.25  # after the first failure, doubled for each further one
AGAIN_MAX_S = 2.0
_REPEAT_S = 60.0

log = get_logger(__name__)

Step = Callable[[], Awaitable[float]]


class Seen(Protocol):
    """Who looks whether loops turn."""

    def turned(self, loop: str, *, well: bool) -> None:
        """A loop is about to take a step, or has taken one."""


class Outage:
    """Whether Redis answers, as one line in the log at each change. `apart`: each queue for itself, as in a cluster.
    `excused`: whether a call that fails now may have failed of this process, not of Redis.
    """

    def __init__(self, *, apart: bool = False, excused: Callable[[], bool] = lambda: False) -> None:
        self._apart = apart
        self._excused = excused
        self._since: dict[str, float] = {}

    def begins(self, error: Exception, queue: str = "") -> None:
        """A call found nobody there."""
        at = self._at(queue)
        if at not in self._since and not self._excused():
            self._since[at] = time.monotonic()
            log.warning("Redis is away; trying again until it is back", error=str(error), **_named(at))

    def ends(self, queue: str = "") -> None:
        """A call was answered."""
        if self._since and (since := self._since.pop(self._at(queue), None)) is not None:
            log.warning("Redis is back", away_s=round(time.monotonic() - since, 1), **_named(self._at(queue)))

    def _at(self, queue: str) -> str:
        return queue if self._apart else ""


def _named(queue: str) -> dict[str, str]:
    return {"queue": queue} if queue else {}


def again_s(failures: int) -> float:
    """How long to wait after so many failures in a row (at least 1)."""
    return float(min(AGAIN_MAX_S, AGAIN_S * 2 ** min(failures - 1, 10)))


async def turn(
    name: str,
    step: Step,
    outage: Outage | None = None,
    *,
    heals: bool = True,
    after_s: float = 0.0,
    seen: Seen | None = None,
) -> None:
    """Call `step` for ever, first `after_s` from now. `outage` belongs to loops that talk to Redis; `heals` to those
    that do so at every step: only their success says that Redis is back. `seen` is told of each step.

    Any error but Unavailable is logged, at most once a minute for a loop, and the loop goes on: a fault in one step
    must not end the node's care for running jobs.
    """
    failures, said_at = 0, float("-inf")
    await asyncio.sleep(after_s)
    while True:
        if seen is not None:
            seen.turned(name, well=False)
        try:
            delay_s = await step()
        except Unavailable as error:
            failures += 1
            delay_s = again_s(failures)
            if outage is not None:
                outage.begins(error)
        except Exception:
            failures += 1
            delay_s = again_s(failures)
            if time.monotonic() - said_at > _REPEAT_S:
                said_at = time.monotonic()
                log.exception("a step failed; the loop goes on", loop=name)
        else:
            failures = 0
            if outage is not None and heals:
                outage.ends()
        if seen is not None:
            seen.turned(name, well=not failures)
        await asyncio.sleep(delay_s)
