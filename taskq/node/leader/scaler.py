"""What the leader does for scaling: reads what queues ask for, decides, and tells each node its slots and workers.

Nodes show in their records which queues they scale, from how many slots to how many, and so their workers. A decision
reaches a node with the call it makes each second anyway, and only when it changes; one that the node doesn't show after
a while is said again. A leader that begins takes over what nodes show, so that a change of leaders changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from taskq import commands, keys
from taskq.errors import LeadershipLost
from taskq.keys import ClusterKeys
from taskq.log import get_logger
from taskq.node.leader.scale import EVERY_S, Crew, Load, Reading, Site, Steady, balance, hands
from taskq.node.queues import Queues
from taskq.settings import checked_name

LOOK_S = 1.0
AGAIN = 4  # decisions after which a node that shows something else is told again; its record is 10 s old at most
NODES = 1_000

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
        self._crews: dict[str, Steady] = {}
        self._said: dict[str, tuple[dict[str, Any], int]] = {}

    async def step(self) -> float:
        """Decide, if this node leads."""
        term = self._term()
        if term is None:
            self._loads, self._steady, self._crews, self._said = {}, {}, {}, {}
            return LOOK_S
        seen = await self._look()
        named = {queue for each in seen.values() for queue in each.queues}
        self._loads = {queue: self._loads.get(queue) or Load() for queue in named}
        if not seen:
            return EVERY_S
        await self._queues.each_part([(queue, None) for queue in sorted(named)], self._read)
        orders = self._decide(seen)
        try:
            for node, order in orders.items():
                await self._tell(node, order, seen[node].shown, term)
        except LeadershipLost:
            return LOOK_S
        self._said = {node: said for node, said in self._said.items() if node in seen}
        return EVERY_S

    async def _look(self) -> dict[str, Scaled]:
        """The nodes that claim and scale. All records are read, a thousand at most: what a node shows may be new."""
        seen = {}
        for record in (await self._queues.run(commands.nodes(self._c, limit=NODES))).nodes:
            found = scaled_of(record) if record.get("state") == "active" else None
            if found is not None:
                seen[record["id"]] = found
        return seen

    async def _read(self, q: keys.QueueKeys, _: None) -> None:
        found = await self._queues.run(commands.demand(q))
        self._loads[q.name].take(Reading(found.now_ms / 1000, *found[1:]))

    def _decide(self, seen: Mapping[str, Scaled]) -> dict[str, dict[str, Any]]:
        """Node → what it shall have."""
        sites = {node: each.site for node, each in seen.items() if each.site.ranges}
        given = balance(self._slots(sites, seen), sites)
        orders: dict[str, dict[str, Any]] = {node: {"queues": slots} for node, slots in given.items()}
        crews = {node: each.crew for node, each in seen.items() if each.crew is not None}
        for node, workers in self._workers(crews, given).items():
            orders.setdefault(node, {})["within"] = workers
        return orders

    def _slots(self, sites: Mapping[str, Site], seen: Mapping[str, Scaled]) -> dict[str, int]:
        """Queue → slots on all nodes together, of those whose slots are scaled."""
        wanted = {}
        steady = {}
        for queue in {queue for site in sites.values() for queue in site.ranges}:
            load = self._loads[queue]
            bounds = [site.ranges[queue] for site in sites.values() if queue in site.ranges]
            before = sum(seen[node].shown["queues"].get(queue, 0) for node in sites)
            steady[queue] = each = self._steady.get(queue) or Steady(before)
            old = each.slots
            wanted[queue] = each.follow(load.need, sum(low for low, _ in bounds), sum(high for _, high in bounds))
            if wanted[queue] != old:
                numbers = {"arrivals_s": round(load.rate, 2), "run_s": round(load.mean_s, 3), "waiting": load.waiting}
                log.info("slots are scaled", queue=queue, slots=wanted[queue], before=old, **numbers)
        self._steady = steady
        return wanted

    def _workers(self, crews: Mapping[str, Crew], given: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
        """Node → workers, of those whose number is scaled."""
        wanted = {}
        steady = {}
        needs = {queue: load.need for queue, load in self._loads.items()}
        for node, need in hands(needs, crews, given).items():
            crew = crews[node]
            steady[node] = each = self._crews.get(node) or Steady(crew.now)
            old = each.slots
            wanted[node] = each.follow(need, crew.least, crew.most)
            if wanted[node] != old:
                numbers = {"need": round(need, 2), "slots_each": crew.each, "cores": crew.cores}
                log.info("workers are scaled", node=node, workers=wanted[node], before=old, **numbers)
        self._crews = steady
        return wanted

    async def _tell(self, node: str, order: dict[str, Any], shown: Mapping[str, Any], term: int) -> None:
        said, ago = self._said.get(node, (None, 0))
        if said == order and (shown == order or ago < AGAIN):
            self._said[node] = order, ago + 1
            return
        more = json.dumps(order, separators=(",", ":"))
        await self._queues.run(commands.order(self._c, "scale", node, by=self._node, more=more, term=term))
        self._said[node] = order, 0


class Scaled(NamedTuple):
    """What a node's record says of its scaling: the bounds of its queues' slots, its workers if their number is scaled,
    and what it has of both, as an order would say it.
    """

    site: Site
    crew: Crew | None
    shown: dict[str, Any]

    @property
    def queues(self) -> set[str]:
        """Those whose need is to be known."""
        return {*self.site.ranges, *(self.crew.queues if self.crew is not None else ())}


def scaled_of(record: Mapping[str, str]) -> Scaled | None:
    """What a node's record says; None if it doesn't scale. What can't be right is left out: a record is text that
    anybody may have written.
    """
    try:
        told = json.loads(record.get("stats") or "null")["scaling"]
        site, slots = _site(told)
        crew = _crew(told["workers"]) if "workers" in told else None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    shown: dict[str, Any] = {"queues": slots} if site.ranges else {}
    if crew is not None:
        shown["within"] = crew.now
    return Scaled(site, crew, shown) if shown else None


def _site(told: Any) -> tuple[Site, dict[str, int]]:
    ranges, slots = {}, {}
    for queue, each in told.get("queues", {}).items():
        least, most, now = _whole(each["least"]), _whole(each["most"]), _whole(each["slots"])
        if 1 <= least <= most:
            ranges[checked_name(queue, name="queue")] = least, most
            slots[queue] = now
    return Site(ranges, _whole(told["total"]) if ranges else 0), slots


def _crew(told: Any) -> Crew | None:
    least, most, now, each = (_whole(told[name]) for name in ("least", "most", "now", "each"))
    if not (1 <= least <= most and each):
        return None
    cores = min(float(most), max(0.0, float(told["cores"])))
    return Crew(least, most, now, each, cores, {checked_name(queue, name="queue") for queue in told["queues"]})


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= 10_000_000:
        raise ValueError("no number of slots")
    return value
