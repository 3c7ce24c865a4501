"""How much a fleet does while there is nothing to do: a loop that spins shows in the processor's time, the server's
calls and the log.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from tests.fleet import Fleet

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass
class Effort:
    """What was spent: `processor` as a share of one core, `calls` of scripts a second, `lines` of all logs."""

    processor: float = 0.0
    calls: float = 0.0
    lines: int = 0


@contextmanager
def measured(fleet: Fleet, raw: redis.Redis) -> Iterator[Effort]:
    """What the fleet's processes do within the block; known after it. None of them may end meanwhile."""
    effort, pids = Effort(), fleet.pids()
    spent_s, calls, lines, began = _spent_s(pids), _calls(raw), fleet.text().count("\n"), time.monotonic()
    yield effort
    lasted_s = time.monotonic() - began
    effort.processor = (_spent_s(pids) - spent_s) / lasted_s
    effort.calls = (_calls(raw) - calls) / lasted_s
    effort.lines = fleet.text().count("\n") - lines


def _spent_s(pids: list[int]) -> float:
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) * _TICK_S


def _calls(raw: redis.Redis) -> int:
    stats = raw.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha"))
