"""What the leader does about targets that can't run their jobs, and offers that nobody will start: it frees the jobs.

A target is lost while nobody is it: no living node has that id or host name, no executor that isn't our worker. Its
jobs go to whoever may run them, or fail if they asked for that. It is busy while all nodes that it names drain, or have
no slot free: those that would fail wait on. Both must have been seen for half a minute without a gap: after an outage,
or with a new leader, it counts anew. An offer goes back at once if its node is dead or drains, after half a minute if
that is full.

All of it carries the term of this node, and is refused once a later leader has written to the queue.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from taskq import commands, needs
from taskq.errors import LeadershipLost
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
Node = Mapping[str, Any]

log = get_logger(__name__)


def amiss(target: str, nodes: Iterable[Node], kind: str = "async") -> Why | None:
    """What is wrong with a target, for jobs of an executor kind, by the nodes that live, as the registry shows them."""
    named = [node for node in nodes if target in {node["id"], node["hostname"]} and node["state"] != "dead"]
    if not named:
        return "lost"
    return "busy" if all(node["state"] != "active" or is_full(node, kind) for node in named) else None


def is_full(node: Node, kind: str = "") -> bool:
    """Whether no slot is free; of a kind, where the node tells them apart."""
    stats = node["stats"].get("executors", {}).get(kind, node["stats"])
    return bool(0 < stats["slots"] <= stats["busy"])


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
        self._since: dict[tuple[str, str], tuple[Why, float]] = {}  # queue and class
        self._known: dict[str, dict[str, tuple[str, str]]] = {}  # queue: class: kind and target
        self._full: dict[str, float] = {}
        self._nodes: dict[str, Node] = {}

    async def step(self) -> float:
        """See which targets are amiss, if this node leads; free the jobs of those that long are, some queues a step."""
        if (term := self._term()) is None:
            self._since, self._known, self._full = {}, {}, {}
            return EVERY_S
        self._nodes = {node["id"]: node async for node in self._every()}
        names = await self._queues.run(commands.queues(self._c))
        now = self._clock()
        if now - self._looked > GAP_S:
            self._since, self._full = {}, {}
        self._looked = now
        self._full = {id: self._full.get(id, now) for id, node in self._nodes.items() if is_full(node)}
        self._known = {name: self._known[name] for name in names if name in self._known}
        for name, classes in self._known.items():
            for klass, told in classes.items():
                self._judge((name, klass), *told, now)
        turn = [name for name in names if name >= self._next][:AT_ONCE]
        self._next = turn[-1] + "\0" if len(turn) == AT_ONCE else ""
        await self._queues.each_part([(name, (now, term)) for name in turn], self._look)
        return EVERY_S

    async def _every(self) -> AsyncIterator[Node]:
        """The nodes, also those that died a while ago."""
        seen = 0
        while True:
            found = await self._queues.run(commands.nodes(self._c, every=True, limit=PAGE, offset=seen))
            for each in found.nodes:
                yield node_shown(each, found.now_ms)
            seen += len(found.nodes)
            if not found.nodes or seen >= found.total:
                return

    async def _look(self, q: QueueKeys, seen: tuple[float, int]) -> None:
        now, term = seen
        found = await self._queues.run(commands.classes(q, targets=[commands.EVERY_TARGET]))
        wanted = {klass: needs.of_requirement(text) for klass, text in found.classes.items()}
        told = {
            klass: (kind, each.target) for klass, (kind, each) in wanted.items() if each is not None and each.target
        }
        self._known[q.name] = told
        with suppress(LeadershipLost):  # of this queue: what is the matter with another must be heard of
            await self._free_all(q, told, found.executors, now, term)

    async def _free_all(
        self, q: QueueKeys, told: Mapping[str, tuple[str, str]], executors: Sequence[str], now: float, term: int
    ) -> None:
        for klass, (kind, target) in told.items():
            why, since = self._since.get((q.name, klass)) or self._judge((q.name, klass), kind, target, now)
            if why == "lost" and target in executors:
                self._since[q.name, klass] = why, now
            elif why is not None and now - since >= PATIENCE_S and self._term() == term:
                await self._free(q, klass, target, why, term)
        for executor in executors:
            if (out := self._is_out(executor, now)) and self._term() == term:
                await self._withdraw(q, executor, out, term)

    def _judge(self, key: tuple[str, str], kind: str, target: str, now: float) -> tuple[Why | None, float]:
        """What is wrong with it now, and since when it is."""
        why = amiss(target, self._nodes.values(), kind)
        known, since = self._since.pop(key, (why, now))
        if why is None:
            return None, now
        self._since[key] = why, since if known in (why, "lost") else now
        return self._since[key]

    def _is_out(self, executor: str, now: float) -> Literal["gone", "busy"] | None:
        """Whether an executor is a node that will start no offer. Of one that is no node nobody can know."""
        node = self._nodes.get(executor)
        if node is None:
            return None
        if node["state"] == "active":
            return "busy" if now - self._full.get(executor, now) >= PATIENCE_S else None
        return "gone" if node["state"] == "dead" else "busy"

    async def _withdraw(self, q: QueueKeys, executor: str, why: Literal["gone", "busy"], term: int) -> None:
        offset: int | None = 0
        given_back = 0
        while offset is not None and self._term() == term:
            step = await self._queues.run(commands.withdraw(q, executor, why=why, term=term, offset=offset))
            given_back, offset = given_back + step.given_back, step.next
        if given_back:
            log.warning("offers go back", why=why, queue=q.name, executor=executor, jobs=given_back)

    async def _free(self, q: QueueKeys, klass: str, target: str, why: Why, term: int) -> None:
        moved = failed = 0
        for _ in range(STEPS):
            freed = await self._queues.run(commands.untarget(q, klass, why=why, term=term, limit=LIMIT))
            moved, failed = moved + freed.moved, failed + freed.failed
            if freed.looked < LIMIT or self._term() != term:
                break
        if moved or failed:
            log.warning("a target's jobs are freed", why=why, queue=q.name, target=target, moved=moved, failed=failed)
