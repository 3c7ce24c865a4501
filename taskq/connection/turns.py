"""Whose turn it is: a loop holds so many connections to a node, and further calls wait in the order they came.

They wait as long as calls are answered: a thousand calls at once take their time, and nothing is wrong. Only when no
call was answered for as long as a call may take, those that wait are told.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque


class Stuck(Exception):
    """No call was answered for too long. Never leaves this room."""


class Turns:
    """The places at one node. `quiet_s`: how long no call may be answered before waiting is given up."""

    def __init__(self, places: int, quiet_s: float) -> None:
        self._free = places
        self._quiet_s = quiet_s
        self._answered = 0.0
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._watch: asyncio.TimerHandle | None = None

    async def take(self) -> float:
        """Waits for a place. How long other calls were answered meanwhile, in seconds: that much is not the server's.

        Raises:
            Stuck: no call was answered meanwhile.
        """
        now = time.monotonic()
        if self._free:
            self._free -= 1
            return 0.0
        loop = asyncio.get_running_loop()
        place: asyncio.Future[None] = loop.create_future()
        self._waiting.append((now, place))
        if self._watch is None:
            self._watch = loop.call_later(self._quiet_s, self._look)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.give_back()  # it came together with the cancel
            raise
        return max(0.0, self._answered - now)

    def answered(self) -> None:
        """A call was answered."""
        self._answered = time.monotonic()

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
        now = time.monotonic()
        while self._waiting:
            since, place = self._waiting[0]
            left_s = max(since, self._answered) + self._quiet_s - now
            if not place.done():
                if left_s > 0:
                    self._watch = asyncio.get_running_loop().call_later(left_s, self._look)
                    return
                place.set_exception(Stuck())
            self._waiting.popleft()
