"""Makes due jobs available and ends expired ones, each second, for every queue this node serves.

Workers promote on their own exact timers as they claim; this is for what they leave over: a class no free worker
claims, a paused queue, a worker that died with the timer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from taskq import commands, keys
from taskq.commands import Command
from taskq.connection import AsyncServer, run_async
from taskq.node.loop import each

EVERY_S = 1.0
LIMIT = 100
_CALL_S = 2.0


class Scheduler:
    """Promotes and expires. `queues` is asked at each step: a later worker may serve more."""

    def __init__(self, server: AsyncServer, namespace: str, queues: Callable[[], Iterable[str]]) -> None:
        self._server = server
        self._namespace = namespace
        self._queues = queues

    async def step(self) -> float:
        """Move all that is due. A queue that doesn't answer stops no other."""
        await each(self._move, self._queues(), self._away)
        return EVERY_S

    def _away(self, queue: str) -> object:
        return self._server.away(keys.queue(self._namespace, queue).prefix)

    async def _move(self, queue: str) -> None:
        q = keys.queue(self._namespace, queue)
        await self._while_full(commands.promote(q, limit=LIMIT))
        await self._while_full(commands.expire(q, limit=LIMIT))

    async def _while_full(self, command: Command[int]) -> None:
        while await run_async(self._server, command, deadline_s=_CALL_S) >= LIMIT:
            pass
