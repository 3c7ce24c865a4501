"""When a node lives, how well it is, its record as JSON; and what nodes tell of a task. Pure.

What is damaged or missing in a record is shown as nothing: it hides no other node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from taskq.units import rfc3339

LIVENESS_MS = 30_000
"""A node whose last beat is younger lives: the one definition. Three beats, so that a missing one is no outage."""

STALE_MS = 300_000
"""A node that has been silent for so long is forgotten."""

HEALTHY_MS, WARNING_MS = 15_000, LIVENESS_MS
STATES = ("active", "draining", "dead")


def health(silent_ms: int) -> str:
    """How well a node is, by how long ago its last beat was."""
    return "healthy" if silent_ms < HEALTHY_MS else "warning" if silent_ms < WARNING_MS else "unhealthy"


def node_shown(fields: Mapping[str, str], now_ms: int, *, leader: str = "") -> dict[str, Any]:
    """One node. `now_ms`: the server's time."""
    last_seen = _number(fields.get("last_seen"))
    silent_ms = now_ms - last_seen if last_seen is not None else LIVENESS_MS + 1
    state = fields.get("state")
    if silent_ms > LIVENESS_MS or state not in STATES:
        state = "dead" if silent_ms > LIVENESS_MS else "active"
    return {
        "id": fields.get("id"),
        "hostname": fields.get("hostname"),
        "host": fields.get("host"),
        "port": _number(fields.get("port")),
        "pid": _number(fields.get("pid")),
        "version": fields.get("version"),
        "state": state,
        "health": health(silent_ms),
        "leader": bool(leader) and fields.get("id") == leader,
        "queues": _names(fields.get("queues")),
        "tasks": _names(fields.get("tasks")),
        "workers": _number(fields.get("workers")),
        "concurrency": _map(fields.get("concurrency"), int),
        "capacity": _map(fields.get("capacity"), (int, float)),
        "labels": _map(fields.get("labels"), str),
        "metadata": _map(fields.get("metadata"), str),
        "incarnation": _number(fields.get("incarnation")),
        "created_at": _instant(fields.get("created_at")),
        "last_seen": _instant(fields.get("last_seen")),
        "stats": _stats(_read(fields.get("stats"))),
    }


def _stats(read: Any) -> dict[str, Any]:
    """Slots, how many are busy, and what runs in them: the longest running first, and not all of very many."""
    stats: Mapping[str, Any] = read if isinstance(read, dict) else {}
    running = stats.get("running")
    shown = [each for each in running if isinstance(each, dict)] if isinstance(running, list) else []
    counts = {name: n if isinstance(n := stats.get(name), int) else 0 for name in ("slots", "busy")}
    scaling = stats.get("scaling")
    queues, workers = _scaled(scaling), _ranging(scaling)
    return {
        **counts,
        **({"executors": kinds} if (kinds := _kinds(stats.get("executors"))) else {}),
        **({"workers": workers} if workers else {}),
        **({"queues": queues} if queues else {}),
        "running": [{name: each.get(name) for name in ("job", "task", "started_at")} for each in shown],
    }


def _kinds(told: Any) -> dict[str, dict[str, int]]:
    """Executor kind → its slots, and how many of them are busy."""
    words = ("slots", "busy")
    return {
        kind: {word: each[word] for word in words}
        for kind, each in (told.items() if isinstance(told, dict) else ())
        if isinstance(each, dict) and all(isinstance(each.get(word), int) for word in words)
    }


def _scaled(told: Any) -> dict[str, dict[str, Any]]:
    """Queue → the slots it has, of how many to how many, and how many are busy: of those that are scaled."""
    queues = told.get("queues") if isinstance(told, dict) else None
    return {
        name: {word: each.get(word) for word in ("slots", "busy", "least", "most")}
        for name, each in (queues.items() if isinstance(queues, dict) else ())
        if isinstance(each, dict)
    }


def _ranging(told: Any) -> dict[str, Any]:
    """From how many workers to how many the node is scaled; nothing if it isn't."""
    workers = told.get("workers") if isinstance(told, dict) else None
    return {word: workers.get(word) for word in ("least", "most")} if isinstance(workers, dict) else {}


def _read(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        return None


def _names(text: str | None) -> list[str]:
    read = _read(text)
    return [each for each in read if isinstance(each, str)] if isinstance(read, list) else []


def _map(text: str | None, kind: type | tuple[type, ...]) -> dict[str, Any]:
    read = _read(text)
    return {key: value for key, value in read.items() if isinstance(value, kind)} if isinstance(read, dict) else {}


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch("[0-9]{1,15}", text) else None


def _instant(text: str | None) -> str | None:
    ms = _number(text)
    return rfc3339(ms) if ms is not None and ms < 10**14 else None


def known_tasks(nodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of all tasks that these nodes know, sorted."""
    return sorted({name for node in nodes for name in node["tasks"]})


KEYS = ("unique", "fair", "limits", "lock")
_OURS = "order"  # the parameters by place, for producers; people read them in `parameters`


def task_shown(name: str, info: Mapping[str, str] | None, nodes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A task, as the nodes tell of it. `info`: as `commands.task_info`; `nodes`: those that live, as `node_shown`."""
    found = info or {}
    options, about = _read(found.get("options")), _read(found.get("about"))
    told: Mapping[str, Any] = options if isinstance(options, dict) else {}
    more: Mapping[str, Any] = about if isinstance(about, dict) else {}
    settings = more.get("settings")
    return {
        "name": name,
        "queue": found.get("queue"),
        "other_queue": found.get("also"),
        "executor": found.get("executor"),
        "parameters": more.get("parameters"),
        "options": {key: value for key, value in told.items() if key not in KEYS and key != _OURS},
        "settings": settings if isinstance(settings, dict) else {},
        "keys": {key: told[key] for key in KEYS if key in told},
        "last_seen": _instant(found.get("last_seen")),
        "nodes": [each["id"] for each in nodes if name in each["tasks"]],
    }
