"""What one call of a script costs the server: time, and the commands it calls inside, by `INFO commandstats`.

The difference between before and after counts everything that the server did meanwhile, so nobody else may use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from taskq.commands import Command
from tests.bench.backlog import Backlog
from tests.bench.cases_keys import CASES

FEW = 10
_BETWEEN_MS = 20_000  # what ended in one case is old enough to go in the next


class Cost(NamedTuple):
    """What some calls of a script cost.

    Attributes:
        script: its name.
        slowest_us: the slowest, by the clock: on a busy machine that is the machine.
        slowest_cpu_us: the one that took most of the server's CPU.
        median_cpu_us: the one in the middle.
        calls: the redis.calls of the one that made most.
    """

    script: str
    slowest_us: int
    slowest_cpu_us: int
    median_cpu_us: int
    calls: int


def costs(backlog: Backlog, rounds: int, tell: Callable[[str], None] = lambda title: None) -> dict[str, Cost]:
    """Each case's cost, by its title."""
    found: dict[str, list[tuple[str, int, int, int]]] = {title: [] for title in CASES}
    for title, case in CASES.items():
        tell(title)
        for _ in range(rounds):
            backlog.now += _BETWEEN_MS
            command = case(backlog)
            found[title].append((command.script.name, *_measure(backlog, command)))
            if command.script.name == "pause":
                backlog.client.hdel(backlog.q.fixed("meta"), "paused")
    return {title: _sum(each) for title, each in found.items()}


def grown(beside: Cost, alone: Cost, batch: int) -> bool:
    """Whether a call asks more of the server beside a backlog than retention explains: what ends pushes out as many of
    the old, for a call each.
    """
    return beside.calls > alone.calls + batch + FEW


def _sum(each: Sequence[tuple[str, int, int, int]]) -> Cost:
    wall, cpu = sorted(us for _, us, _, _ in each), sorted(us for _, _, us, _ in each)
    return Cost(each[0][0], wall[-1], cpu[-1], cpu[len(cpu) // 2], max(calls for *_, calls in each))


def _measure(backlog: Backlog, command: Command[Any]) -> tuple[int, int, int]:
    """Wall time, CPU time and calls. In one pipeline, so that nothing but the call lies between the looks."""
    pipeline = backlog.client.pipeline(transaction=False)
    pipeline.info("commandstats")
    pipeline.info("cpu")
    pipeline.evalsha(command.script.sha, len(command.keys), *command.keys, *command.args)
    pipeline.info("cpu")
    pipeline.info("commandstats")
    before, cpu_before, reply, cpu_after, after = pipeline.execute()
    command.read(reply)
    calls = sum(_calls(after, name) - _calls(before, name) for name in after if name not in _OURS)
    wall_us = after[_SCRIPT]["usec"] - before.get(_SCRIPT, {"usec": 0})["usec"]
    return wall_us, round(1e6 * (_cpu_s(cpu_after) - _cpu_s(cpu_before))), calls


_SCRIPT = "cmdstat_evalsha"
_OURS = (_SCRIPT, "cmdstat_info")


def _calls(told: dict[str, dict[str, int]], name: str) -> int:
    return told.get(name, {"calls": 0})["calls"]


def _cpu_s(told: dict[str, float]) -> float:
    return told["used_cpu_user"] + told["used_cpu_sys"]
