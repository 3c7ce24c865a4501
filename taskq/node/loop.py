"""How a loop of the node turns: take a step, sleep as long as it says, survive whatever it meets.

A loop is a function `step() -> delay in seconds`; tests call it and never wait. An outage of Redis is said once when
it begins and once when it is over, for all loops together: its length must not fill the log.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from taskq.errors import Unavailable
from taskq.log import get_logger

AGAIN_S = 0.25  # after the first failure, doubled for each further one
AGAIN_MAX_S = 2.0
AT_ONCE = 4
_REPEAT_S = 60.0

log = get_logger(__name__)

T = TypeVar("T")
Step = Callable[[], Awaitable[float]]


class Outage:
    """Whether Redis answers, as one line in the log at each change."""

    def __init__(self) -> None:
        self.since: float | None = None

    def begins(self, error: Exception) -> None:
        """A call found nobody there."""
        if self.since is None:
            self.since = time.monotonic()
            log.warning("Redis is away; trying again until it is back", error=str(error))

    def ends(self) -> None:
        """A call was answered."""
        if self.since is not None:
            log.warning("Redis is back", away_s=round(time.monotonic() - self.since, 1))
            self.since = None


def again_s(failures: int) -> float:
    """How long to wait after so many failures in a row (at least 1)."""
    return float(min(AGAIN_MAX_S, AGAIN_S * 2 ** min(failures - 1, 10)))


async def each(work: Callable[[T], Awaitable[None]], items: Iterable[T]) -> None:
    """Do `work` for every item, a few at a time: a queue whose shard is away delays no other, and many queues don't
    open many connections. The first error is raised after all were tried; Unavailable only if there is no other.
    """
    places = asyncio.Semaphore(AT_ONCE)

    async def one(item: T) -> None:
        async with places:
            await work(item)

    answers = await asyncio.gather(*(one(item) for item in items), return_exceptions=True)
    errors = [answer for answer in answers if answer is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, Unavailable)):
        raise error


async def turn(
    name: str, step: Step, outage: Outage | None = None, *, heals: bool = True, after_s: float = 0.0
) -> None:
    """Call `step` for ever, first `after_s` from now. `outage` belongs to loops that talk to Redis; `heals` to those
    that do so at every step: only their success says that Redis is back.

    Any error but Unavailable is logged, at most once a minute for a loop, and the loop goes on: a fault in one step
    must not end the node's care for running jobs.
    """
    failures, said_at = 0, float("-inf")
    await asyncio.sleep(after_s)
    while True:
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
        await asyncio.sleep(delay_s)
