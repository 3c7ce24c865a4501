"""CONSERVE: every job is in exactly one state and in exactly the structure of that state, at every moment.

One script reads a queue's whole keyspace at once, so that this holds in the middle of a storm too, and Python compares
what it found with the design's invariants. `complaints` names each thing that is wrong; all hope for an empty list.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import redis

from taskq.keys import QueueKeys
from taskq.state import State

Zset = dict[str, int]
SNAPSHOT_S = 120  # of 50,000 records, on a slow machine

# Reads what no production script may: everything. Rows of name, type, TTL, value.
_SNAPSHOT = """
local rows = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
  local kind = redis.call('TYPE', key)['ok']
  local value = {}
  if kind == 'hash' then
    value = redis.call('HGETALL', key)
  elseif kind == 'zset' then
    value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'stream' and key ~= ARGV[1] .. 'events' then
    for _, entry in ipairs(redis.call('XRANGE', key, '-', '+')) do
      value[#value + 1] = entry[2][2]
      value[#value + 1] = entry[1]
    end
  end
  rows[#rows + 1] = { string.sub(key, #ARGV[1] + 1), kind, redis.call('PTTL', key), value }
end
return rows
"""

ABOVE_ALL = "512"
"""The level of jobs whose slot is reserved."""

_BY_STATE = ("pending", "scheduled", "retryable", "completed", "failed", "cancelled")
_ENDED = frozenset({"completed", "failed", "cancelled"})
_WAITING = frozenset({"pending", "scheduled", "retryable", "available"})


class Snapshot:
    """A queue's keyspace at one moment.

    Attributes:
        jobs: record by id. `state`: state by id.
        zsets, streams, hashes: the other keys, by their name behind the prefix. A stream is id → entry.
        ttls: ms to live by name; -1 for ever.
        taken: how many were taken in this process.
    """

    taken = 0

    def __init__(self, client: redis.Redis, q: QueueKeys) -> None:
        self.jobs: dict[str, dict[str, str]] = {}
        self.zsets: dict[str, Zset] = {}
        self.streams: dict[str, list[tuple[str, str]]] = {}
        self.hashes: dict[str, dict[str, str]] = {}
        self.ttls: dict[str, int] = {}
        Snapshot.taken += 1
        at = client.get_connection_kwargs()
        with redis.Redis(host=at["host"], port=at["port"], socket_timeout=SNAPSHOT_S) as patient:
            found = patient.eval(_SNAPSHOT, 0, q.prefix)
        for raw_name, kind, ttl, raw_value in found:
            name = _text(raw_name)
            value = list(zip(map(_text, raw_value[::2]), map(_text, raw_value[1::2]), strict=True))
            self.ttls[name] = ttl
            if name.startswith("job:") and kind == b"hash":
                self.jobs[name[4:]] = dict(value)
            elif kind == b"hash":
                self.hashes[name] = dict(value)
            elif kind == b"zset":
                self.zsets[name] = {member: int(float(score)) for member, score in value}
            elif kind == b"stream":
                self.streams[name] = value
        self.state = {id: job.get("state", "?") for id, job in self.jobs.items()}

    def zset(self, name: str) -> Zset:
        """A sorted set; an absent one is empty."""
        return self.zsets.get(name, {})

    def ids(self, state: str) -> set[str]:
        """The jobs whose record says so."""
        return {id for id, each in self.state.items() if each == state}

    def counts(self) -> Counter[str]:
        """How many records are in each state."""
        return Counter(self.state.values())


def complaints(client: redis.Redis, q: QueueKeys, accepted: Iterable[str] = ()) -> list[str]:
    """What is wrong with a queue. `accepted`: ids that must still have their record."""
    return wrong(Snapshot(client, q), accepted)


def wrong(seen: Snapshot, accepted: Iterable[str] = ()) -> list[str]:
    """As `complaints`, for a snapshot."""
    return [
        *(f"{id}: was accepted and is no more" for id in accepted if id not in seen.jobs),
        *_structures(seen),
        *_records(seen),
        *_indexes(seen),
        *_lanes(seen),
        *_lives(seen),
    ]


def _structures(seen: Snapshot) -> Iterable[str]:
    """Each job stands once, where its state says."""
    places: dict[str, list[str]] = defaultdict(list)
    for place, id in _places(seen):
        places[id].append(place)
    for id in places.keys() | seen.jobs.keys():
        job = seen.jobs.get(id)
        if job is None:
            yield f"{id}: stands in {places[id]} and has no record"
            continue
        state = job.get("state", "?")
        lane = _lane_of(job)
        wanted = f"available in lane {lane}" if state == "available" else state
        if places[id] != [wanted]:
            yield f"{id}: its record says {wanted}; it stands in {places[id]}"


def _lane_of(job: dict[str, str]) -> str:
    """A plain lane is a class and a priority; a keyed one is named by its keys too."""
    keyed = job.get("lane", "")
    priority = ABOVE_ALL if any(gate.startswith("+") for gate in _gates(keyed)) else job.get("priority", "0")
    return f"{job.get('class', 'async')}:{priority}" + (f":{keyed}" if keyed else "")


def _gates(keyed: str) -> list[str]:
    return keyed.partition(":")[2].split(",")


def _places(seen: Snapshot) -> Iterable[tuple[str, str]]:
    """Where something stands, and what."""
    for name in _BY_STATE:
        yield from ((name, id) for id in seen.zset(name))
    yield from (("running", id) for id in seen.zset("leases"))
    for name, zset in seen.zsets.items():
        if name.startswith("front:"):
            yield from ((f"available in lane {name[6:]}", id) for id in zset)
    for name, entries in seen.streams.items():
        if name.startswith("body:"):
            yield from ((f"available in lane {name[5:]}", id) for id, _ in entries)


def _records(seen: Snapshot) -> Iterable[str]:
    """What a record says fits its state."""
    entries = {id: entry for name, each in seen.streams.items() if name.startswith("body:") for id, entry in each}
    gone = {name[8:] for name, each in seen.hashes.items() if name.startswith("claimed:") and "gone" in each}
    for id, job in seen.jobs.items():
        state, attempt = job.get("state"), int(job.get("attempt", "0"))
        if state not in set(State):
            yield f"{id}: {state!r} is no state"
        if attempt > int(job.get("max_attempts", "3")):
            yield f"{id}: attempt {attempt} of {job.get('max_attempts', '3')}"
        if state == "running":
            if not (job.get("worker") and job.get("epoch") and attempt >= 1):
                yield f"{id}: runs without a worker, an epoch or an attempt: {job}"
            if job.get("worker") in gone:
                yield f"{id}: runs on {job['worker']}, which is gone"
        if state in _ENDED and not job.get("finished_at"):
            yield f"{id}: is {state} without a time"
        if state == "failed" and not job.get("reason"):
            yield f"{id}: failed without a reason"
        entry = job.get("entry", "")
        if entry and state == "available" and entries.get(id) != entry:
            yield f"{id}: its entry is {entry}; the body has {entries.get(id)}"


def _indexes(seen: Snapshot) -> Iterable[str]:
    """`prune` names the ended jobs, `expiring` the waiting ones that expire."""
    ended = {id for id, state in seen.state.items() if state in _ENDED}
    if ended != set(seen.zset("prune")):
        yield f"prune and the ended jobs differ by {sorted(ended ^ set(seen.zset('prune')))[:5]}"
    expiring = {
        id: int(job["expires_at"])
        for id, job in seen.jobs.items()
        if job.get("expires_at") and job.get("state") in _WAITING
    }
    if expiring != seen.zset("expiring"):
        yield f"expiring is {seen.zset('expiring')}; the jobs say {expiring}"


def _lanes(seen: Snapshot) -> Iterable[str]:
    """A claim finds every lane that has work, or it is parked under one gate; and no other."""
    lanes = {name[6:] for name, each in seen.zsets.items() if name.startswith("front:") and each}
    lanes |= {name[5:] for name, each in seen.streams.items() if name.startswith("body:") and each}
    found = set()
    for name in seen.hashes.get("classes", {}):
        for priority in seen.zset(f"levels:{name}"):
            for group in seen.zset(f"groups:{name}:{priority}"):
                found |= set(seen.zset(f"lanes:{name}:{priority}:{group}"))
    parked = [lane for name, each in seen.zsets.items() if name.startswith("parked:") for lane in each]
    if found | set(parked) != lanes or len(found) + len(parked) != len(lanes):
        yield f"lanes with work: {sorted(lanes)}; a claim finds {sorted(found)}, and parked are {sorted(parked)}"
    for name in seen.zsets:
        kind, _, rest = name.partition(":")
        if kind in {"levels", "groups", "lanes"} and rest.split(":")[0] not in seen.hashes.get("classes", {}):
            yield f"{name}: of a class that isn't in classes"


def _lives(seen: Snapshot) -> Iterable[str]:
    """What is short-lived has a TTL."""
    for name, ttl in seen.ttls.items():
        if name.startswith(("claimed:", "stats:")) and ttl < 0:
            yield f"{name}: has no TTL"
        if name.startswith("wake:") and len(seen.zset(name)) > 1:
            yield f"{name}: has {len(seen.zset(name))} markers"


def _text(value: Any) -> str:
    return bytes(value).decode("utf-8", "backslashreplace")
