"""Takes back the jobs of holders that fell silent: other nodes' deaths, seen by their expired leases.

Its call also stamps the queue as watched, every second by every node: that is how the first to come back after an
outage knows that there was one, and reaps nothing until holders have had a lease's time to renew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from taskq import commands, keys
from taskq.connection import AsyncServer, run_async
from taskq.log import get_logger
from taskq.node.loop import each

EVERY_S = 1.0
LIMIT = 100
_CALL_S = 2.0

log = get_logger(__name__)


class Reaper:
    """Reaps each queue this node serves. `queues` is asked at each step: a later worker may serve more."""

    def __init__(
        self, server: AsyncServer, namespace: str, queues: Callable[[], Iterable[str]], *, lease_ms: int
    ) -> None:
        self._server = server
        self._namespace = namespace
        self._queues = queues
        self._lease_ms = lease_ms

    async def step(self) -> float:
        """Reap every queue until nothing is left that has expired. A queue that doesn't answer stops no other."""
        await each(self._reap, self._queues(), self._away)
        return EVERY_S

    def _away(self, queue: str) -> object:
        return self._server.away(keys.queue(self._namespace, queue).prefix)

    async def _reap(self, queue: str) -> None:
        command = commands.reap(keys.queue(self._namespace, queue), lease_ms=self._lease_ms, limit=LIMIT)
        while True:
            reaped = await run_async(self._server, command, deadline_s=_CALL_S)
            for id, state in reaped.moved:
                log.warning("lease expired", job_id=id, state=state)
            if len(reaped.moved) < LIMIT:
                return
