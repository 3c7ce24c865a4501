"""The whole keyspace of a queue as plain values, so that a test compares everything, also what must not change.

Shared by the tests of single scripts and by the simulation. A stream's ids are the server's, so a record's `entry` is
shown as what it is worth: `*` where it names this job in its lane's body, `gone` where it names nothing any more, and
not at all where it is empty.
"""

from __future__ import annotations

import json
from typing import Any

from taskq.keys import QueueKeys

Value = dict[str, Any] | list[Any] | str
Dump = dict[str, Value]

_READ = {
    b"hash": ("HGETALL",),
    b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
    b"stream": ("XRANGE", "-", "+"),
    b"set": ("SMEMBERS",),
    b"string": ("GET",),
    b"list": ("LRANGE", 0, -1),
}


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
        names = [key for key in self._client.scan_iter(self._q.prefix + "*", count=1000) if key != self._events]
        pipe = self._client.pipeline(transaction=False)
        for name in names:
            pipe.type(name).pttl(name)
        found = pipe.execute()
        for name, kind in zip(names, found[::2], strict=True):
            command, *rest = _READ[kind]
            pipe.execute_command(command, name, *rest)
        short = [name[len(self._q.prefix) :].decode() for name in names]
        self.ttls = {name: ttl for name, ttl in zip(short, found[1::2], strict=True) if ttl >= 0}
        values = zip(short, found[::2], pipe.execute(), strict=True)
        return _with_worth_of_entries({name: _plain(kind, value) for name, kind, value in values})

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
        return {(name := text(field)): _in_order(name, text(each)) for field, each in value.items()}
    if kind == b"zset":
        flat = iter(value if value and isinstance(value[0], bytes) else [each for pair in value for each in pair])
        return {text(member): int(float(score)) for member, score in zip(flat, flat, strict=True)}  # by redis-py's age
    if kind == b"stream":
        # A body's entry is an id; what other streams hold is told without their own ids, which tell the time.
        return [
            (text(entry), text(fields[b"id"])) if b"id" in fields else _plain(b"hash", fields)
            for entry, fields in value
        ]
    return sorted(text(each) for each in value) if kind in {b"set", b"list"} else text(value)


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
