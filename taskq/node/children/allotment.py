"""How many slots each worker has for the queues whose slots are scaled: what the leader allots to the node, divided.

A node begins with the least that was asked for. What it was told last holds until it is told otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from taskq import keys
from taskq.node.channel import Limits, ToWorker
from taskq.node.table import Entry

EVERY_S = 0.5


class Served(Protocol):
    """What is needed of a `Child`."""

    worker: str
    ready: bool

    def send(self, message: ToWorker, /) -> None:
        """Say something to the worker."""

    def held(self) -> list[Entry]:
        """What stands in its table."""


class Allotment:
    """The slots of one node, for queues that are scaled.

    Args:
        ranges: queue → from how many slots to how many.
        total: how many slots the node's workers have together, for all queues.
        others: whether they serve queues without a range too; these keep a slot.
        children: the workers that claim.
    """

    def __init__(
        self,
        ranges: Mapping[str, tuple[int, int]],
        total: Callable[[], int],
        *,
        others: Callable[[], bool],
        children: Callable[[], Sequence[Served]],
    ) -> None:
        self._ranges = dict(ranges)
        self._total = total
        self._others = others
        self._children = children
        self._slots = {queue: least for queue, (least, _) in self._ranges.items()}
        self._told: dict[str, dict[str, int]] = {}

    def allot(self, said: Any) -> bool:
        """Take in what the leader says: queue → slots. What isn't ours or isn't right is left out. Whether that changed
        anything.
        """
        before = dict(self._slots)
        for queue, slots in said.items() if isinstance(said, dict) else ():
            if queue in self._ranges and type(slots) is int:
                least, most = self._ranges[queue]
                self._slots[queue] = min(most, max(least, slots))
        return self._slots != before

    def divided(self, workers: Collection[str]) -> dict[str, dict[str, int]]:
        """Worker → queue → slots: as evenly as can be, the odd ones to another worker for each queue."""
        names = sorted(workers, key=lambda name: (len(name), name))
        shares: dict[str, dict[str, int]] = {name: {} for name in names}
        odd = 0
        for queue, slots in self._slots.items():
            each, rest = divmod(slots, max(1, len(names)))
            for number, name in enumerate(names):
                shares[name][queue] = each + ((number - odd) % len(names) < rest)
            odd += rest
        return shares

    async def step(self) -> float:
        """Tell the workers what is new for them."""
        children = {child.worker: child for child in self._children()}
        shares = self.divided(children)
        for name, share in shares.items():
            if self._told.get(name) != share:
                children[name].send(Limits(share))
        self._told = shares
        return EVERY_S

    def shown(self) -> dict[str, Any]:
        """For the node's record: what the leader reads, and people."""
        if not self._ranges:
            return {}
        busy = dict.fromkeys(self._ranges, 0)
        for child in self._children():
            for entry in child.held():
                queue = keys.queue_of(entry.id)
                if queue in busy and not entry.ended:
                    busy[queue] += 1
        queues = {
            queue: {"least": least, "most": most, "slots": self._slots[queue], "busy": busy[queue]}
            for queue, (least, most) in self._ranges.items()
        }
        return {"total": self._total() - (1 if self._others() else 0), "queues": queues}
