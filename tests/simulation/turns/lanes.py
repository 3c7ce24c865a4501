"""How records and names of keys are read here: the lane of a job, its gates, where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.lua.keyspace import Dump

Record = dict[str, Any]
BOUND = 512
OVER = {"completed", "failed", "cancelled"}


def gates_of(keys: str) -> dict[str, int]:
    """The gates of a lane's keys that have slots, and what a job takes of their rates. The reservation's isn't one."""
    found = {}
    for gate in keys.partition(":")[2].split(","):
        if gate and not gate.startswith("+"):
            id, _, cost = gate.partition("#")
            found[id] = int(cost or 1)
    return found


def group_of(record: Record) -> str:
    return str(record.get("lane", "-:")).partition(":")[0]


def reservation_of(record: Record) -> str | None:
    """The key of the reservation whose slot a job has."""
    gates = str(record.get("lane", "")).partition(":")[2].split(",")
    return next((gate[1:] for gate in gates if gate.startswith("+")), None)


def level_of(record: Record) -> int:
    return BOUND if reservation_of(record) else int(record.get("priority", 0))


def class_of(record: Record) -> str:
    return str(record.get("class", "async"))


def lane_of(record: Record) -> str:
    level = f"{class_of(record)}:{level_of(record)}"
    return f"{level}:{record['lane']}" if record.get("lane") else level


def is_offer(record: Record) -> bool:
    return record["state"] == "running" and "epoch" in record and record.get("offered") == record["epoch"]


def members(found: Dump, prefix: str) -> Iterator[str]:
    return (member for name, value in found.items() if name.startswith(prefix) for member in value)


def gate_of(parked: str) -> str:
    """Of `parked:<gate>:<class>`."""
    return parked.removeprefix("parked:").rpartition(":")[0]
