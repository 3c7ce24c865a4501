"""Replaces workers that take too much memory: one above the limit once its jobs have ended, another being loaded
meanwhile; one above one and a half times the limit at once, before it takes the host with it.

Which of its jobs took the memory nobody knows. So each that had begun pays with an attempt, as if the kernel had
killed the worker; those left with few attempts are then run one at a time, and the one that takes it all fails alone.
What counts is the resident memory of the worker's own process.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from taskq.log import get_logger
from taskq.node.children.child import Child

EVERY_S = 1.0
AT_ONCE = 1.5
_STATM = Path("/proc/self/statm")
_PS_S = 5.0
_MIB = 1024 * 1024

log = get_logger(__name__)


class Memory:
    """Weighs every worker each second. `limit`: in bytes. `weigh`: gives bytes by pid, but for pids that are gone."""

    def __init__(
        self,
        children: Callable[[], Iterable[Child]],
        limit: int,
        weigh: Callable[[Iterable[int]], Mapping[int, int]] | None = None,
    ) -> None:
        self._children = children
        self._limit = limit
        self._weigh = weigh or resident

    async def step(self) -> float:
        """Weigh once; replace what is too heavy."""
        living = [child for child in self._children() if child.ready]
        weights = await asyncio.to_thread(self._weigh, [child.pid for child in living])
        for child in living:
            self._judge(child, weights.get(child.pid, 0))
        return EVERY_S

    def _judge(self, child: Child, weight: int) -> None:
        if weight <= self._limit or child.ended.is_set():
            return
        facts = {"worker": child.worker, "memory": _shown(weight), "limit": _shown(self._limit)}
        if weight > AT_ONCE * self._limit:
            child.heavy = True
            log.error("a worker takes far too much memory: it is replaced at once", **facts, held=len(child.held()))
            child.kill(f"memory {_shown(weight)}, limit {_shown(self._limit)}", forgiven=False)
        elif not child.heavy and not child.leaving.is_set():
            child.heavy = True
            log.warning("a worker takes too much memory: it is replaced once its jobs have ended", **facts)
            child.ageing.set()


def resident(pids: Iterable[int]) -> dict[int, int]:
    """The resident memory of processes in bytes, by pid: from /proc, else as `ps` tells it."""
    return _by_proc(pids) if _STATM.exists() else _by_ps(pids)


def can_weigh() -> bool:
    """Whether this system tells what a process takes."""
    return _STATM.exists() or shutil.which("ps") is not None


def _by_proc(pids: Iterable[int]) -> dict[int, int]:
    page, found = os.sysconf("SC_PAGE_SIZE"), {}
    for pid in pids:
        try:
            found[pid] = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * page
        except (OSError, IndexError, ValueError):
            continue  # it is gone
    return found


def _by_ps(pids: Iterable[int]) -> dict[int, int]:
    asked = ",".join(map(str, pids))
    if not asked:
        return {}
    command = ["ps", "-o", "pid=,rss=", "-p", asked]
    told = subprocess.run(command, capture_output=True, text=True, timeout=_PS_S, check=False)
    lines = [line.split() for line in told.stdout.splitlines()]
    return {int(pid): int(kib) * 1024 for pid, kib in lines}


def _shown(size: int) -> str:
    return f"{size / _MIB:.0f} MiB"
