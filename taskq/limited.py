"""What is said of limits, tasks and fairness keys, as people and programs see it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from taskq import commands, keys, lanes
from taskq.commands import Command, LimitRow, LimitRows
from taskq.units import duration_text, rfc3339

WHOLE = "queue"
"""The entry that is the queue itself."""

_KINDS = {"*": "task", "@": "fairness key", "!": "lock"}


def order(entry: str) -> tuple[bool, bool, str]:
    """The queue first, then limits, then the others."""
    return entry != WHOLE, entry[0] in _KINDS, entry


def nothing() -> dict[str, Any]:
    """A queue of which nothing is said."""
    return shown(LimitRow(WHOLE, {}, {}, 0, 0, None, None), 0)


def shown(row: LimitRow, now_ms: int) -> dict[str, Any]:
    """One entry as JSON."""
    kind, name, key = named(row.entry)
    declared, said = _numbers(row.declared), _numbers(row.said)
    till = _instant(row.said.get("until"))
    return {
        "kind": kind,
        "name": name,
        "key": key,
        "concurrency": said["concurrency"] if "c" in row.said else declared["concurrency"],
        "rate": said["rate"] if "r" in row.said else declared["rate"],
        "burst": said["burst"] if "r" in row.said else declared["burst"],
        "declared": declared,
        "by_calls": row.declared.get("by") == "call",
        "overridden": bool(row.said.keys() & {"c", "r"}) or "paused" in row.said,
        "paused": "paused" in row.said,
        "blocked_until": rfc3339(till) if till is not None and till > now_ms else None,
        "running": row.held,
        "reserved": row.reserved,
        "waiting_lanes": row.parked,
        "free": row.free,
        "age": None,
    }


def named(entry: str) -> tuple[str, str | None, str | None]:
    """What an entry is, as people know it: its kind, its name and its key; None for what it has none of."""
    if entry == WHOLE:
        return "queue", None, None
    kind = _KINDS.get(entry[:1], "limit")
    name, with_key, key = (entry[1:] if entry[:1] in _KINDS else entry).partition("=")
    if kind == "fairness key":
        return kind, None, lanes.decoded(name)
    return kind, lanes.decoded(name), lanes.decoded(key) if with_key else None


def _numbers(words: Mapping[str, str]) -> dict[str, Any]:
    most, rate = words.get("c", ""), words.get("r", "").split("/")
    whole = len(rate) == 3 and all(each.isdigit() for each in rate)
    return {
        "concurrency": int(most) if most.isdigit() else None,
        "rate": f"{rate[0]}/{duration_text(int(rate[1]))}" if whole else None,
        "burst": int(rate[2]) if whole else None,
    }


def _instant(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and len(text) < 15 else None


def inherit(found: Mapping[str, dict[str, Any]], said: Mapping[str, Mapping[str, str]]) -> None:
    """Where nothing is said of a key of a limit, the limit's own numbers hold for it. `said`: the words of each."""
    for entry, row in found.items():
        of = found.get(entry.partition("=")[0])
        if row["kind"] != "limit" or row["key"] is None or of is None:
            continue
        if "c" not in said[entry]:
            row["concurrency"] = of["concurrency"]
        if "r" not in said[entry]:
            row["rate"], row["burst"] = of["rate"], of["burst"]


# --- tasks


def reads(namespace: str, tasks: Sequence[Mapping[str, Any]]) -> list[Command[LimitRows]]:
    """What asks the queues from which these tasks are served what is said of them there."""
    return [
        commands.limits(keys.queue(namespace, queue), ["*" + lanes.encoded(name) for name in names])
        for queue, names in _by_queue(tasks).items()
    ]


def tell(tasks: Sequence[dict[str, Any]], answers: Iterable[LimitRows]) -> None:
    """Adds to each task whether it is paused, and where: `paused`, and `said`, a row a queue in which anything is."""
    said: dict[str, list[dict[str, Any]]] = {}
    for queue, answer in zip(_by_queue(tasks), answers, strict=True):
        for row in (shown(each, answer.now_ms) for each in answer.rows if each.said):
            words = ("paused", "concurrency", "rate", "burst", "blocked_until", "running")
            said.setdefault(row["name"], []).append({"queue": queue, **{word: row[word] for word in words}})
    for task in tasks:
        task["said"] = said.get(task["name"], [])
        task["paused"] = any(each["paused"] for each in task["said"])


def _by_queue(tasks: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for task in tasks:
        for queue in dict.fromkeys((task["queue"], task["other_queue"])):
            if queue:
                found.setdefault(queue, []).append(task["name"])
    return found
