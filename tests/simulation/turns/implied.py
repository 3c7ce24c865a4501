"""What the living jobs imply, compared with what stands there: slots, lanes, what leads to them and what they are
parked under, markers, rates, reservations, unique keys.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from tests.lua.keyspace import Dump
from tests.simulation import invariants
from tests.simulation.turns import reserving
from tests.simulation.turns.lanes import OVER, Record, gate_of, gates_of, lane_of, members

if TYPE_CHECKING:
    from tests.simulation.turns.world import World

Records = dict[str, Record]


def check(world: World, found: Dump) -> None:
    """All of it."""
    records = invariants.records(found)
    invariants.one_structure_per_job(found)
    invariants.running_is_leased(found)
    invariants.attempts_stay_below_the_maximum(found)
    slots_are_those_of_running_jobs(world, found, records)
    lanes_hold_their_jobs(found, records)
    lanes_are_led_to_or_parked(world, found, records)
    an_open_gate_is_not_waited_for(world, found)
    somebody_is_woken(world, found)
    rates_are_kept(world)
    reservations_are_those_that_live(world, found, records)
    world.owners.check(found, world.now)


def slots_are_those_of_running_jobs(world: World, found: Dump, records: Records) -> None:
    implied: dict[str, set[str]] = {}
    for id, record in records.items():
        if record["state"] == "running":
            for gate in gates_of(record.get("lane", "")):
                implied.setdefault(gate, set()).add(id)
    stands = {name.removeprefix("slots:"): set(value) for name, value in found.items() if name.startswith("slots:")}
    stands.pop("+", None)
    assert stands == implied
    for gate, ids in implied.items():
        most = world.said.of(gate).most
        if most is None or len(ids) <= most:
            world.held_when_lowered.pop(gate, None)
        else:
            before = world.held_when_lowered.get(gate, 0)
            assert len(ids) <= before, f"{gate}: {len(ids)} of {most}, and it was {before}"
            world.held_when_lowered[gate] = len(ids)


def lanes_hold_their_jobs(found: Dump, records: Records) -> None:
    waiting: dict[str, set[str]] = {}
    for id, record in records.items():
        if record["state"] == "available":
            waiting.setdefault(lane_of(record), set()).add(id)
    standing: dict[str, set[str]] = {}
    for name, value in found.items():
        kind, _, lane = name.partition(":")
        if kind in {"front", "body"} and value:
            standing.setdefault(lane, set()).update(value)
    assert standing == waiting
    keyed = sum(len(ids) for lane, ids in waiting.items() if lane.count(":") > 1)
    assert int(found.get("meta", {}).get("keyed", 0)) == keyed  # type: ignore[union-attr]


def lanes_are_led_to_or_parked(world: World, found: Dump, records: Records) -> None:
    """Each once, and nothing else stands in what leads to them."""
    waiting = sorted({lane_of(record) for record in records.values() if record["state"] == "available"})
    led, parked = sorted(members(found, "lanes:")), sorted(members(found, "parked:"))
    assert sorted(led + parked) == waiting, (led, parked, waiting)
    levels = {(lane.split(":")[0], lane.split(":")[1]) for lane in led}
    assert levels == {(name.removeprefix("levels:"), level) for name in found if name.startswith("levels:")
                      for level in found[name]}  # fmt: skip
    groups = {(*lane.split(":")[:2], lane.split(":")[2] if lane.count(":") > 1 else "-") for lane in led}
    assert groups == {(*name.split(":")[1:], group) for name in found if name.startswith("groups:")
                      for group in found[name]}  # fmt: skip
    under = {gate_of(name) for name in found if name.startswith("parked:")}
    parks = {name.removeprefix("parks:"): set(found[name]) for name in found if name.startswith("parks:")}
    turned_away = {"queue"} if parks.pop("queue", None) else set()
    assert parks == {
        gate: {name.rpartition(":")[2] for name in found if name.startswith("parked:") and gate_of(name) == gate}
        for gate in under
    }
    marks = {entry for entry, words in world.said.told.items() if "until" in words}
    stand = set(found.get("gates", ()))
    assert under | turned_away <= stand
    assert {gate for gate in stand - under - turned_away if not {gate, gate.partition("=")[0]} & marks} == set()


def an_open_gate_is_not_waited_for(world: World, found: Dump) -> None:
    """Of the lanes under a gate as many are led to as it would let through."""
    led = list(members(found, "lanes:"))
    for name, lanes in found.items():
        if name.startswith("parked:"):
            gate, klass = gate_of(name), name.rpartition(":")[2]
            if world.said.of(gate).rate or _opens_by_time(world, gate):
                continue  # what time opens is shown at the end, and where the queue is claimed dry
            free = min(world.said.free(gate, found, world.now), len(lanes))
            ready = sum(
                gate in gates_of(keys) or gate == f"@{keys.partition(':')[0]}"
                for keys in (
                    lane.split(":", 2)[2] for lane in led if lane.count(":") > 1 and lane.startswith(f"{klass}:")
                )
            )
            assert ready >= free, f"{name}: {free} of {len(lanes)} parked lanes may run, and {ready} are led to"


def _opens_by_time(world: World, gate: str) -> bool:
    """Its mark passes without anybody's doing; who looks first after that opens it."""
    numbers = world.said.of(gate)
    return 0 < numbers.until <= world.now


