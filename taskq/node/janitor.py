"""Removes ended jobs whose time is over, in bounded steps, from every queue this node serves.

Finishing removes a few as it goes; this is for queues where nothing finishes any more.
"""

from __future__ import annotations

from taskq import commands
from taskq.keys import QueueKeys
from taskq.node.queues import Queues

EVERY_S = 5.0
BUSY_S = 0.05  # while there is more: other calls get their turn in between
LIMIT = 100


class Janitor:
    """Prunes the queues this node serves."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._full = False

    async def step(self) -> float:
        """Prune each queue once, at most 100 jobs; soon again while one was full."""
        self._full = False
        await self._queues.each(self._prune)
        return BUSY_S if self._full else EVERY_S

    async def _prune(self, q: QueueKeys) -> None:
        if await self._queues.run(commands.prune(q, limit=LIMIT)) >= LIMIT:
            self._full = True
