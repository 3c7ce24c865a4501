"""What a worker has and what of it is free: slots of each executor kind, and amounts of each resource (`+gpu`).

A queue may be limited to so many slots; and so many are kept for it from the queues that have no limit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from taskq.node.worker.source import is_kind


class Pools:
    """The pools of one worker.

    Attributes:
        free: what is free; below 0 where more is taken than there is.
        slots: what there is.
        limits: queue → how many slots it may take.
        running: queue → how many jobs of it run.

    Args:
        slots: what there is, by pool.
        queues: those that are served.
        kinds: queue → the executor kinds that its tasks need.
    """

    def __init__(
        self, slots: Mapping[str, int], queues: Iterable[str], kinds: Mapping[str, Collection[str]] | None
    ) -> None:
        self.free = dict(slots)
        self.slots = dict(slots)
        self.limits: dict[str, int] = {}
        self.running = dict.fromkeys(queues, 0)
        self._kinds = kinds or {}

    def freed(self, kind: str, queue: str, *takes: tuple[str, int]) -> None:
        """A slot is free again, that a job of this queue had, and what else it took."""
        self.free[kind] += 1
        for pool, amount in takes:
            self.free[pool] = self.free.get(pool, 0) + amount
        self.running[queue] -= 1

    def take(self, amounts: Mapping[str, int]) -> None:
        """So much of each is offered to a claim: it stays taken until that is answered."""
        for pool, n in amounts.items():
            self.free[pool] -= n

    def take_back(self, offered: Mapping[str, int], got: Mapping[str, int]) -> None:
        """What was offered is free again, but for what the claimed jobs take."""
        for pool in {*offered, *got}:
            self.free[pool] = self.free.get(pool, 0) + offered.get(pool, 0) - got.get(pool, 0)

    def resize(self, pool: str, amount: int) -> None:
        """Have so much of a pool from now on."""
        self.free[pool] = self.free.get(pool, 0) + amount - self.slots.get(pool, 0)
        self.slots[pool] = amount

    def of(self, queue: str) -> Mapping[str, int]:
        """What a queue may take now."""
        if not self.limits:
            return self.free
        if (limit := self.limits.get(queue)) is not None:
            most = limit - self.running[queue]
            return self.of_kinds(self.free, lambda _, n: min(n, most))
        kept = dict.fromkeys(filter(is_kind, self.free), 0)
        for other, slots in self.limits.items():
            for kind in self._kinds.get(other, ()):
                kept[kind] += max(0, slots - self.running.get(other, 0))
        return self.of_kinds(self.free, lambda kind, n: n - min(kept[kind], max(0, self.slots[kind] - 1)))

    @staticmethod
    def of_kinds(free: Mapping[str, int], part: Callable[[str, int], int]) -> dict[str, int]:
        """The same with another number of slots for each executor kind."""
        return {pool: part(pool, n) if is_kind(pool) else n for pool, n in free.items()}

    def left(self, queue: str, room: int) -> int:
        """How many more jobs of a queue may be claimed, where there is room for so many of any."""
        limit = self.limits.get(queue)
        return room if limit is None else min(room, limit - self.running[queue])
