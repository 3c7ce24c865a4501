"""Renews the leases of what this node's workers run, and passes on what the renewal says: lost, cancel, force.

The node renews, not the worker: code that blocks the worker's loop or holds its GIL doesn't cost a lease. A stopped
worker (state T) is left out on purpose: it runs nothing. The keeper reads the tables and asks nobody.

A lease is good from the moment the request was *sent*: what the server adds later is a bonus nobody counts on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from taskq import commands, keys
from taskq.commands import Held
from taskq.keys import QueueKeys
from taskq.log import get_logger
from taskq.node.channel import Verdict
from taskq.node.children.child import Child, is_stopped
from taskq.node.queues import Queues
from taskq.node.table import Entry, now_ms

CALL_JOBS = 250
LEASE_PARTS = 4
EVERY_MS = 2_000  # at least so often, also with a long lease: requests to cancel come with the answer

Word = Literal["lost", "cancel", "force"]
_VERDICTS: dict[str, Word] = {"lost": "lost", "cancel": "cancel", "force": "force"}

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Holding:
    """One job to renew, and the worker that runs it."""

    child: Child
    entry: Entry


def batches(holdings: Iterable[Holding]) -> list[tuple[str, list[Holding]]]:
    """The calls to make: one queue each, at most 250 jobs."""
    by_queue: dict[str, list[Holding]] = {}
    for holding in holdings:
        by_queue.setdefault(keys.queue_of(holding.entry.id), []).append(holding)
    return [
        (queue, of_queue[at : at + CALL_JOBS])
        for queue, of_queue in by_queue.items()
        for at in range(0, len(of_queue), CALL_JOBS)
    ]


class Keeper:
    """Renews every 2 s, or every quarter of a shorter lease."""

    def __init__(self, queues: Queues, children: Callable[[], Iterable[Child]], *, lease_ms: int) -> None:
        self._queues = queues
        self._children = children
        self._lease_ms = lease_ms
        self._every_s = min(EVERY_MS, lease_ms / LEASE_PARTS) / 1000

    async def step(self) -> float:
        """Renew everything once. Raises Unavailable after all others were renewed, if a queue didn't answer."""
        began = now_ms()
        holdings = [
            Holding(child, entry)
            for child in self._children()
            if not is_stopped(child.pid)
            for entry in self._kept(child)
        ]
        await self._queues.each_part(batches(holdings), self._renew)
        return max(0.0, self._every_s - (now_ms() - began) / 1000)

    def _kept(self, child: Child) -> list[Entry]:
        """What stands in a worker's table but for what it has already been told is lost."""
        held = child.held()
        still = {(entry.id, entry.epoch) for entry in held}
        child.told = {told for told in child.told if told[1:] in still}
        return [entry for entry in held if ("lost", entry.id, entry.epoch) not in child.told]

    async def _renew(self, q: QueueKeys, holdings: list[Holding]) -> None:
        held = [Held(one.entry.id, one.entry.epoch, one.child.worker) for one in holdings]
        command = commands.renew(q, lease_ms=self._lease_ms, held=held)
        sent = now_ms()
        words = await self._queues.run(command, deadline_s=self._every_s)
        for holding, word in zip(holdings, words, strict=True):
            if holding.child.ended.is_set() or not holding.child.table.stands(holding.entry.slot, holding.entry.epoch):
                continue  # it ended while we asked, and `lost` is what a finished job looks like
            if word != "lost":
                holding.child.table.set_until(holding.entry.slot, holding.entry.epoch, sent + self._lease_ms)
            verdict = _VERDICTS.get(word)
            if verdict is not None:
                self._tell(holding.child, verdict, holding.entry)

    def _tell(self, child: Child, word: Word, entry: Entry) -> None:
        """Each verdict once: the worker's loop may be held, and repeats would pile up in front of it."""
        if (word, entry.id, entry.epoch) in child.told:
            return
        child.told.add((word, entry.id, entry.epoch))
        child.send(Verdict(word, entry.id, entry.epoch))
        log.debug("renewal says", word=word, job_id=entry.id, epoch=entry.epoch, worker=child.worker)
