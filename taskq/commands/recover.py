"""What nodes do for others: bury dead workers, reap, promote, expire, prune, wake."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from taskq.commands.command import Arg, Command, build, text, texts
from taskq.keys import QueueKeys


class Buried(NamedTuple):
    """A job that a dead worker held.

    Attributes:
        id: the job.
        epoch: the lease's.
        verb: `lost` (the attempt counts), `ended` (so it does, and the reason says that the job's code had ended),
            `refund` (it hadn't begun, or only shared a process that the node killed; one whose cancel was asked is
            cancelled) or `timeout` (it is why the node killed it: a failed attempt, retried after `delay_ms`).
        delay_ms: with `timeout` only.
    """

    id: str
    epoch: int
    verb: str
    delay_ms: int = 0


class Reaped(NamedTuple):
    """What a reap moved, as (id, state), for how many ms it is still quiet after an outage, and whether anything is due
    for promote or expire.
    """

    moved: list[tuple[str, str]]
    quiet_ms: int
    due: bool


def _moves(reply: Sequence[Any]) -> list[tuple[str, str]]:
    words = texts(reply)
    return list(zip(words[::2], words[1::2], strict=True))


def bury(
    q: QueueKeys, *, worker: str, why: str, jobs: Sequence[Buried], now: int | None = None
) -> Command[list[tuple[str, str]]]:
    """Gives back what a dead worker held, also what its last claim remembers, and refuses its later calls.

    Answers (id, state) for each job that was given back. May be repeated.
    """
    rest: list[Arg] = []
    for job in jobs:
        rest += job
    return build("bury", q, _moves, {"now": now, "worker": worker, "why": why}, rest)


def reap(q: QueueKeys, *, lease_ms: int, limit: int = 100, now: int | None = None) -> Command[Reaped]:
    """Takes back jobs whose lease expired, unless it is quiet after an outage."""
    return build(
        "reap",
        q,
        lambda reply: Reaped(_moves(reply[2:]), int(reply[0]), due=reply[1] == b"1"),
        {"now": now, "lease_ms": lease_ms, "limit": limit},
    )


def promote(q: QueueKeys, *, limit: int = 100, now: int | None = None) -> Command[int]:
    """Makes due jobs available. Answers how many; as many as `limit` means there may be more."""
    return build("promote", q, int, {"now": now, "limit": limit})


def expire(q: QueueKeys, *, limit: int = 100, now: int | None = None) -> Command[int]:
    """Cancels waiting jobs past their `expires`. Answers how many were looked at."""
    return build("expire", q, int, {"now": now, "limit": limit})


def prune(q: QueueKeys, *, limit: int = 100, now: int | None = None) -> Command[int]:
    """Removes ended jobs whose time has passed. Answers how many were touched."""
    return build("prune", q, int, {"now": now, "limit": limit})


def wake(q: QueueKeys, classes: Iterable[str], *, now: int | None = None) -> Command[str]:
    """Sets the markers on which idle workers block."""
    return build("wake", q, text, {"now": now}, list(classes))
