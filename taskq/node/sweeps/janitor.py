"""Removes ended jobs whose time is over, and reservations that hold a slot for nothing, in bounded steps, from every
queue this node serves.

Finishing and reserving remove a few as they go; this is for queues where neither happens any more.

Once a minute it forgets the classes of which no job waited a minute ago, nor does now: a queue may have only so many.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from taskq import commands
from taskq.keys import QueueKeys
from taskq.node.queues import Queues

EVERY_S = 5.0
BUSY_S = 0.05  # while there is more: other calls get their turn in between
LIMIT = 100
RESERVATIONS_EVERY_S = 60.0
CLASSES_EVERY_S = 60.0


class Janitor:
    """Prunes the queues this node serves."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._full = False
        self._reservations: dict[str, tuple[float, int]] = {}  # queue → when to look at its next, and from where on
        self._idle: dict[str, tuple[float, list[str]]] = {}  # queue → when to look at its next, and what was idle

    async def step(self) -> float:
        """Prune each queue once, at most 100 jobs; soon again while one was full."""
        self._full = False
        await self._queues.each(self._prune)
        return BUSY_S if self._full else EVERY_S

    async def _prune(self, q: QueueKeys) -> None:
        self._full = await self.tidy(q) or self._full

    async def tidy(self, q: QueueKeys) -> bool:
        """What is done in one queue, as far as it is its time; whether there is more to prune."""
        pruned = await self._queues.run(commands.prune(q, limit=LIMIT))
        await self._take_back(q)
        await self._forget_classes(q)
        return pruned >= LIMIT

    def keep(self, names: Collection[str]) -> None:
        """Remember nothing of other queues than these."""
        for memory in (self._reservations, self._idle):
            for name in [*memory]:
                if name not in names:
                    del memory[name]

    async def _take_back(self, q: QueueKeys) -> None:
        due, at = self._reservations.get(q.name, (0.0, 0))
        if time.monotonic() < due:
            return
        sweep = commands.sweep_reservations
        steps = [sweep(q, "unbound", limit=LIMIT), sweep(q, "bound", skip=at, limit=LIMIT)]
        (lapsed, _), (dropped, looked) = await self._queues.run_many(steps)
        more = looked >= LIMIT
        wait_s = 0.0 if more or lapsed >= LIMIT else RESERVATIONS_EVERY_S
        self._reservations[q.name] = (time.monotonic() + wait_s, at + looked - dropped if more else 0)

    async def _forget_classes(self, q: QueueKeys) -> None:
        due, idle = self._idle.get(q.name, (0.0, []))
        if time.monotonic() >= due:
            left = await self._queues.run(commands.sweep_classes(q, idle=idle))
            self._idle[q.name] = time.monotonic() + CLASSES_EVERY_S, left.classes
