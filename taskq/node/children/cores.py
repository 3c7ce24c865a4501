"""How much CPU a node's workers use: what says that more of them would help, where their loops are full.

A worker turns on one core, whatever its slots are: jobs that compute rather than wait fill it long before its slots are
full, and then a mean run time tells of the queueing in the loop, not of the jobs.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

EVERY_S = 5.0


class Turning(Protocol):
    """What is needed of a `Child`."""

    worker: str
    pid: int
    ready: bool


class Cores:
    """Looks at every worker's CPU time now and then. Where the system doesn't tell it, none is used.

    Attributes:
        used: cores that the workers used between the last two looks; one worker counts as one at most.

    Args:
        children: the workers that live.
        spent: gives the CPU seconds that processes have used, by pid, but for those that are gone.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        children: Callable[[], Iterable[Turning]],
        spent: Callable[[Iterable[int]], Mapping[int, float]] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.used = 0.0
        self._children = children
        self._spent = spent or cpu_s
        self._clock = clock
        self._before: dict[str, tuple[float, float]] = {}

    async def step(self) -> float:
        """Look once."""
        serving = [(child.worker, child.pid) for child in self._children() if child.ready]
        spent = await asyncio.to_thread(self._spent, [pid for _, pid in serving])
        now, used, seen = self._clock(), 0.0, {}
        for worker, pid in serving:
            if pid in spent:
                seen[worker] = spent[pid], now
                cpu, at = self._before.get(worker, seen[worker])
                used += min(1.0, (spent[pid] - cpu) / (now - at)) if now > at else 0.0
        self.used, self._before = used, seen
        return EVERY_S


def cpu_s(pids: Iterable[int]) -> dict[int, float]:
    """The CPU time of processes in s, by pid, as /proc tells it; nothing where there is no /proc."""
    found = {}
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            found[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError, ValueError):
            continue
    return found
