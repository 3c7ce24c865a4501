"""What the leader does for the registry: marks nodes dead that say nothing any more, forgets those long silent.

No lease is touched: what a dead node ran comes back when its leases end, whoever leads.
"""

from __future__ import annotations

from collections.abc import Callable

from taskq import commands
from taskq.errors import LeadershipLost
from taskq.keys import ClusterKeys
from taskq.log import get_logger
from taskq.node.queues import Queues

EVERY_S = 5.0
LOOK_S = 1.0

log = get_logger(__name__)


class Census:
    """Counts the nodes while this one leads. `term`: in which term it does, None while it doesn't."""

    def __init__(self, queues: Queues, c: ClusterKeys, node: str, *, term: Callable[[], int | None]) -> None:
        self._queues = queues
        self._c = c
        self._node = node
        self._term = term

    async def step(self) -> float:
        """Mark and forget, if this node leads."""
        term = self._term()
        if term is None:
            return LOOK_S
        try:
            marked = await self._queues.run(commands.mark_dead(self._c, node=self._node, term=term))
        except LeadershipLost:
            return LOOK_S
        for node in marked:
            log.warning("a node says nothing any more", dead=node)
        await self._queues.run(commands.forget_nodes(self._c))
        return EVERY_S
