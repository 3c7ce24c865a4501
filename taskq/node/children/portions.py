"""What a node can run at once of each resource, divided over its workers: a part belongs to one worker at a time.

As evenly as whole units can be, the odd ones to the first places. Who takes the place of a worker that still finishes
its jobs has nothing until that one has ended: together they never have more than the node.
"""

from __future__ import annotations

from collections.abc import Mapping

from taskq.needs import part_of


class Portions:
    """The parts of one node's capacity.

    Args:
        capacity: resource → thousandths; None: nothing was declared.
        parts: over how many workers it is divided.
    """

    def __init__(self, capacity: Mapping[str, int] | None, parts: int) -> None:
        self._capacity = capacity
        self._parts = parts
        self._places: dict[str, int | None] = {}
        self._told: dict[str, dict[str, int]] = {}

    def join(self, worker: str) -> dict[str, int] | None:
        """A worker begins. Its part; nothing of anything, while others have all of them."""
        self._places[worker] = None
        self._settle()
        if self._capacity is None:
            return None
        self._told[worker] = self._of(worker)
        return self._told[worker]

    def leave(self, worker: str) -> None:
        """It has ended."""
        self._places.pop(worker, None)
        self._told.pop(worker, None)
        self._settle()

    def resize(self, parts: int) -> None:
        """Divide by another number. Fewer: once those that are too many have ended."""
        self._parts = parts
        self._settle()

    def news(self) -> dict[str, dict[str, int]]:
        """The workers whose parts have changed since they were told."""
        changed = {worker: self._of(worker) for worker in self._told}
        changed = {worker: part for worker, part in changed.items() if part != self._told[worker]}
        self._told |= changed
        return changed

    def _settle(self) -> None:
        taken = {place for place in self._places.values() if place is not None}
        for worker, place in self._places.items():
            if place is None and (free := next((n for n in range(self._parts) if n not in taken), None)) is not None:
                self._places[worker] = free
                taken.add(free)

    def _of(self, worker: str) -> dict[str, int]:
        place, capacity = self._places[worker], self._capacity or {}
        if place is None:
            return dict.fromkeys(capacity, 0)
        parts = max(self._parts, *(each + 1 for each in self._places.values() if each is not None))
        return {name: part_of(amount, place, parts) for name, amount in capacity.items()}
