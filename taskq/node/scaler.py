"""What the leader does for scaling: reads what the scaled queues ask for, decides, and tells each node its slots.

Nodes show in their records which queues they scale, from how many slots to how many. A decision reaches a node with the
call it makes each second anyway, and only when it changes; one that the node doesn't show after a while is said again.
A leader that begins takes over the slots that nodes show, so that a change of leaders changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from taskq import commands, keys
from taskq.errors import LeadershipLost
from taskq.keys import ClusterKeys
from taskq.log import get_logger
from taskq.node.queues import Queues
from taskq.node.scale import EVERY_S, Load, Reading, Site, Steady, balance
from taskq.settings import checked_name

LOOK_S = 1.0
AGAIN = 4  # decisions after which a node that shows other slots is told again; its record is 10 s old at most

log = get_logger(__name__)


class Scaler:
    """Scales while this node leads.

    Args:
        queues: the way to Redis.
        c: the registry.
        namespace: of the queues.
        node: this one.
        term: in which term it leads, None while it doesn't.
    """

    def __init__(
        self, queues: Queues, c: ClusterKeys, namespace: str, node: str, *, term: Callable[[], int | None]
    ) -> None:
        self._queues = queues
        self._c = c
        self._namespace = namespace
        self._node = node
        self._term = term
        self._loads: dict[str, Load] = {}
        self._steady: dict[str, Steady] = {}
        self._said: dict[str, tuple[dict[str, int], int]] = {}

    async def step(self) -> float:
        """Decide, if this node leads."""
        term = self._term()
        if term is None:
            self._loads, self._steady, self._said = {}, {}, {}
            return LOOK_S
        sites, shown = await self._sites()
        named = {queue for site in sites.values() for queue in site.ranges}
        self._loads = {queue: self._loads.get(queue) or Load() for queue in named}
        if not named:
            return EVERY_S
        await self._queues.each_part([(queue, None) for queue in sorted(named)], self._read)
        given = balance(self._decide(sites, shown), sites)
        try:
            for node, slots in given.items():
                await self._tell(node, slots, shown[node], term)
        except LeadershipLost:
            return LOOK_S
        self._said = {node: said for node, said in self._said.items() if node in sites}
        return EVERY_S

    async def _sites(self) -> tuple[dict[str, Site], dict[str, dict[str, int]]]:
        """The nodes that claim and scale, and the slots that they show."""
        sites, shown = {}, {}
        for record in (await self._queues.run(commands.nodes(self._c))).nodes:
            site = site_of(record) if record.get("state") == "active" else None
            if site is not None:
                sites[record["id"]], shown[record["id"]] = site
        return sites, shown

    async def _read(self, q: keys.QueueKeys, _: None) -> None:
        found = await self._queues.run(commands.demand(q))
        self._loads[q.name].take(Reading(found.now_ms / 1000, *found[1:]))

    def _decide(self, sites: Mapping[str, Site], shown: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
        """Queue → slots on all nodes together."""
        wanted = {}
        steady = {}
        for queue, load in self._loads.items():
            bounds = [site.ranges[queue] for site in sites.values() if queue in site.ranges]
            before = sum(slots.get(queue, 0) for slots in shown.values())
            steady[queue] = each = self._steady.get(queue) or Steady(before)
            old = each.slots
            wanted[queue] = each.follow(load.need, sum(low for low, _ in bounds), sum(high for _, high in bounds))
            if wanted[queue] != old:
                numbers = {"arrivals_s": round(load.rate, 2), "run_s": round(load.mean_s, 3), "waiting": load.waiting}
                log.info("slots are scaled", queue=queue, slots=wanted[queue], before=old, **numbers)
        self._steady = steady
        return wanted

    async def _tell(self, node: str, slots: dict[str, int], shown: Mapping[str, int], term: int) -> None:
        said, ago = self._said.get(node, (None, 0))
        if said == slots and (shown == slots or ago < AGAIN):
            self._said[node] = slots, ago + 1
            return
        more = json.dumps({"queues": slots}, separators=(",", ":"))
        await self._queues.run(commands.order(self._c, "scale", node, by=self._node, more=more, term=term))
        self._said[node] = slots, 0


def site_of(record: Mapping[str, str]) -> tuple[Site, dict[str, int]] | None:
    """What a node's record says of its scaling, and the slots that it shows; None if it doesn't scale. What can't be
    right is left out: a record is text that anybody may have written.
    """
    try:
        stats = json.loads(record.get("stats") or "null")
        told = stats["scaling"]
        ranges, shown = {}, {}
        for queue, each in told["queues"].items():
            least, most, slots = _whole(each["least"]), _whole(each["most"]), _whole(each["slots"])
            if 1 <= least <= most:
                ranges[checked_name(queue, name="queue")] = least, most
                shown[queue] = slots
        total = _whole(told["total"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return (Site(ranges, total), shown) if ranges else None


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= 10_000_000:
        raise ValueError("no number of slots")
    return value
