"""What the leader does for queues that no living node serves: the same sweeps as every node does for its own, slowly.

So a job whose host died is given back though nobody would notice, what waits there expires, and what ended goes, as
do the classes that no job needs any more and what holds a slot for nothing. Each such queue is looked at every 30 s.
Where something runs, nothing is taken before its holder has had a lease's time to renew, and for so long somebody has
to look every second: else each look would take the silence for an outage.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from taskq import commands
from taskq.keys import ClusterKeys, QueueKeys
from taskq.log import get_logger
from taskq.node.queues import Queues
from taskq.node.sweeps.janitor import Janitor
from taskq.presence import node_shown

EVERY_S = 30.0
LOOK_S = 1.0
AT_ONCE = 10  # queues a second: of very many each has its turn later
LIMIT = 100

log = get_logger(__name__)


class Strays:
    """Sweeps the queues that nobody serves, while this node leads.

    Args:
        queues: the way to Redis.
        c: the registry.
        lease_ms: how long holders have to renew.
        term: in which term this node leads, None while it doesn't.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        queues: Queues,
        c: ClusterKeys,
        *,
        lease_ms: int,
        term: Callable[[], int | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queues = queues
        self._c = c
        self._lease_ms = lease_ms
        self._term = term
        self._clock = clock
        self._due: dict[str, float] = {}
        self._watched: set[str] = set()
        self._janitor = Janitor(queues)
        self._listed = float("-inf")

    async def step(self) -> float:
        """Sweep those whose turn it is, if this node leads."""
        if self._term() is None:
            self._due, self._watched, self._listed = {}, set(), float("-inf")
            return LOOK_S
        now = self._clock()
        if now - self._listed >= EVERY_S:
            await self._list(now)
        others = sorted((at, name) for name, at in self._due.items() if at <= now and name not in self._watched)
        turn = [*self._watched, *(name for _, name in others[: max(0, AT_ONCE - len(self._watched))])]
        self._due |= dict.fromkeys(turn, now + EVERY_S)
        await self._queues.each_part([(name, None) for name in turn], self._sweep)
        return LOOK_S

    async def _list(self, now: float) -> None:
        """Which queues there are, but for those that a living node serves."""
        known = await self._queues.run(commands.queues(self._c))
        found = await self._queues.run(commands.nodes(self._c))  # a thousand; sweeping what another serves harms nobody
        served = {queue for each in found.nodes for queue in node_shown(each, found.now_ms)["queues"]}
        names = {name for name in known if name not in served}
        self._due = {name: self._due.get(name, now) for name in names}
        self._watched &= names
        self._janitor.keep(names)
        self._listed = now

    async def _sweep(self, q: QueueKeys, _: None) -> None:
        self._watched.discard(q.name)
        reaped = await self._queues.run(commands.reap(q, lease_ms=self._lease_ms, limit=LIMIT))
        for id, state in reaped.moved:
            log.warning("lease expired", job_id=id, state=state, served="by no node")
        sweeps = (commands.promote, commands.expire) if reaped.due else ()
        moved = [await self._queues.run(sweep(q, limit=LIMIT)) for sweep in sweeps]
        if await self._janitor.tidy(q) or max(*moved, len(reaped.moved), 0) >= LIMIT:
            self._due[q.name] = self._clock()
        if reaped.quiet_ms and (await self._queues.run(commands.counts(q))).running:
            self._watched.add(q.name)
