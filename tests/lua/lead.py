"""Leads a walk of fsck through a room: sends what it asks, at the room's time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from taskq.commands import Command
from taskq.fsck import Report, Step, walk
from tests.lua.room import LEASE_MS, Room


class Runs(Protocol):
    """Whoever has a clock and calls commands."""

    now: int

    @property
    def run(self) -> Callable[[Command[Any]], Any]: ...


def lead(room: Runs, step: Step[Any]) -> Any:
    answer = None
    while True:
        try:
            command: Command[Any] = step.send(answer)
        except StopIteration as end:
            return end.value
        if "now" in command.script.args:
            command.args[command.script.args.index("now")] = room.now
        answer = room.run(command)


def check(room: Room, *, repair: bool = False) -> Report:
    """A walk over the room's queue."""
    report: Report = lead(room, walk(room.q, repair=repair, lease_ms=LEASE_MS))
    return report


def told(room: Room, *, repair: bool = False) -> list[tuple[str, str]]:
    """What such a walk tells: kind and name."""
    return [(breach.kind, breach.of) for breach, _ in check(room, repair=repair).told]
