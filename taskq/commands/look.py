"""Looking: counts, pages, records. `wait` also marks, so that the end of the job is published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from taskq.commands.command import Command, build, pairs, text
from taskq.keys import QueueKeys

_LANES_COUNTED = 1000
ENTERED_MAX = 1000

#: A record as stored: field → value.
Fields = dict[bytes, bytes]


class Counts(NamedTuple):
    """How many jobs of a queue are in each state, whether it is paused, and how many of its tasks and keys are."""

    pending: int
    scheduled: int
    available: int
    running: int
    retryable: int
    completed: int
    failed: int
    cancelled: int
    paused: bool
    pauses: int = 0


class Demand(NamedTuple):
    """What a queue asks of its workers.

    Attributes:
        now_ms: the server's time.
        waiting: jobs that wait for a worker, over at most a thousand lanes; none while the queue is paused.
        running: jobs that run.
        arrived: how often a job was ever begun, and how many wait.
        completed: how many ever completed.
        run_ms: how long those ran together.
    """

    now_ms: int
    waiting: int
    running: int
    arrived: int
    completed: int
    run_ms: int


class Page(NamedTuple):
    """Some jobs of a state, and how many there are in all."""

    total: int
    records: list[tuple[str, Fields]]


def counts(q: QueueKeys, *, now: int | None = None) -> Command[Counts]:
    """How many jobs are in each state. Available ones are counted over at most a thousand lanes."""

    def read(reply: Any) -> Counts:
        found = {text(name): int(number) for name, number in zip(reply[::2], reply[1::2], strict=True)}
        return Counts(**{name: found[name] for name in Counts._fields if name != "paused"}, paused=found["paused"] > 0)

    return build("counts", q, read, {"now": now})


def backlog(q: QueueKeys) -> Command[dict[str, float]]:
    """How many jobs are in each state; infinity for the available ones if there are more lanes than are counted."""

    def read(reply: Any) -> dict[str, float]:
        found = {text(name): float(number) for name, number in zip(reply[::2], reply[1::2], strict=True)}
        return found if found["lanes"] < _LANES_COUNTED else {**found, "available": math.inf}

    return build("counts", q, read, {"now": None})


def demand(q: QueueKeys, *, now: int | None = None) -> Command[Demand]:
    """What a queue asks of its workers."""
    return build("demand", q, lambda reply: Demand(*map(int, reply)), {"now": now})


def peek(q: QueueKeys, state: str, *, offset: int = 0, limit: int = 50, now: int | None = None) -> Command[Page]:
    """One page of the jobs in a state, newest first by entry into it; available ones as they would be claimed."""

    def read(reply: Any) -> Page:
        rows = zip(reply[1::2], reply[2::2], strict=True)
        return Page(reply[0], [(text(id), pairs(flat)) for id, flat in rows if flat])

    return build("peek", q, read, {"now": now, "state": state, "offset": offset, "limit": limit})


def entered(
    q: QueueKeys, state: str, *, offset: int = 0, limit: int = ENTERED_MAX, now: int | None = None
) -> Command[list[float]]:
    """When jobs of a state entered it, newest first (ms): `peek` has them in this order. Not of available ones."""

    def read(reply: Any) -> list[float]:
        return [float(score) for score in reply]

    return build("entered", q, read, {"now": now, "state": state, "offset": offset, "limit": limit})


def fetch(q: QueueKeys, ids: Sequence[str]) -> Command[list[tuple[str, Fields] | None]]:
    """Whole records, in the order asked; None where there is no such job."""

    def read(reply: Any) -> list[tuple[str, Fields] | None]:
        return [(id, pairs(flat)) if flat else None for id, flat in zip(ids, reply, strict=True)]

    return build("fetch", q, read, {"now": None}, ids)


def wait(q: QueueKeys, id: str) -> Command[Fields | None]:
    """The record, or None. If the job hasn't ended, its end will be published to `q.done(id)`."""
    return build("wait", q, lambda flat: pairs(flat) if flat else None, {"now": None, "id": id})
