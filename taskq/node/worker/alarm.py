"""When a claimer looks again though nothing happens: after a while, and exactly when something of a queue is due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    """Timers of this event loop.

    Args:
        ring: called when it is time to look.
    """

    def __init__(self, ring: Callable[[], object]) -> None:
        self._ring = ring
        self._again: asyncio.TimerHandle | None = None
        self._due: dict[str, asyncio.TimerHandle] = {}

    def later(self, delay_s: float) -> None:
        """Ring after a while; the earliest such wish counts."""
        loop = asyncio.get_running_loop()
        if self._again is not None and loop.time() < self._again.when() <= loop.time() + delay_s:
            return
        if self._again is not None:
            self._again.cancel()
        self._again = loop.call_later(delay_s, self._ring)

    def due(self, queue: str, in_ms: int | None, want: Callable[[], object]) -> None:
        """Call `want` and ring when something of a queue is due: in so long, or not at all. The last wish counts."""
        timer = self._due.pop(queue, None)
        if timer is not None:
            timer.cancel()
        if in_ms is not None:
            self._due[queue] = asyncio.get_running_loop().call_later((in_ms + 1) / 1000, want)

    def cancel(self) -> None:
        """Ring no more."""
        for timer in [*self._due.values(), self._again]:
            if timer is not None:
                timer.cancel()
