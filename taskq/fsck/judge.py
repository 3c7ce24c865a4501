"""One job, one state, one structure: what breaks that, told from facts. Pure.

A fact is what stood in Redis at one moment; every script leaves everything right, so what is wrong here was done by
somebody else: an eviction, a restore, a failover, a hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

from taskq.commands.fsck import GateFacts, JobFacts, LaneFacts, Wanted
from taskq.options import HIGHEST_PRIORITY, LOWEST_PRIORITY
from taskq.state import TERMINAL, State, valid

LEASE_MAX_MS = 86_400_000
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000

STANDS_IN = {
    **{str(state): str(state) for state in State if state is not State.AVAILABLE},
    str(State.RUNNING): "leases",
}
"""The sorted set of each state but `available`, whose jobs stand in lanes."""


class Breach(NamedTuple):
    """Something that is wrong.

    Attributes:
        kind: one word or two, the same for the same thing.
        of: the job's id, the lane's or the key's name.
        text: what is wrong, to follow the name.
    """

    kind: str
    of: str
    text: str


def of_job(facts: JobFacts) -> Iterator[Breach]:
    """What is wrong about one id."""
    id = facts.row.id.decode("utf-8", "backslashreplace")
    stands = [place for place, _ in facts.places]
    if facts.kind == "none":
        if stands:
            yield Breach("no record", id, f"stands in {_listed(stands)}, and there is no record of it")
        return
    state = facts.fields.get(b"state", b"").decode("utf-8", "replace")
    if facts.kind != "hash" or not valid(state):
        yield Breach("no job", id, "is no job's record" if facts.kind != "hash" else f"is in no state: {state[:40]!r}")
        return
    yield from _of_state(facts, id, state)
    yield from _of_retention(facts, id, state)
    yield from _of_expiry(facts, id, state)
    yield from _of_slots(facts, id, state)
    for key in (at for place, at in facts.places if place == "unowned"):
        yield Breach("unowned", id, f"should own the unique key {key}, and nobody does")


def _of_state(facts: JobFacts, id: str, state: str) -> Iterator[Breach]:
    """It stands once, where its state says."""
    right = _right_place(facts, state)
    beside = [place for place in facts.places if place != right and not _is_beside(place[0])]
    if right is None:
        what = "runs without a lease" if state == State.RUNNING else f"is {state} and stands nowhere"
        also = f", but in {_listed(place for place, _ in beside)}" if beside else ""
        yield Breach("no lease" if state == State.RUNNING else "nowhere", id, what + also)
    elif beside:
        yield Breach("misplaced", id, f"is {state} and stands in {_listed(place for place, _ in beside)} too")
    if state == State.RUNNING and right is not None and float(right[1]) > facts.now_ms + LEASE_MAX_MS:
        yield Breach("long lease", id, "has a lease that doesn't end within a day")


def _is_beside(place: str) -> bool:
    """Whether a place is told of apart: in it a job may stand beside the one of its state."""
    return place in {"prune", "expiring", "unowned", "slotless"} or place.startswith("slots:")


def _of_slots(facts: JobFacts, id: str, state: str) -> Iterator[Breach]:
    """It holds a slot of each of its gates while it runs, and no other."""
    keys = facts.fields.get(b"lane", b"").decode("ascii", "replace")
    own = {gate.partition("#")[0] for gate in keys.partition(":")[2].split(",")} if is_keys(keys) else set()
    for place, at in facts.places:
        gate = place.removeprefix("slots:")
        if place == "slotless":
            yield Breach("slot", id, f"runs, and holds no slot of {at}")
        elif gate != place and (state != State.RUNNING or gate not in own):
            yield Breach("slot", id, f"is {state} and holds a slot of {gate}")


def _right_place(facts: JobFacts, state: str) -> tuple[str, str] | None:
    """The one of its places where it should be."""
    if state != State.AVAILABLE:
        return next((place for place in facts.places if place[0] == STANDS_IN[state]), None)
    lane = lane_of(facts.fields)
    entry = facts.fields.get(b"entry", b"").decode("ascii", "replace")
    for place in facts.places:
        if place == (f"body:{lane}", entry) and lane.count(":") == 1:
            return place
    return next((place for place in facts.places if place[0] == f"front:{lane}"), None)


def _of_retention(facts: JobFacts, id: str, state: str) -> Iterator[Breach]:
    """What has ended will go; what lives won't."""
    pruned = any(place == "prune" for place, _ in facts.places)
    if state in TERMINAL:
        if not pruned:
            yield Breach("no prune", id, f"is {state}, and nothing would ever remove it")
        if not _is_time(facts.fields.get(b"finished_at", b"")):
            yield Breach("no time", id, f"is {state} without the time of its end")
    elif pruned:
        yield Breach("misplaced", id, f"is {state} and stands in prune")


