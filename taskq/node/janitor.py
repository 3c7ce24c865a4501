"""Removes ended jobs whose time is over, in bounded steps, from every queue this node serves.

Finishing removes a few as it goes; this is for queues where nothing finishes any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from taskq import commands, keys
from taskq.connection import AsyncServer, run_async
from taskq.node.loop import each

EVERY_S = 5.0
BUSY_S = 0.05  # while there is more: other calls get their turn in between
LIMIT = 100
_CALL_S = 2.0


class Janitor:
    """Prunes. `queues` is asked at each step: a later worker may serve more."""

    def __init__(self, server: AsyncServer, namespace: str, queues: Callable[[], Iterable[str]]) -> None:
        self._server = server
        self._namespace = namespace
        self._queues = queues
        self._full = False

    async def step(self) -> float:
        """Prune each queue once, at most 100 jobs; soon again while one was full."""
        self._full = False
        await each(self._prune, self._queues(), self._away)
        return BUSY_S if self._full else EVERY_S

    def _away(self, queue: str) -> object:
        return self._server.away(keys.queue(self._namespace, queue).prefix)

    async def _prune(self, queue: str) -> None:
        command = commands.prune(keys.queue(self._namespace, queue), limit=LIMIT)
        if await run_async(self._server, command, deadline_s=_CALL_S) >= LIMIT:
            self._full = True
