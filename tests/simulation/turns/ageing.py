"""Where lanes age: what a claim gave first stood, by its level and how long its lane's head had waited, no lower than
what was next elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lua.keyspace import Dump
from tests.simulation.turns.lanes import members

if TYPE_CHECKING:
    from tests.simulation.turns.world import World


def check(world: World, first: str, open_lanes: set[str], before: Dump, after: Dump) -> None:
    """Compares the lane of the first job that was given with those that were passed over.

    Which lane is next at a level is its groups' affair: here is known only that it is one of those that stand there,
    and so no lower than the lowest. Levels where one came with this claim, or may not run, say nothing.
    """
    heights = heights_of(before, world.now, int(world.said.age))
    if first not in heights:
        return  # due only now, or behind a gate that opened
    there: dict[tuple[str, ...], set[str]] = {}
    for found in (before, after):
        for lane in (*members(found, "lanes:"), *members(found, "parked:")):
            there.setdefault(tuple(lane.split(":")[:2]), set()).add(lane)
    for level, lanes in there.items():
        if lanes <= open_lanes and lanes <= heights.keys():
            lowest = min(heights[lane] for lane in lanes)
            assert lowest <= heights[first], f"{first} at {heights[first]} came before {level} at {lowest} or higher"


def heights_of(found: Dump, now: int, age_ms: int) -> dict[str, float]:
    """Each lane that claims are led to, and its level raised by one for each such time that its head has waited."""
    heights = {}
    for name, lanes in found.items():
        if name.startswith("lanes:"):
            assert isinstance(lanes, dict)
            for lane, at in lanes.items():
                heights[lane] = int(name.split(":")[2]) + max(0, now - at) // age_ms
    return heights
