"""What a node's record shows, as the fields of a hash: who it is, what it serves, and at each beat what it does now."""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from taskq.node.channel import Hello
from taskq.node.options import NodeOptions
from taskq.node.table import Entry
from taskq.units import rfc3339

RUNNING_MAX = 250
_LATEST_MS = 10**14  # an epoch grows with each claim, and may have been spoilt


class Told(Protocol):
    """What is needed of a `Child`: the names of its tasks, whether it claims, and what it holds."""

    hello: Hello | None
    ready: bool

    def held(self) -> list[Entry]:
        """What stands in its table."""


def identity(hello: Hello, options: NodeOptions) -> dict[str, str | int]:
    """What stays as it is while the node lives, unless its code changes; lists and maps as JSON."""
    return {
        "hostname": socket.gethostname(),
        "host": address(),
        "port": options.health_port or "",
        "pid": os.getpid(),
        "version": hello.version,
        "queues": _json(hello.queues),
        "tasks": _json(sorted(hello.tasks)),
        "capacity": _json(options.capacity),
        "labels": _json(options.labels),
        "metadata": _json(options.metadata),
    }


def doings(
    children: Sequence[Told],
    *,
    state: str,
    workers: int,
    concurrency: Mapping[str, int],
    scaling: Mapping[str, Any] | None = None,
) -> dict[str, str | int]:
    """What changes from beat to beat.

    Args:
        children: the workers that live.
        state: `active` or `draining`.
        workers: how many there should be.
        concurrency: executor kind → how many jobs each of them runs at a time.
        scaling: as `Allotment.shown` and `ranging`.
    """
    runs = running(children)
    ready, kinds = sum(child.ready for child in children), _busy(children)
    stats: dict[str, Any] = {
        "slots": ready * sum(concurrency.values()),
        "busy": len(runs),
        "executors": {kind: {"slots": ready * each, "busy": kinds[kind]} for kind, each in concurrency.items()},
        "running": runs[:RUNNING_MAX],
    }
    if scaling:
        stats["scaling"] = scaling
    return {
        "state": state,
        "workers": workers,
        "concurrency": _json(concurrency),
        "stats": _json(stats),
    }


def ranging(options: NodeOptions, cores: float, *, queues: Iterable[str]) -> dict[str, Any]:
    """What the leader reads to say how many workers this node shall have; nothing if their number stays."""
    if options.worker_range is None:
        return {}
    least, most = options.worker_range
    plain = [queue for queue in queues if queue not in options.ranges]
    told = {"least": least, "most": most, "now": options.workers, "each": options.each}
    return {"workers": told | {"cores": round(cores, 2), "queues": plain}}


def running(children: Iterable[Told]) -> list[dict[str, str | None]]:
    """The attempts that hold a slot, as `{job, task, started_at}`: the longest running first."""
    held = [(entry, child) for child in children for entry in child.held() if not entry.ended]
    held.sort(key=lambda pair: pair[0].epoch)
    return [
        {"job": entry.id, "task": _task(child, entry), "started_at": rfc3339(min(entry.epoch, _LATEST_MS))}
        for entry, child in held
    ]


def _busy(children: Iterable[Told]) -> Counter[str]:
    """Executor kind → how many attempts hold a slot of it. Each task has one kind."""
    return Counter(_kind(child, entry) for child in children for entry in child.held() if not entry.ended)


def _kind(child: Told, entry: Entry) -> str:
    name = _task(child, entry)
    about = child.hello.tasks.get(name) if child.hello is not None and name is not None else None
    return str(about.get("executor", "async")) if about else "async"


def _task(child: Told, entry: Entry) -> str | None:
    """The name of a task, which the table knows by its place in the worker's hello."""
    if child.hello is None or not 0 <= entry.task < len(child.hello.tasks):
        return None
    return list(child.hello.tasks)[entry.task]


def address() -> str:
    """The address by which other hosts most likely reach this one. No name is looked up, nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:  # no network
            return "127.0.0.1"


def _json(value: Iterable[Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
