"""Makes due jobs available and ends expired ones, of every queue this node serves.

Workers promote on their own exact timers as they claim; this is for what they leave over: a class no free worker
claims, a paused queue, a worker that died with the timer. The reaper asks each queue every second, and its answer says
whether there is anything: a queue in which nothing is due costs no call.
"""

from __future__ import annotations

from taskq import commands
from taskq.commands import Command
from taskq.keys import QueueKeys
from taskq.node.queues import Queues

LIMIT = 100


class Scheduler:
    """Promotes and expires."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    async def move(self, q: QueueKeys) -> None:
        """Move all that is due in this queue."""
        await self._while_full(commands.promote(q, limit=LIMIT))
        await self._while_full(commands.expire(q, limit=LIMIT))

    async def _while_full(self, command: Command[int]) -> None:
        while await self._queues.run(command) >= LIMIT:
            pass