def _of_expiry(facts: JobFacts, id: str, state: str) -> Iterator[Breach]:
    """What waits for its first start and expires stands at that time."""
    stands = next((float(at) for place, at in facts.places if place == "expiring"), None)
    given = facts.fields.get(b"expires_at", b"")
    waits = state != State.RUNNING and state not in TERMINAL
    begun = b"epoch" in facts.fields and facts.fields.get(b"started_at") != b""
    wanted = float(given) if waits and not begun and _is_time(given) else None
    lock_until = facts.fields.get(b"lock_until", b"")
    if state == State.AVAILABLE and _is_time(lock_until):
        # Later, if its lock was free at the time: then it was looked at again.
        wanted = stands if stands is not None and stands >= float(lock_until) else min(float(lock_until), wanted or inf)
    if stands != wanted:
        yield Breach("expiry", id, "won't expire in time" if wanted is not None else "would expire, and shouldn't")


def _is_time(raw: bytes) -> bool:
    return re.fullmatch(rb"[0-9]{1,15}", raw) is not None


def lane_of(fields: dict[bytes, bytes]) -> str:
    """The name of a job's lane. What can't be its class, priority or keys counts as absent: `lua/lib/lane.lua`."""
    klass = fields.get(b"class", b"").decode("ascii", "replace")
    priority = fields.get(b"priority", b"").decode("ascii", "replace")
    keys = fields.get(b"lane", b"").decode("ascii", "replace")
    level = f"{klass if is_class(klass) else 'async'}:{priority if is_priority(priority) else '0'}"
    if is_keys(keys) and re.search(r"[:,]\+[^,]", keys):  # it holds a reservation: above all priorities
        level = level.partition(":")[0] + ":512"
    return f"{level}:{keys}" if is_keys(keys) else level


def is_class(text: str) -> bool:
    """Whether a text can be the name of a class."""
    return re.fullmatch(r"(async|thread|process)([0-9=;,._-][A-Za-z0-9=;,._-]*)?", text) is not None


def is_priority(text: str) -> bool:
    """Whether a text is a priority as scripts write it."""
    return re.fullmatch(r"0|-?[1-9][0-9]{0,2}", text) is not None and LOWEST_PRIORITY <= int(text) <= HIGHEST_PRIORITY


def is_keys(text: str) -> bool:
    """Whether a text can be the keys of a lane: `<fairness key>:<gate>,<gate>`."""
    return len(text) <= 2048 and re.fullmatch(r"[A-Za-z0-9._~@+/%-]+:[A-Za-z0-9._~@+/%=,!*#-]*", text) is not None


# --- lanes --------------------------------------------------------------------


