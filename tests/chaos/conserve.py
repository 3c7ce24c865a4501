"""CONSERVE: every job is in exactly one state and in exactly the structure of that state, at every moment.

One script reads a queue's whole keyspace at once, so that this holds in the middle of a storm too. What is wrong about
it `taskq.fsck` judges, as it does for users, and a few things more that no repair is for. `complaints` names each; all
hope for an empty list.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import redis

from taskq.commands.fsck import JobFacts, Lane, LaneFacts, Row
from taskq.fsck import judge
from taskq.keys import QueueKeys

Zset = dict[str, int]

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
local time = redis.call('TIME')
return { time[1] * 1000 + math.floor(time[2] / 1000), rows }
"""

_ENDED = frozenset({"completed", "failed", "cancelled"})
_SETS = (*judge.STANDS_IN.values(), "prune", "expiring")


class Snapshot:
    """A queue's keyspace at one moment.

    Attributes:
        jobs: record by id. `state`: state by id.
        zsets, streams, hashes: the other keys, by their name behind the prefix. A stream is id → entry.
        kinds, ttls: type and ms to live by name; -1 for ever.
        now_ms: the server's clock.
    """

    def __init__(self, client: redis.Redis, q: QueueKeys) -> None:
        self.jobs: dict[str, dict[str, str]] = {}
        self.zsets: dict[str, Zset] = {}
        self.streams: dict[str, list[tuple[str, str]]] = {}
        self.hashes: dict[str, dict[str, str]] = {}
        self.kinds: dict[str, str] = {}
        self.ttls: dict[str, int] = {}
        self.now_ms, rows = client.eval(_SNAPSHOT, 0, q.prefix)
        for raw_name, kind, ttl, raw_value in rows:
            name = _text(raw_name)
            value = list(zip(map(_text, raw_value[::2]), map(_text, raw_value[1::2]), strict=True))
            self.kinds[name], self.ttls[name] = kind.decode(), ttl
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
    """As `complaints`, for a snapshot. What fsck calls a breach is one here too."""
    breaches = [
        *(breach for facts in _jobs(seen) for breach in judge.of_job(facts)),
        *(breach for facts in _lanes(seen) for breach in judge.of_lane(facts)),
        *(breach for name in seen.kinds if (wanted := judge.wanted_key(name)) is not None
          for breach in judge.of_key(wanted, seen.kinds[name], seen.ttls[name])),
    ]  # fmt: skip
    return [
        *(f"{id}: was accepted and is no more" for id in accepted if id not in seen.jobs),
        *(f"{breach.of}: {breach.text}" for breach in breaches),
        *_records(seen),
        *_markers(seen),
    ]


def _jobs(seen: Snapshot) -> Iterable[JobFacts]:
    """Every id that has a record or stands anywhere, and where it does."""
    places: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, zset in seen.zsets.items():
        if name in _SETS or name.startswith("front:"):
            for id, score in zset.items():
                places[id].append((name, str(score)))
    for name, entries in seen.streams.items():
        if name.startswith("body:"):
            for id, entry in entries:
                places[id].append((name, entry))
    for id in places.keys() | seen.jobs.keys():
        fields = {field.encode(): value.encode() for field, value in seen.jobs.get(id, {}).items()}
        yield JobFacts(Row(id.encode()), "hash" if id in seen.jobs else "none", fields, places[id], seen.now_ms)


def _lanes(seen: Snapshot) -> Iterable[LaneFacts]:
    """Every lane that stands somewhere or that something leads to."""
    names = {name.partition(":")[2] for name in seen.kinds if name.startswith(("front:", "body:", "groups:"))}
    names |= {name[6:].rpartition(":")[0] for name in seen.kinds if name.startswith("lanes:")}
    names |= {f"{name[7:]}:{each}" for name in seen.zsets if name.startswith("levels:") for each in seen.zset(name)}
    for name in sorted(names):
        klass, _, priority = name.rpartition(":")
        body, groups, lanes = (
            seen.streams.get(f"body:{name}"),
            seen.zset(f"groups:{name}"),
            seen.zset(f"lanes:{name}:-"),
        )
        yield LaneFacts(
            Lane(klass, priority),
            waiting=len(body or ()) + len(seen.zset(f"front:{name}")),
            body=body is not None,
            emptied=name in seen.zset("empty"),
            levels=priority in seen.zset(f"levels:{klass}"),
            groups="-" in groups,
            lanes=name in lanes,
            foreign=len(groups.keys() - {"-"}) + len(lanes.keys() - {name}),
            known=klass in seen.hashes.get("classes", {}),
            marker=f"wake:{klass}" in seen.zsets,
            paused="paused" in seen.hashes.get("meta", {}),
        )


def _records(seen: Snapshot) -> Iterable[str]:
    """What a record says fits its state."""
    gone = {name[8:] for name, each in seen.hashes.items() if name.startswith("claimed:") and "gone" in each}
    for id, job in seen.jobs.items():
        state, attempt = job.get("state"), int(job.get("attempt", "0"))
        if attempt > int(job.get("max_attempts", "3")):
            yield f"{id}: attempt {attempt} of {job.get('max_attempts', '3')}"
        if state == "running":
            if not (job.get("worker") and job.get("epoch") and attempt >= 1):
                yield f"{id}: runs without a worker, an epoch or an attempt: {job}"
            if job.get("worker") in gone:
                yield f"{id}: runs on {job['worker']}, which is gone"
        if state == "failed" and not job.get("reason"):
            yield f"{id}: failed without a reason"


def _markers(seen: Snapshot) -> Iterable[str]:
    """At most one a class."""
    for name in seen.zsets:
        if name.startswith("wake:") and len(seen.zset(name)) > 1:
            yield f"{name}: has {len(seen.zset(name))} markers"


def _text(value: Any) -> str:
    return bytes(value).decode("utf-8", "backslashreplace")
