"""The whole keyspace of a queue as plain values, so that a test compares everything, also what must not change.

Shared by the tests of single scripts and by the simulation. A stream's ids are the server's, so a record's `entry` is
shown as what it is worth: `*` where it names this job in its lane's body, `gone` where it names nothing any more, and
not at all where it is empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from taskq.keys import QueueKeys

Value = dict[str, Any] | list[Any] | str
Dump = dict[str, Value]

# All of it in one call: name, type, ms to live, value.
_READ = """
local rows, events = {}, KEYS[1] .. 'events'
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local kind, value = redis.call('TYPE', key).ok, nil
  if key ~= events then
    if kind == 'hash' then value = redis.call('HGETALL', key)
    elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    elseif kind == 'stream' then value = redis.call('XRANGE', key, '-', '+')
    elseif kind == 'set' then value = redis.call('SMEMBERS', key)
    elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
    else value = redis.call('GET', key) end
    rows[#rows + 1] = { key, kind, redis.call('PTTL', key), value }
  end
end
return rows
"""


class Keyspace:
    """What stands under one queue's prefix.

    Attributes:
        ttls: after a dump: name → ms to live, for the keys that have a TTL.
    """

    def __init__(self, client: Any, q: QueueKeys) -> None:
        self._client = client
        self._q = q
        self._events_seen = "-"
        self.ttls: dict[str, int] = {}

    def dump(self) -> Dump:
        """Every key but the events, by its name behind the prefix."""
        rows = self._client.eval(_READ, 1, self._q.prefix, self._q.prefix + "*")
        named = [(name[len(self._q.prefix) :].decode(), kind, ttl, value) for name, kind, ttl, value in rows]
        self.ttls = {name: ttl for name, _, ttl, _ in named if ttl >= 0}
        return _with_worth_of_entries({name: _plain(kind, value) for name, kind, _, value in named})

    def events(self) -> dict[str, list[str]]:
        """What was told since the last call: kind → ids, sorted."""
        told: dict[str, list[str]] = {}
        for entry, fields in self._client.xrange(self._events, self._events_seen, "+"):
            self._events_seen = f"({entry.decode()}"
            told.setdefault(fields[b"kind"].decode(), []).extend(fields[b"ids"].decode().split())
        return {kind: sorted(ids) for kind, ids in told.items()}

    @property
    def _events(self) -> bytes:
        return self._q.fixed("events").encode()


def _plain(kind: bytes, value: Any) -> Value:
    if kind == b"hash":
        return {(name := text(field)): _in_order(name, text(each)) for field, each in _pairs(value)}
    if kind == b"zset":
        return {text(member): int(float(score)) for member, score in _pairs(value)}
    if kind == b"stream":
        # A body's entry is an id; what other streams hold is told without their own ids, which tell the time.
        return [
            (text(entry), text(fields[1])) if fields[0] == b"id" else _plain(b"hash", fields) for entry, fields in value
        ]
    return sorted(text(each) for each in value) if kind in {b"set", b"list"} else text(value)


def _pairs(flat: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    each = iter(flat)
    return zip(each, each, strict=True)


def _in_order(field: str, value: str) -> str:
    """Scripts write errors as JSON whose keys come in any order."""
    return json.dumps(json.loads(value), sort_keys=True) if field.startswith("error:") else value


def text(value: bytes) -> str:
    """Readable, and different for different bytes."""
    return value.decode("utf-8", "backslashreplace")


def _with_worth_of_entries(found: Dump) -> Dump:
    bodies = {name: set(value) for name, value in found.items() if name.startswith("body:")}
    for name, record in found.items():
        if name.startswith("job:") and isinstance(record, dict) and (entry := record.pop("entry", "")):
            body = bodies.get(f"body:{record.get('class', 'async')}:{record.get('priority', '0')}", set())
            record["entry"] = "*" if (entry, name.removeprefix("job:")) in body else "gone"
    for name in bodies:
        found[name] = [id for _, id in list(found[name])]
    return found


def flat(found: Dump) -> dict[str, Any]:
    """`key field` → value for hashes, `key member` → score for sorted sets; other keys whole."""
    rows: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            rows |= {f"{name} {field}": each for field, each in value.items()}
        else:
            rows[name] = value
    return rows


def changes(before: Dump, after: Dump) -> dict[str, Any]:
    """What differs, as `flat` shows it; None for what is no more."""
    old, new = flat(before), flat(after)
    return {row: new.get(row) for row in sorted(old.keys() | new.keys()) if old.get(row) != new.get(row)}
