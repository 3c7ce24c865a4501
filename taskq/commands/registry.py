"""Who is there: queues, nodes, and which tasks they know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from taskq.commands.command import Arg, Command, build, text, text_pairs, texts
from taskq.errors import LeadershipLost, NodeNotFound, QueueNotFound, did_you_mean
from taskq.keys import ClusterKeys, QueueKeys
from taskq.presence import LIVENESS_MS, STALE_MS
from taskq.settings import checked_name


class KnownTask(NamedTuple):
    """A task that a node can run. `options`: those that its jobs must be given, `about`: what else people want to know
    of it; as JSON text both, '' for none.
    """

    task: str
    queue: str
    executor: str
    options: str = ""
    about: str = ""


class Registered(NamedTuple):
    """How a node is known: which incarnation of it this is, from 1 on, and when the first registered."""

    incarnation: int
    created_at_ms: int


class Nodes(NamedTuple):
    """A page of nodes: how many there are in all, the server's time, and their records (texts)."""

    total: int
    now_ms: int
    nodes: list[dict[str, str]]


_NO_LIMITS: Mapping[str, str] = {}


class Declaration(NamedTuple):
    """What a queue made of a declaration.

    Attributes:
        version: of the queue's classes.
        later: limits of which another version of the code said other numbers later, with those: they count.
    """

    version: int
    later: dict[str, str]


def declare(
    q: QueueKeys,
    *,
    kinds: Mapping[str, str],
    retention: Mapping[str, int],
    limits: Mapping[str, str] = _NO_LIMITS,
    by_call: bool = False,
    age_ms: int = 0,
    now: int | None = None,
) -> Command[Declaration]:
    """Takes in what a node's first worker said of a queue.

    Args:
        q: the queue.
        kinds: task → executor kind.
        retention: `keep_completed`, `keep_failed`, `keep_cancelled` in ms, `max_completed`, `max_failed`; what an
            operator changed beats it.
        limits: limit → its numbers, as `c=<n> r=<limit>/<period_ms>/<burst>`; an operator's own beat them.
        by_call: the numbers are those of a call (`using`): they count where no worker's code says any.
        age_ms: how long ago this code said it first. Where another version says otherwise, the later one counts.
        now: the time in ms; None for the server's clock.
    """
    rest: list[Arg] = []
    for setting in retention.items():
        rest += setting
    for limit in limits.items():
        rest += limit
    for kind in kinds.items():
        rest += kind
    by = "call" if by_call else "code"
    named = {"now": now, "retained": len(retention), "limited": len(limits), "by": by, "age_ms": age_ms}
    return build("declare", q, _declaration, named, rest)


def _declaration(reply: Sequence[Any]) -> Declaration:
    words = texts(reply[1:])
    return Declaration(int(reply[0]), dict(zip(words[::2], words[1::2], strict=True)))


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


def register_node(
    c: ClusterKeys,
    *,
    node: str,
    ttl_ms: int,
    fields: Mapping[str, Arg],
    tasks: Sequence[KnownTask | tuple[str, str, str]] = (),
    known: Registered = Registered(0, 0),  # noqa: B008 (a value)
    now: int | None = None,
) -> Command[Registered]:
    """A node begins, or begins anew: it takes the place of whatever record it had.

    Args:
        c: the registry.
        node: its id.
        ttl_ms: how long the record stays without a beat.
        fields: what the record shows: hostname, pid, queues, workers, state ...
        tasks: each task that it can run. Where living nodes name two queues, the first by name stands.
        known: the answer to its last registration, if there was one.
        now: the time in ms; None for the server's clock.
    """
    named = {"incarnation": known.incarnation, "created_at": known.created_at_ms}
    return build(
        "register_node",
        c,
        lambda reply: Registered(int(reply[0]), int(reply[1])),
        named | _said(node, ttl_ms, fields, now),
        _told(fields, tasks),
    )


def beat(
    c: ClusterKeys,
    *,
    node: str,
    ttl_ms: int,
    fields: Mapping[str, Arg],
    tasks: Sequence[KnownTask | tuple[str, str, str]] = (),
    now: int | None = None,
) -> Command[None]:
    """A node says that it lives. Arguments as for `register_node`; the fields that aren't given stay.

    Raises (when read):
        NodeNotFound: it isn't registered, or was taken for dead: nothing was written.
    """

    def read(reply: object) -> None:
        if (word := text(reply)) != "ok":
            raise NodeNotFound(f"node {node} is {'taken for dead' if word == 'dead' else 'not registered'}")

    return build("beat", c, read, _said(node, ttl_ms, fields, now), _told(fields, tasks))


def _said(node: str, ttl_ms: int, fields: Mapping[str, Arg], now: int | None) -> dict[str, Arg | None]:
    return {"now": now, "node": node, "ttl_ms": ttl_ms, "alive_ms": LIVENESS_MS, "fields": len(fields)}


def _told(fields: Mapping[str, Arg], tasks: Sequence[KnownTask | tuple[str, str, str]]) -> list[Arg]:
    rest: list[Arg] = []
    for pair in fields.items():
        rest += pair
    for task in tasks:
        rest += KnownTask(*task)
    return rest


def depart(c: ClusterKeys, node: str) -> Command[bool]:
    """A node takes its leave. Answers whether it was known."""
    return build("depart", c, bool, {"now": None, "node": node})


def nodes(
    c: ClusterKeys, *, node: str = "", every: bool = False, limit: int = 1000, offset: int = 0, now: int | None = None
) -> Command[Nodes]:
    """The nodes that live, by id; with `every` all that are known; or only `node`, whether it lives or not."""

    def read(reply: Sequence[Any]) -> Nodes:
        records = [text_pairs(flat) for flat in reply[2]]
        return Nodes(int(reply[0]), int(reply[1]), records)

    named: dict[str, Arg | None] = {"node": node, "limit": limit, "offset": offset, "now": now}
    return build("nodes", c, read, named | {"alive_ms": None if every else LIVENESS_MS})


def mark_dead(c: ClusterKeys, *, node: str, term: int, limit: int = 1000, now: int | None = None) -> Command[list[str]]:
    """The leader marks the nodes that live no more; no lease is touched. Answers those that it marked now.

    Raises (when read):
        LeadershipLost: `node` doesn't lead in this term, and nothing was written.
    """

    def read(reply: Sequence[object]) -> list[str]:
        word, *marked = texts(reply)
        if word != "ok":
            raise LeadershipLost
        return marked

    named = {"now": now, "node": node, "term": term, "alive_ms": LIVENESS_MS, "limit": limit}
    return build("mark_dead", c, read, named)


def forget_nodes(
    c: ClusterKeys, *, silent_ms: int = STALE_MS, limit: int = 250, now: int | None = None
) -> Command[int]:
    """Deletes the records of nodes that have been silent for so long. Answers how many."""
    return build("forget_nodes", c, int, {"now": now, "silent_ms": silent_ms, "limit": limit})


def task_info(c: ClusterKeys, task: str, *, now: int | None = None) -> Command[dict[str, str] | None]:
    """What is known of a task: queue, executor, options, about, node, last_seen, now (ms); None if nobody declared it
    for a day. `also` and `also_seen`: another queue that a living node named.

    What is damaged counts as unknown: a node says it again within a minute.
    """

    def read(flat: list[bytes]) -> dict[str, str] | None:
        found = text_pairs(flat)
        try:
            checked_name(found["queue"], name="queue")
            int(found["last_seen"])
        except (KeyError, ValueError):
            return None
        return found

    return build("task_info", c, read, {"now": now, "task": task})
