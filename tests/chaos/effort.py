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

#: What nodes and workers call the server with.
CALLED = ("eval", "evalsha", "bzpopmin")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass
class Effort:
    """What was spent.

    Attributes:
        processor: as a share of one core.
        calls: of scripts, and waits for a marker, a second. `refused`: those that the server did not run.
        lines: of all logs.
    """

    processor: float = 0.0
    calls: float = 0.0
    refused: float = 0.0
    lines: int = 0


@contextmanager
def measured(fleet: Fleet, raw: redis.Redis) -> Iterator[Effort]:
    """What the fleet's processes do within the block; known after it. None of them may end meanwhile."""
    effort, pids = Effort(), fleet.pids()
    (calls, refused), lines = _calls(raw), fleet.text().count("\n")
    spent_s, began = _spent_s(pids), time.monotonic()
    yield effort
    lasted_s = time.monotonic() - began
    effort.processor = (_spent_s(pids) - spent_s) / lasted_s
    calls_now, refused_now = _calls(raw)
    effort.calls, effort.refused = (calls_now - calls) / lasted_s, (refused_now - refused) / lasted_s
    effort.lines = fleet.text().count("\n") - lines


def _spent_s(pids: list[int]) -> float:
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) * _TICK_S


def _calls(raw: redis.Redis) -> tuple[int, int]:
    stats = raw.info("commandstats")
    found = [stats.get(f"cmdstat_{name}", {}) for name in CALLED]
    return sum(each.get("calls", 0) for each in found), sum(each.get("rejected_calls", 0) for each in found)
