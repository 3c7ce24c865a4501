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
    """Compares the lane of the first job that was given with the levels of which an open lane was passed over.

    Which lane is next at a level is its groups' affair: here is known only that it is one of those that stand there,
    and so no lower than the lowest. Levels where one came with this claim say nothing.
    """
    heights = heights_of(before, world.now, int(world.said.age))
    led = set(members(before, "lanes:"))
    if first not in led:
        return  # due only now, or behind a gate that opened
    came = {level_of(lane) for lane in members(after, "lanes:") if lane not in heights}
    for level in {level_of(lane) for lane in open_lanes & led} - came:
        lowest = min(height for lane, height in heights.items() if level_of(lane) == level)
        assert lowest <= heights[first], f"{first} at {heights[first]} came before {level} at {lowest} or higher"


def level_of(lane: str) -> tuple[str, ...]:
    """Its class and its priority."""
    return tuple(lane.split(":")[:2])


def heights_of(found: Dump, now: int, age_ms: int) -> dict[str, float]:
    """Each lane with work: its level, raised by one for each such time that its head has waited."""
    since = {}
    for name, lanes in found.items():
        if name.startswith("lanes:"):
            assert isinstance(lanes, dict)
            since.update(lanes)
    for lane in members(found, "parked:"):
        front = found[f"front:{lane}"]  # only lanes with keys are parked, and these have no body
        assert isinstance(front, dict)
        since[lane] = min(front.values())
    return {lane: int(level_of(lane)[1]) + max(0, now - at) // age_ms for lane, at in since.items()}
