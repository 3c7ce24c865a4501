"""What holds at every moment, whatever happened: checked on the real keyspace, without asking the model."""

from __future__ import annotations

import re
from typing import Any

from tests.lua.keyspace import Dump

ENDS = ("completed", "failed", "cancelled")
SHORT_LIVED = re.compile(r"claimed:.*|stats:\d+")


def records(found: Dump) -> dict[str, dict[str, Any]]:
    return {name.removeprefix("job:"): value for name, value in found.items() if name.startswith("job:")}  # type: ignore[misc]


def standing(found: Dump) -> dict[str, list[str]]:
    """Where each id stands, as states."""
    places: dict[str, list[str]] = {}
    for name, value in found.items():
        kind = name.partition(":")[0]
        state = {"leases": "running", "front": "available", "body": "available"}.get(kind, kind)
        if state in {"running", "available", "scheduled", "retryable", "pending", *ENDS}:
            for id in value:
                places.setdefault(id, []).append(state)
    return places


def one_structure_per_job(found: Dump) -> None:
    assert standing(found) == {id: [record["state"]] for id, record in records(found).items()}


def running_is_leased(found: Dump) -> None:
    running = {id for id, record in records(found).items() if record["state"] == "running"}
    assert running == set(found.get("leases", ()))
    assert all(records(found)[id]["worker"] and records(found)[id]["epoch"] for id in running)


def attempts_stay_below_the_maximum(found: Dump) -> None:
    for id, record in records(found).items():
        assert 0 <= int(record.get("attempt", 0)) <= int(record.get("max_attempts", 3)), id


def nothing_vanishes(before: Dump, found: Dump, told: dict[str, list[str]]) -> None:
    """A record goes only after its end, or in the call that ends it."""
    for id in records(before).keys() - records(found).keys():
        assert records(before)[id]["state"] in ENDS or any(id in told.get(end, ()) for end in ENDS), id


def epochs_grow(before: Dump, found: Dump) -> None:
    for id, record in records(found).items():
        old = records(before).get(id, {})
        assert int(record.get("epoch", 0)) >= int(old.get("epoch", 0)), id


def what_waits_is_told(found: Dump, awake: set[str]) -> None:
    """Of each class with work there is a marker, or somebody who will claim."""
    if "paused" in found.get("meta", {}):
        return
    with_work = {name.removeprefix("levels:") for name in found if name.startswith("levels:")}
    markers = {name.removeprefix("wake:") for name in found if name.startswith("wake:")}
    assert with_work <= markers | awake, with_work - markers - awake


def short_lived_keys_go_by_themselves(found: Dump, ttls: dict[str, int]) -> None:
    assert {name for name in found if SHORT_LIVED.fullmatch(name)} == set(ttls)


def every_move_is_told(before: Dump, found: Dump, told: dict[str, list[str]]) -> None:
    old = records(before)
    for id, record in records(found).items():
        if record["state"] != old.get(id, {}).get("state"):
            assert id in told.get(record["state"], ()), (id, record["state"], told)