def of_lane(facts: LaneFacts) -> Iterator[Breach]:
    """What is wrong about what leads to a lane. Whether somebody is woken for it is `needs_marker`."""
    name = ":".join(filter(None, facts.lane))
    leads = {"levels": facts.levels, "groups": facts.groups, "lanes": facts.lanes}
    if facts.waiting:
        missing = [each for each, there in leads.items() if not (there or facts.parked)]
        if missing:
            yield Breach("unreachable", name, f"has work, and {_listed(missing)} don't lead to it")
        if not facts.known:
            yield Breach("unreachable", name, "has work, and its class is not among the queue's classes")
    else:
        stale = [each for each, there in {**leads, "parked": facts.parked}.items() if there]
        if stale:
            yield Breach("stale", name, f"is empty, and {_listed(stale)} lead to it")
        if facts.body and not facts.emptied:
            yield Breach("stale", name, "is empty, and nothing would ever remove its body")
    if facts.foreign:
        yield Breach("foreign", name, f"has {facts.foreign} other members beside it in what leads to it")


def needs_marker(facts: LaneFacts) -> bool:
    """Whether work waits and nobody would be woken for it. For a moment that is so whenever a worker was."""
    return bool(facts.waiting) and not (facts.marker or facts.parked or facts.paused)


def of_gate(facts: GateFacts) -> Iterator[Breach]:
    """What is wrong about what is parked under a gate, or about the reservations."""
    id, klass = facts.gate
    if id == "+":
        if facts.foreign:
            yield Breach("foreign", "reservations", f"{facts.foreign} hold a slot for no job, or without their key")
        return
    name = f"{id} {klass}"
    waits = facts.waiting or (id == "queue" and facts.entered)
    if facts.foreign:
        yield Breach("foreign", name, f"has {facts.foreign} lanes parked that don't wait for it")
    if waits and not facts.led:
        yield Breach("unreachable", name, "has lanes parked, and who opens it wouldn't find them")
    elif facts.entered and not waits:
        yield Breach("stale", name, "has no lanes parked, and is said to have some")


# --- keys ---------------------------------------------------------------------

_ZSETS = (*STANDS_IN.values(), "prune", "expiring", "empty", "gates", "reservations")
_KEYS: tuple[tuple[str, str, int | None], ...] = (
    ("|".join(_ZSETS), "zset", None),
    ("classes|kinds|meta|stats|limits|weights", "hash", None),
    ("fired", "hash", 8 * _DAY_MS),
    ("executors", "zset", 25 * _HOUR_MS),
    ("events", "stream", None),
    ("(levels|groups|lanes|front|wake|slots|parked|parks):.*", "zset", None),
    ("executors", "zset", 2 * _DAY_MS),
    ("tags:.*", "zset", 2 * _DAY_MS),
    ("rate:.*", "string", 30 * _DAY_MS),
    ("unique:.*", "string", None),
    ("reserved:.*", "string", None),
    ("reservation:.*", "hash", 30 * _DAY_MS),
    ("merged:.*", "string", 60_000),
    ("body:.*", "stream", None),
    ("claimed:.*", "hash", _HOUR_MS),
    ("stats:[0-9]+", "hash", 3 * _HOUR_MS),
    ("aside:.*", "", 14 * _DAY_MS),
)


def wanted_key(name: str) -> Wanted | None:
    """How the key of that name should be; None if none of ours is called so. Records aren't told of here."""
    for pattern, kind, ttl_ms in _KEYS:
        if re.fullmatch(pattern, name, re.DOTALL):
            return Wanted(name, kind, ttl_ms)
    return None


def of_key(wanted: Wanted, kind: str, ttl_ms: int) -> Iterator[Breach]:
    """What is wrong about a key as such."""
    if kind == "none":
        return
    if kind == "unowned":
        yield Breach("unowned", wanted.name, "is held for a job, and there is none that could own it")
    elif wanted.kind not in {"", kind}:
        yield Breach("wrong kind", wanted.name, f"is a {kind} and should be a {wanted.kind}")
    elif wanted.ttl_ms is not None and ttl_ms == -1:
        yield Breach("no ttl", wanted.name, "is short-lived, and has no TTL")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))
