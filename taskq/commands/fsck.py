"""What `taskq fsck` asks and does: slices of keys and of their members, what stands where, and setting it right.

Surveys read all of a row at one moment; mending checks again by itself, so it may come late or twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from taskq.commands.command import Arg, Command, build, text, texts
from taskq.keys import QueueKeys
from taskq.record.fields import NAMES


class Row(NamedTuple):
    """An id as it stands somewhere, bytes as they are. `lane` and `entry`: where it was seen, '' for no lane; a lane
    `slots:<gate>` is no lane, but the slots of that gate.
    """

    id: bytes
    lane: str = ""
    entry: str = ""


class JobFacts(NamedTuple):
    """What stands under an id, and where the id stands.

    Attributes:
        row: what was asked.
        kind: the type of its record's key; `none` if there is none.
        fields: its small fields.
        places: the name of each structure it stands in, and the score or entry there.
        now_ms: when.
    """

    row: Row
    kind: str
    fields: dict[bytes, bytes]
    places: list[tuple[str, str]]
    now_ms: int


class Lane(NamedTuple):
    """A class, a priority, and keys ('' for a plain lane), as texts."""

    klass: str
    priority: str
    keys: str = ""


class LaneFacts(NamedTuple):
    """What stands in a lane and what leads to it.

    Attributes:
        lane: which.
        waiting: how many ids stand in it.
        body: whether its stream is there, if an empty one.
        emptied: whether it is marked as having run empty.
        levels, groups, lanes: whether each of these leads to it.
        foreign: how many members stand beside it there that are none of ours.
        known: whether its class is among the queue's.
        parked: whether it is parked under a gate.
        marker: whether a marker stands for its class.
        paused: whether the queue is.
    """

    lane: Lane
    waiting: int
    body: bool
    emptied: bool
    levels: bool
    groups: bool
    lanes: bool
    foreign: int
    known: bool
    parked: bool
    marker: bool
    paused: bool


class Gate(NamedTuple):
    """A gate and a class that has lanes parked under it, as texts. The gate `+`: the reservations."""

    id: str
    klass: str = ""


class GateFacts(NamedTuple):
    """What is parked under a gate.

    Attributes:
        gate: which, of which class.
        waiting: how many lanes wait there rightly; of `+` how many reservations hold their slot.
        foreign: how many members stand beside them.
        led: whether who opens the gate finds the class, and somebody will look.
        entered: whether the gate knows the class.
    """

    gate: Gate
    waiting: int
    foreign: int
    led: bool
    entered: bool


class Wanted(NamedTuple):
    """How a key should be: its name behind the prefix, its type ('' any), its TTL in ms (None: it may stay)."""

    name: str
    kind: str
    ttl_ms: int | None


FIELDS = (*dict.fromkeys((*NAMES, b"entry", b"lane", b"lock_until")),)


def unpacked(raw: bytes) -> str:
    """Any bytes as text, of which `packed` makes the same bytes again."""
    return raw.decode("utf-8", "surrogateescape")


def packed(name: str) -> bytes:
    """The bytes of a name that `unpacked` gave."""
    return name.encode("utf-8", "surrogateescape")


def scan(q: QueueKeys, match: str, *, cursor: str = "0", count: int = 1000) -> Command[tuple[str, list[bytes]]]:
    """A slice of the keys like a pattern, and the cursor of the next; '0' after the last. A key may come twice."""
    named: dict[str, Arg | None] = {"now": None, "cursor": cursor, "count": count, "match": match}
    return build("scan", q, lambda reply: (text(reply[0]), reply[1:]), named)


def members(q: QueueKeys, name: str, *, cursor: str = "", count: int = 250) -> Command[tuple[str, list[Row]]]:
    """A slice of what stands in a sorted set or stream, named without the prefix; the next cursor, '' at the end."""
    lane = name.partition(":")[2] if name.startswith(("front:", "body:")) else ""
    lane = name if name.startswith("slots:") else lane

    def read(reply: Any) -> tuple[str, list[Row]]:
        rows = zip(reply[1::2], reply[2::2], strict=True)
        return text(reply[0]), [Row(member, lane, text(entry)) for member, entry in rows]

    return build("members", q, read, {"now": None, "name": packed(name), "cursor": cursor, "count": count})


def survey_jobs(q: QueueKeys, rows: Sequence[Row], *, now: int | None = None) -> Command[list[JobFacts]]:
    """The facts of some ids, 250 at most."""

    def read(reply: Any) -> list[JobFacts]:
        at = int(reply[0])
        return [_facts(row, each, at) for row, each in zip(rows, reply[1:], strict=True)]

    rest = [*FIELDS, *_flat(rows)]
    return build("survey_jobs", q, read, {"now": now, "fields": len(FIELDS)}, rest)


def _facts(row: Row, told: Any, now_ms: int) -> JobFacts:
    kind, values, places = told
    fields = {name: value for name, value in zip(FIELDS, values, strict=False) if value is not None}
    stands = list(zip(map(unpacked, places[::2]), texts(places[1::2]), strict=True))
    return JobFacts(row, text(kind), fields, stands, now_ms)


def mend_jobs(q: QueueKeys, rows: Sequence[Row], *, lease_ms: int, now: int | None = None) -> Command[list[str]]:
    """Puts jobs where their state says. Answers `sound`, `mended`, `condemned` or `gone` for each; 250 at most."""
    return build("mend_jobs", q, texts, {"now": now, "lease_ms": lease_ms}, _flat(rows))


def _flat(rows: Sequence[Row]) -> list[bytes]:
    return [part for id, lane, entry in rows for part in (id, packed(lane), entry.encode())]


def survey_lanes(q: QueueKeys, lanes: Sequence[Lane]) -> Command[list[LaneFacts]]:
    """The facts of some lanes, 250 at most."""

    def read(reply: Any) -> list[LaneFacts]:
        return [_lane_facts(lane, each, paused=bool(reply[0])) for lane, each in zip(lanes, reply[1:], strict=True)]

    return build("survey_lanes", q, read, {"now": None}, [packed(word) for lane in lanes for word in lane])


def _lane_facts(lane: Lane, told: list[int], *, paused: bool) -> LaneFacts:
    waiting, *leads, foreign, known, parked, marker = told
    body, emptied, levels, groups, lanes = map(bool, leads)
    there = (bool(known), bool(parked), bool(marker), paused)
    return LaneFacts(lane, waiting, body, emptied, levels, groups, lanes, foreign, *there)


def mend_lanes(q: QueueKeys, lanes: Sequence[Lane], *, now: int | None = None) -> Command[int]:
    """Sees that a claim finds these lanes if they have work, and is woken for them. How many classes have work."""
    return build("mend_lanes", q, int, {"now": now}, [packed(word) for lane in lanes for word in lane])


def survey_gates(q: QueueKeys, gates: Sequence[Gate], *, now: int | None = None) -> Command[list[GateFacts]]:
    """The facts of some gates, 250 at most."""

    def read(reply: Any) -> list[GateFacts]:
        return [
            GateFacts(gate, waiting, foreign, bool(led), bool(entered))
            for gate, (waiting, foreign, led, entered) in zip(gates, reply, strict=True)
        ]

    return build("survey_gates", q, read, {"now": now}, [packed(word) for gate in gates for word in gate])


def mend_gates(q: QueueKeys, gates: Sequence[Gate], *, now: int | None = None) -> Command[int]:
    """Sees that under these gates stand the lanes that wait for them, and that who opens them finds those. How many
    members it took away.
    """
    return build("mend_gates", q, int, {"now": now}, [packed(word) for gate in gates for word in gate])


def survey_keys(q: QueueKeys, names: Sequence[str]) -> Command[list[tuple[str, int]]]:
    """Type and TTL in ms (-1 for ever) of some keys, by their names behind the prefix; 250 at most.

    The type of a unique key that no job owns is `unowned`.
    """

    def read(reply: Any) -> list[tuple[str, int]]:
        return list(zip(texts(reply[::2]), reply[1::2], strict=True))

    return build("survey_keys", q, read, {"now": None}, [packed(name) for name in names])


def mend_keys(q: QueueKeys, keys: Sequence[Wanted]) -> Command[list[str]]:
    """Puts keys of a wrong kind aside, gives TTLs that are missing. Takes unique keys away
    that no job owns. `sound`, `aside`, `expires` or `removed` for each.
    """
    rest: list[Arg] = []
    for name, kind, ttl_ms in keys:
        rest += (packed(name), kind, "" if ttl_ms is None else ttl_ms)
    return build("mend_keys", q, texts, {"now": None}, rest)
