"""Whose turn it is: a loop holds so many connections to a node, and further calls wait in the order they came.

They wait as long as calls are answered: a thousand calls at once take their time, and nothing is wrong. Only when no
call was answered for as long as a call may take, those that wait are told.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

#: In so many steps the time is counted: a loop that is held up for seconds, by a thousand calls that begin at once, has
#: had no chance to read an answer meanwhile, and makes one step.
_TICKS = 4


class Stuck(Exception):
    """No call was answered for too long. Never leaves this room."""


class Turns:
    """The places at one node. `quiet_s`: how long no call may be answered before waiting is given up."""

    def __init__(self, places: int, quiet_s: float) -> None:
        self._free = places
        self._tick_s = quiet_s / _TICKS
        self._tick = 0
        self._answered_tick = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._watch: asyncio.TimerHandle | None = None

    async def take(self) -> float:
        """Waits for a place. How much of that was not the server's, in seconds: others were answered, or we held up.

        Raises:
            Stuck: no call was answered meanwhile.
        """
        now = time.monotonic()
        if self._free:
            self._free -= 1
            return 0.0
        loop = asyncio.get_running_loop()
        place: asyncio.Future[None] = loop.create_future()
        since = self._tick
        self._waiting.append((since, place))
        if self._watch is None:
            self._watch = loop.call_later(self._tick_s, self._look)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.give_back()  # it came together with the cancel
            raise
        silent_s = (self._tick - max(since, self._answered_tick)) * self._tick_s
        return max(0.0, time.monotonic() - now - silent_s)

    def answered(self) -> None:
        """A call was answered."""
        self._answered_tick = self._tick

    def give_back(self) -> None:
        """Hands the place to the one who waits longest."""
        while self._waiting:
            _, place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._free += 1

    def _look(self) -> None:
        self._watch = None
        self._tick += 1
        while self._waiting:
            since, place = self._waiting[0]
            if not place.done():
                if self._tick - max(since, self._answered_tick) <= _TICKS:
                    self._watch = asyncio.get_running_loop().call_later(self._tick_s, self._look)
                    return
                place.set_exception(Stuck())
            self._waiting.popleft()
