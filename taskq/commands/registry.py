"""Who is there: queues, nodes, and which tasks they know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from taskq.commands.command import Arg, Command, build, pairs, text, texts
from taskq.errors import QueueNotFound, did_you_mean
from taskq.keys import ClusterKeys, QueueKeys
from taskq.settings import checked_name


class KnownTask(NamedTuple):
    """A task that a node can run. `options`: those that its jobs must be given, as JSON text; '' for none."""

    task: str
    queue: str
    executor: str
    options: str = ""


def declare(
    q: QueueKeys, *, kinds: Mapping[str, str], retention: Mapping[str, int], now: int | None = None
) -> Command[int]:
    """Takes in what a node's first worker said of a queue. Answers the queue's class version.

    Args:
        q: the queue.
        kinds: task → executor kind.
        retention: `keep_completed`, `keep_failed`, `keep_cancelled` in ms, `max_completed`, `max_failed`; what an
            operator changed beats it.
        now: the time in ms; None for the server's clock.
    """
    rest: list[Arg] = []
    for setting in retention.items():
        rest += setting
    for kind in kinds.items():
        rest += kind
    return build("declare", q, int, {"now": now, "retained": len(retention)}, rest)


def register_queue(c: ClusterKeys, queue: str) -> Command[bool]:
    """Notes that a queue exists, before its first job. Answers whether it is new."""
    return build("register_queue", c, bool, {"now": None, "queue": queue})


def queues(c: ClusterKeys) -> Command[list[str]]:
    """Every queue of the namespace, by name."""
    return build("queues", c, lambda reply: sorted(texts(reply)), {"now": None})


def expect_queue(c: ClusterKeys, queue: str) -> Command[None]:
    """Whether there is such a queue, because a mistyped name must not look like an empty one.

    Raises (when read):
        QueueNotFound: nothing was ever enqueued in it, and no node serves it; the nearest name is told.
    """

    def read(names: list[str]) -> None:
        if queue not in names:
            hint = did_you_mean(queue, names)
            raise QueueNotFound(f"there is no queue {queue!r}{hint}: nothing was ever enqueued in it")

    return queues(c).then(read)


def beat(
    c: ClusterKeys,
    *,
    node: str,
    ttl_ms: int,
    fields: Mapping[str, Arg],
    tasks: Sequence[KnownTask | tuple[str, str, str]] = (),
    now: int | None = None,
) -> Command[str]:
    """A node says that it lives.

    Args:
        c: the registry.
        node: its id.
        ttl_ms: how long the record stays without another beat.
        fields: what the record shows: hostname, pid, queues, workers ...
        tasks: each task that it can run. Where living nodes name two queues, the first by name stands.
        now: the time in ms; None for the server's clock.
    """
    rest: list[Arg] = []
    for pair in fields.items():
        rest += pair
    for task in tasks:
        rest += KnownTask(*task)
    return build("beat", c, text, {"now": now, "node": node, "ttl_ms": ttl_ms, "fields": len(fields)}, rest)


def depart(c: ClusterKeys, node: str) -> Command[bool]:
    """A node takes its leave. Answers whether it was known."""
    return build("depart", c, bool, {"now": None, "node": node})


def nodes(
    c: ClusterKeys, *, within_ms: int = 30_000, limit: int = 1000, now: int | None = None
) -> Command[list[dict[str, str]]]:
    """The nodes whose last beat is at most `within_ms` old."""
    return build(
        "nodes",
        c,
        lambda reply: [{text(k): text(v) for k, v in pairs(flat).items()} for flat in reply],
        {"now": now, "within_ms": within_ms, "limit": limit},
    )


def task_info(c: ClusterKeys, task: str, *, now: int | None = None) -> Command[dict[str, str] | None]:
    """What is known of a task: queue, executor, options, node, last_seen, now (ms); None if nobody declared it for a
    day. `also` and `also_seen`: another queue that a living node named.

    What is damaged counts as unknown: a node says it again within a minute.
    """

    def read(flat: list[bytes]) -> dict[str, str] | None:
        found = {text(k): text(v) for k, v in pairs(flat).items()}
        try:
            checked_name(found["queue"], name="queue")
            int(found["last_seen"])
        except (KeyError, ValueError):
            return None
        return found

    return build("task_info", c, read, {"now": now, "task": task})
