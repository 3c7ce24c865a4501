"""What the leader does about targets that can't run their jobs: after half a minute these are freed.

A target is lost while no living node is it (none has that id or host name); its jobs go to whoever may run them, or
fail if they asked for that. It is busy while all nodes that it names drain, or have no slot free: those that would
fail wait on. Both must have been seen for so long without a gap: after an outage, or a new leader, it counts anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from taskq import commands, needs
from taskq.keys import ClusterKeys, QueueKeys
from taskq.log import get_logger
from taskq.node.queues import Queues
from taskq.presence import node_shown

EVERY_S = 10.0
GAP_S = 25.0
PATIENCE_S = 30.0
LIMIT = 100
STEPS = 20
"""Calls a look for one class; the rest comes with the next."""
PAGE = 1000
AT_ONCE = 50  # queues a step: of very many each has its turn later

Why = Literal["lost", "busy"]

log = get_logger(__name__)


def amiss(target: str, nodes: Iterable[Mapping[str, Any]]) -> Why | None:
    """What is wrong with a target, by the nodes that live, as the registry shows them."""
    named = [node for node in nodes if target in {node["id"], node["hostname"]} and node["state"] != "dead"]
    if not named:
        return "lost"
    return "busy" if all(_takes_nothing(node) for node in named) else None


def _takes_nothing(node: Mapping[str, Any]) -> bool:
    slots = node["stats"]["slots"]
    return bool(node["state"] != "active" or (slots > 0 and node["stats"]["busy"] >= slots))


class Targets:
    """Frees the jobs of targets that are lost or busy, while this node leads.

    Args:
        queues: the way to Redis.
        c: the registry.
        term: in which term this node leads, None while it doesn't.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        queues: Queues,
        c: ClusterKeys,
        *,
        term: Callable[[], int | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queues = queues
        self._c = c
        self._term = term
        self._clock = clock
        self._looked = float("-inf")
        self._next = ""
        self._since: dict[str, tuple[Why, float]] = {}
        self._named: dict[str, set[str]] = {}
        self._nodes: list[dict[str, Any]] = []

    async def step(self) -> float:
        """See which targets are amiss, if this node leads; free the jobs of those that long are, some queues a step."""
        if self._term() is None:
            self._since, self._named = {}, {}
            return EVERY_S
        self._nodes = await self._living()
        names = await self._queues.run(commands.queues(self._c))
        now = self._clock()
        if now - self._looked > GAP_S:
            self._since = {}
        self._looked = now
        self._named = {name: self._named[name] for name in names if name in self._named}
        for target in set().union(*self._named.values()):
            self._judge(target, now)
        turn = [name for name in names if name >= self._next][:AT_ONCE]
        self._next = turn[-1] + "\0" if len(turn) == AT_ONCE else ""
        await self._queues.each_part([(name, now) for name in turn], self._look)
        return EVERY_S

    async def _living(self) -> list[dict[str, Any]]:
        nodes: list[dict[str, Any]] = []
        while True:
            found = await self._queues.run(commands.nodes(self._c, limit=PAGE, offset=len(nodes)))
            nodes += [node_shown(each, found.now_ms) for each in found.nodes]
            if not found.nodes or len(nodes) >= found.total:
                return nodes

    async def _look(self, q: QueueKeys, now: float) -> None:
        found = await self._queues.run(commands.classes(q, targets=[commands.EVERY_TARGET]))
        wanted = {klass: needs.of_requirement(text)[1] for klass, text in found.classes.items()}
        targets = {klass: each.target for klass, each in wanted.items() if each is not None and each.target}
        self._named[q.name] = set(targets.values())
        for klass, target in targets.items():
            why, since = self._since.get(target) or self._judge(target, now)
            if why is not None and now - since >= PATIENCE_S and self._term() is not None:
                await self._free(q, klass, target, why)

    def _judge(self, target: str, now: float) -> tuple[Why | None, float]:
        """What is wrong with it now, and since when it is."""
        why = amiss(target, self._nodes)
        known, since = self._since.pop(target, (why, now))
        if why is None:
            return None, now
        self._since[target] = why, since if known in (why, "lost") else now
        return self._since[target]

    async def _free(self, q: QueueKeys, klass: str, target: str, why: Why) -> None:
        moved = failed = 0
        for _ in range(STEPS):
            freed = await self._queues.run(commands.untarget(q, klass, why=why, limit=LIMIT))
            moved, failed = moved + freed.moved, failed + freed.failed
            if freed.looked < LIMIT or self._term() is None:
                break
        if moved or failed:
            log.warning("a target's jobs are freed", why=why, queue=q.name, target=target, moved=moved, failed=failed)
