"""Makes due jobs available and ends expired ones, each second, for every queue this node serves.

Workers promote on their own exact timers as they claim; this is for what they leave over: a class no free worker
claims, a paused queue, a worker that died with the timer.
"""

from __future__ import annotations

from taskq import commands
from taskq.commands import Command
from taskq.keys import QueueKeys
from taskq.node.queues import Queues

EVERY_S = 1.0
LIMIT = 100


class Scheduler:
    """Promotes and expires in the queues this node serves."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    async def step(self) -> float:
        """Move all that is due. A queue that doesn't answer stops no other."""
        await self._queues.each(self._move)
        return EVERY_S

    async def _move(self, q: QueueKeys) -> None:
        await self._while_full(commands.promote(q, limit=LIMIT))
        await self._while_full(commands.expire(q, limit=LIMIT))

    async def _while_full(self, command: Command[int]) -> None:
        while await self._queues.run(command) >= LIMIT:
            pass
