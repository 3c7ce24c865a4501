"""Takes back the jobs of holders that fell silent: other nodes' deaths, seen by their expired leases.

Its call also stamps the queue as watched, every second by every node: that is how the first to come back after an
outage knows that there was one, and reaps nothing until holders have had a lease's time to renew. It is the one call a
second that a queue costs, so its answer also says whether anything is due there, for the scheduler to move.
"""

from __future__ import annotations

from taskq import commands
from taskq.keys import QueueKeys
from taskq.log import get_logger
from taskq.node.queues import Queues
from taskq.node.sweeps.scheduler import Scheduler

EVERY_S = 1.0
LIMIT = 100

log = get_logger(__name__)


class Reaper:
    """Reaps the queues this node serves, and has moved what is due in them."""

    def __init__(self, queues: Queues, *, lease_ms: int) -> None:
        self._queues = queues
        self._lease_ms = lease_ms
        self._scheduler = Scheduler(queues)

    async def step(self) -> float:
        """Reap every queue until nothing is left that has expired, and move what is due. A queue that doesn't answer
        stops no other.
        """
        await self._queues.each(self._reap)
        return EVERY_S

    async def _reap(self, q: QueueKeys) -> None:
        command = commands.reap(q, lease_ms=self._lease_ms, limit=LIMIT)
        while True:
            reaped = await self._queues.run(command)
            for id, state in reaped.moved:
                log.warning("lease expired", job_id=id, state=state)
            if len(reaped.moved) < LIMIT:
                break
        if reaped.due:
            await self._scheduler.move(q)
