"""Whether this node leads; and what it was told to do, which the same call a second brings.

It believes that it leads only until TTL_MS after it *asked*, less a margin: by the server's reckoning it then still
does. No answer is no leadership. What a leader writes carries the term, and is refused once another node has one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from taskq import commands
from taskq.commands import Order
from taskq.errors import LeadershipLost, Unavailable
from taskq.keys import ClusterKeys
from taskq.log import get_logger
from taskq.node.queues import Queues
from taskq.node.skew import Skew

EVERY_S = 1.0
TTL_MS = 6_000
MARGIN_S = 1.0
CALL_S = 1.0

log = get_logger(__name__)


class Leader:
    """One node's part in the election.

    Args:
        queues: the way to Redis.
        c: the registry.
        node: this node.
        obey: called with each order that is meant for this node; what all were told before it began, it wasn't.
        would_lead: whether it takes part; one that drains doesn't.
        clock: seconds, monotonic.
        skew: told of the server's time.
    """

    def __init__(
        self,
        queues: Queues,
        c: ClusterKeys,
        node: str,
        *,
        obey: Callable[[Order], None] = lambda _: None,
        would_lead: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
        skew: Skew | None = None,
    ) -> None:
        self._queues = queues
        self._c = c
        self._node = node
        self._obey = obey
        self._would_lead = would_lead
        self._clock = clock
        self._skew = skew or Skew()
        self._after = ""
        self._made, self._made_ms = clock(), 0
        self._term: int | None = None
        self._until = float("-inf")

    @property
    def term(self) -> int | None:
        """The term in which this node leads now; None while it doesn't, or can't be sure."""
        return self._term if self._clock() < self._until else None

    def leading(self) -> int:
        """As `term`.

        Raises:
            LeadershipLost: this node doesn't lead.
        """
        if (term := self.term) is None:
            raise LeadershipLost
        return term

    async def step(self) -> float:
        """Lead on, or seek to; do what was ordered. A node that would lead no more resigns."""
        would_lead, asked = self._would_lead(), self._clock()
        if not would_lead:
            await self.resign()
        command = commands.pulse(self._c, node=self._node, leads=would_lead, ttl_ms=TTL_MS, after=self._after)
        wall = self._skew.wall()
        heard = await self._queues.run(command, deadline_s=CALL_S)
        self._skew.hear(wall, heard.now_ms)
        self._after = heard.after
        if not self._made_ms:
            self._made_ms = heard.now_ms - int((self._clock() - self._made) * 1000)
        if would_lead and heard.leader == self._node:
            if heard.term != self._term:
                log.info("this node leads now", node=self._node, term=heard.term)
            self._term, self._until = heard.term, asked + TTL_MS / 1000 - MARGIN_S
        elif self._term is not None:
            log.warning("another node leads now", node=heard.leader, term=heard.term)
            self._lose()
        for order in heard.orders:
            if order.to == self._node or (order.to == "*" and order.at_ms >= self._made_ms):
                self._obey(order)
        # Whose time is nearly over has missed its last calls: who asks when it is over leads within one TTL after them.
        return min(EVERY_S, heard.left_ms / 1000) if would_lead and heard.leader else EVERY_S

    def _lose(self) -> None:
        log.info("this node leads no more", node=self._node, term=self._term)
        self._term, self._until = None, float("-inf")

    async def resign(self) -> None:
        """Lead no more, so that another node may at once. An answer isn't waited for long: the term ends by itself."""
        if self._term is None:
            return
        term = self._term
        self._lose()
        with contextlib.suppress(Unavailable):
            await self._queues.run(commands.resign(self._c, node=self._node, term=term), deadline_s=CALL_S)
