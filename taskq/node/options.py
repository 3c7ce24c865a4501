"""What `taskq worker` was asked for: one frozen value, checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from taskq.needs import WHOLE
from taskq.units import duration_text


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """How a node serves APP. Durations in ms.

    `queues` in order, best first; empty: all that APP's tasks name, and `default`. `workers` processes, each running
    up to `concurrency` coroutines and `threads` threads at a time; `worker_range`: from how many to how many their
    number is scaled, None: it stays. `grace_ms`: what running jobs get after SIGTERM.
    `burst`: end when nothing is available, running or due. `flags`: settings given on the command line (url,
    namespace). `log`: how workers log (the keywords of `log.setup`). `wedged_ms`: how long a worker's loop may stand
    still, while no job can be what holds it, before the worker is killed. `labels`, `capacity` (what it can run at
    once, by resource) and `metadata` stand in the node's record. `health_port`: where it answers whether it is well;
    0: nowhere. `max_jobs`: a worker that has run so many is replaced; `max_memory`: so is one that takes more bytes
    than that; 0: never.
    `weights`: queue → its weight, where the order isn't strict. `ranges`: queue → from how many slots to how many it is
    scaled, on this node.

    Raises:
        ValueError: an option is out of range; it is named.
        TypeError: one is no whole number.
    """

    queues: tuple[str, ...] = ()
    workers: int = 1
    worker_range: tuple[int, int] | None = None
    concurrency: int = 100
    threads: int = 16
    grace_ms: int = 25_000
    burst: bool = False
    flags: dict[str, str] = field(default_factory=dict)
    log: dict[str, Any] = field(default_factory=dict)
    wedged_ms: int = 600_000
    labels: dict[str, str] = field(default_factory=dict)
    capacity: dict[str, int | float] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    health_port: int = 0
    max_jobs: int = 0
    max_memory: int = 0
    weights: dict[str, float] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        least, most = self.worker_range or (self.workers, self.workers)
        _between("workers", least, 1, 1_000)
        _between("workers", most, 1, 1_000)
        if most < least:
            raise ValueError(f"workers={(least, most)} goes backwards")
        _between("workers", self.workers, least, most)
        _between("concurrency", self.concurrency, 0, 10_000)
        _between("threads", self.threads, 0, 1_000)
        _lasts("grace", self.grace_ms, 0, 7 * 24 * 3_600_000)
        _lasts("wedged", self.wedged_ms, 1_000, 7 * 24 * 3_600_000)
        _between("health_port", self.health_port, 0, 65_535)
        _between("max_jobs", self.max_jobs, 0, 10**12)
        _between("max_memory", self.max_memory, 0, 2**60)
        if not self.each:
            raise ValueError("concurrency= and threads= are both 0: such a worker could run nothing")
        self._check_ranges()

    def _check_ranges(self) -> None:
        for queue, (least, most) in self.ranges.items():
            if not 1 <= least <= most:
                raise ValueError(f"queue {queue} has slots {least}..{most}: from 1 on, and not backwards")
        others = len(self.ranges) < len(self.queues)
        if self.ranges and sum(least for least, _ in self.ranges.values()) + others > self.total:
            raise ValueError(
                f"the queues' least slots are more than all {self.total} of the workers: -w times -c and --threads"
            )

    @property
    def each(self) -> int:
        """How many jobs a worker runs at a time."""
        return self.concurrency + self.threads

    @property
    def amounts(self) -> dict[str, int] | None:
        """The capacity in thousandths, as claims count it; None if none was declared."""
        return {name: round(each * WHOLE) for name, each in self.capacity.items()} or None

    @property
    def total(self) -> int:
        """How many jobs all its workers run at a time, when there are as many as there may be."""
        return (self.worker_range[1] if self.worker_range else self.workers) * self.each

    def scaled(self, *, workers: Any = None, slots: Any = None, within: Any = None) -> NodeOptions:
        """What it is once it was told: so many workers, or from how many to how many; so many coroutines in each; so
        many workers `within` its range, which is nothing where their number stays.

        Raises:
            ValueError, TypeError: a number that can't be.
        """
        asked: dict[str, Any] = {} if slots is None else {"concurrency": slots}
        if isinstance(workers, list | tuple):
            least, most = workers
            _between("workers", most, least, 1_000)
            asked |= {"worker_range": (least, most), "workers": min(most, max(least, self.workers))}
        elif workers is not None:
            asked |= {"worker_range": None, "workers": workers}
        elif within is not None and self.worker_range is not None:
            least, most = self.worker_range
            asked["workers"] = min(most, max(least, within))
        return replace(self, **asked)

    @property
    def slots(self) -> int:
        """Slots of a worker's table: what it runs, and as much again three times for finishes under way."""
        return 4 * self.each + 64


def _between(name: str, value: int, low: int, high: int) -> None:
    _whole(name, value)
    if not low <= value <= high:
        raise ValueError(f"{name}={value} is out of range: from {low} to {high}")


def _lasts(name: str, ms: int, low: int, high: int) -> None:
    _whole(f"{name}_ms", ms)
    if not low <= ms <= high:
        said, least, most = (duration_text(each) for each in (ms, low, high))
        raise ValueError(f"{name}={said} is out of range: from {least} to {most}")


def _whole(name: str, value: object) -> None:
    if type(value) is not int:
        raise TypeError(f"{name} is no whole number")
