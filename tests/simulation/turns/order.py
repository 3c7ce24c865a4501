"""Who may run next. A claim may give any jobs that this allows; what it gives beside them, and whom it passes over, is
a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskq.commands import Claim
from tests.lua.keyspace import Dump
from tests.simulation import invariants
from tests.simulation.turns import ageing
from tests.simulation.turns.lanes import BOUND, Record, class_of, gates_of, group_of, lane_of, level_of, members

if TYPE_CHECKING:
    from tests.simulation.turns.world import World


@dataclass
class Asked:
    """What a worker asks for: free slots of the kinds, which narrow classes it serves, how many at most."""

    free: dict[str, int]
    narrow: tuple[str, ...]
    limit: int

    def classes(self) -> list[str]:
        return [*self.free, *self.narrow]

    def left(self, jobs: list[Record]) -> dict[str, int]:
        """What is free of each class beside these jobs."""
        pools = dict(self.free)
        for job in jobs:
            pools[class_of(job).partition(";")[0]] -= 1
        return {klass: pools[klass.partition(";")[0]] for klass in self.classes()}


def shut_by(world: World, record: Record, found: Dump) -> str | None:
    """What keeps a waiting job from running, or None. Of a rate it may wait until there is enough for others."""
    said, now = world.said, world.now
    gates = gates_of(record.get("lane", ""))
    if f"*{record['task']}" in said.told:
        gates.setdefault(f"*{record['task']}", 1)
    for gate, cost in gates.items():
        if said.free(gate, found, now, max(cost, 2) if said.of(gate).rate else 1) < 1:
            return gate
    group = f"@{group_of(record)}"
    if said.free(group, found, now) < 1:
        return group
    held = 0 if level_of(record) == BOUND else world.occupied(found)
    return "queue" if said.free("queue", found, now, held=held) < 1 else None


def check(world: World, asked: Asked, claim: Claim, before: Dump, after: Dump) -> None:
    """What one claim gave."""
    was, now = invariants.records(before), invariants.records(after)
    given = [now[job.id] for job in claim.jobs]
    if world.is_paused:
        assert (claim.word, given) == ("paused", [])
        return
    assert len(given) <= asked.limit
    assert all(free >= 0 for free in asked.left(given).values())
    _open_to_them(world, given, after)
    left = asked.left(given)
    passed = {
        id: record
        for id, record in now.items()
        if record["state"] == "available" and was.get(id, {}).get("state") == "available"
        and lane_of(was[id]) == lane_of(record) and left.get(class_of(record), 0) > 0
        and not shut_by(world, record, after)
    }  # fmt: skip
    if not world.said.age:
        _highest_first(given, passed)
    elif claim.jobs and claim.jobs[0].id in was:
        open_lanes = {lane_of(record) for record in passed.values()}
        ageing.check(world, lane_of(was[claim.jobs[0].id]), open_lanes, before, after)
    _in_order(claim, before, after, was)
    _each_in_its_turn(claim, given, passed, before)


def _highest_first(given: list[Record], passed: dict[str, Record]) -> None:
    levels = [level_of(record) for record in given]
    assert levels == sorted(levels, reverse=True), f"priorities in the order {levels}"
    lowest = min(levels, default=BOUND)
    for id, record in passed.items():
        assert level_of(record) <= lowest, f"{id} of {lane_of(record)} was passed over for level {lowest}"


def _open_to_them(world: World, given: list[Record], after: Dump) -> None:
    """No gate was shut to what was given, and what was given together is no more than there was."""
    for record in given:
        gates = {*gates_of(record.get("lane", "")), f"@{group_of(record)}", f"*{record['task']}"}
        for gate in gates:
            numbers = world.said.of(gate)
            assert not numbers.paused, f"{gate} is paused"
            assert numbers.until <= world.now, f"{gate} is blocked"
            held = len(after.get(f"slots:{gate}", ()))
            assert numbers.most is None or held <= numbers.most, f"{gate}: {held} of {numbers.most}"
        mark = world.said.of(f"*{record['task']}")
        if mark.most is not None or mark.paused:
            assert f"*{record['task']}" in gates_of(record.get("lane", "")), "its task has a gate, and it went round it"
    most = world.said.of("queue").most
    if most is not None and any(level_of(record) != BOUND for record in given):
        assert world.occupied(after) <= most


def _standing(found: Dump, lane: str) -> Iterator[tuple[float, str]]:
    """The jobs of a lane in their order."""
    front = found.get(f"front:{lane}", {})
    assert isinstance(front, dict)
    yield from ((at, id) for id, at in sorted(front.items(), key=lambda item: item[1]))
    yield from ((2.0**53 + n, id) for n, id in enumerate(found.get(f"body:{lane}", ())))


def _in_order(claim: Claim, before: Dump, after: Dump, was: dict[str, Record]) -> None:
    """Of each lane what was given stood before what is left."""
    taken: dict[str, list[str]] = {}
    for job in claim.jobs:
        if was.get(job.id, {}).get("state") == "available":
            taken.setdefault(lane_of(was[job.id]), []).append(job.id)
    for lane, ids in taken.items():
        stood = {id: at for at, id in _standing(before, lane)}
        left = [stood[id] for _, id in _standing(after, lane) if id in stood]
        if left and (last := max(stood[id] for id in ids if id in stood)) > min(left):
            raise AssertionError(f"{lane}: {ids} were taken, and another stood before them ({last} > {min(left)})")


def _each_in_its_turn(claim: Claim, given: list[Record], passed: dict[str, Record], before: Dump) -> None:
    """At each level the first that was given is of the group whose turn it was, and of its oldest lane."""
    led = set(members(before, "lanes:"))
    first: dict[tuple[str, int], tuple[str, Record]] = {}
    for job, record in zip(claim.jobs, given, strict=True):
        first.setdefault((class_of(record), level_of(record)), (job.id, record))
    for (klass, level), (id, record) in first.items():
        rest = [each for each in passed.values() if (class_of(each), level_of(each)) == (klass, level)]
        start = _starts(before, klass, level)
        mine = group_of(record)
        heads = before.get(f"lanes:{klass}:{level}:{mine}", {})
        assert isinstance(heads, dict)
        for each in rest:
            lane = lane_of(each)
            if lane not in led or lane_of(record) not in led:
                continue
            if group_of(each) == mine:
                assert heads[lane_of(record)] <= heads[lane], f"{lane} was passed over for {id}"
            elif start and not any(group_of(other) == group_of(each) for other in given):
                assert start(mine) <= start(group_of(each)), f"{group_of(each)} was passed over for {mine}"


def _starts(found: Dump, klass: str, level: int) -> Callable[[str], float] | None:
    """From where on each group would be served; None where the level has no time yet."""
    tags, groups = found.get(f"tags:{klass}:{level}", {}), found.get(f"groups:{klass}:{level}", {})
    assert isinstance(tags, dict)
    assert isinstance(groups, dict)
    if "*" not in tags:
        return None
    return lambda group: max(groups.get(group, 0), tags.get(group, 0), tags["*"])