def somebody_is_woken(world: World, found: Dump) -> None:
    """Who claims took the marker, so each that stands for a class with work was set again."""
    if world.is_paused:
        return
    told = {name.removeprefix("wake:") for name in found if name.startswith("wake:")}
    told |= set(found.get("parks:queue", ()))  # the queue is full: whoever opens it wakes them
    with_work = {name.removeprefix("levels:") for name in found if name.startswith("levels:")}
    assert with_work <= told, f"nobody is woken for {with_work - told}"


def rates_are_kept(world: World) -> None:
    for gate, starts in world.starts.items():
        rate = world.said.of(gate).rate
        if rate is None:
            continue
        limit, period, burst = rate
        while starts and starts[0][0] < world.now - 20 * period:
            starts.popleft()
        spent = 0
        for at, cost in reversed(starts):
            spent += min(cost, burst)
            span = starts[-1][0] - at
            assert spent <= burst + span * limit / period + 1, f"{gate}: {spent} in {span} ms"


def reservations_are_those_that_live(world: World, found: Dump, records: Records) -> None:
    jobs, unbound = reserving.bound(found), world.unbound()
    slots, standing = found.get("slots:+", {}), found.get("reservations", {})
    assert isinstance(slots, dict)
    assert isinstance(standing, dict)
    by_token = {str(found.get(f"reserved:{key}")).partition(" ")[0]: job for key, job in jobs.items()}
    assert slots.keys() == by_token.keys()
    for token, job in by_token.items():
        assert found[f"reserved:{world.tokens[token]['key']}"] == f"{token} {job['id']}"
        assert world.tokens[token]["job"] == job["id"]
        assert job["state"] not in OVER
        assert (slots[token] < 0) == (job["state"] == "running")
    assert {token for token, till in standing.items() if till > world.now} == unbound.keys()
    for token, each in unbound.items():
        assert found[f"reserved:{each['key']}"] == token
        assert each["key"] not in jobs
    for name, value in found.items():  # what is bound, and its job is gone, has let go of its key
        if name.startswith("reserved:") and " " in str(value):
            assert name.removeprefix("reserved:") in jobs, f"{name}: {value}, and no job has its slot"


def free_of(world: World, found: Dump) -> float:
    """How many more jobs the queue would let through that hold no reservation."""
    return world.said.free("queue", found, world.now, held=world.occupied(found)) if not world.is_paused else -inf
