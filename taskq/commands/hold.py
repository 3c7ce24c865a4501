"""What the holder of leases says: renew, complete, fail, release, snooze. Each answers for each job.

`lost` means that another holds the job, or nobody; `gone` that there is no such job any more; `ok`, where another word
was expected, that the same call was answered before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from taskq.commands.command import Arg, Command, build, texts
from taskq.keys import QueueKeys


class Held(NamedTuple):
    """A lease: the job, its epoch, and the worker that holds it."""

    id: str
    epoch: int
    worker: str


class Done(NamedTuple):
    """A job that ended well. `result` is msgpack; empty for None."""

    id: str
    epoch: int
    result: bytes


class Failure(NamedTuple):
    """An attempt that ended badly.

    Attributes:
        id: the job.
        epoch: the lease's.
        verb: `retry` (after `delay_ms`, while attempts are left) or `fail` (for good).
        delay_ms: the backoff.
        error: JSON text of {type, message, traceback, at, worker}.
        reason: why the job failed, should it fail.
    """

    id: str
    epoch: int
    verb: str
    delay_ms: int
    error: str | bytes
    reason: str | bytes


class Release(NamedTuple):
    """A job given back untouched. `executor` moves it to that class; '' leaves it where it was."""

    id: str
    epoch: int
    executor: str


class Snoozed(NamedTuple):
    """A job put off. `kind` is `snooze`, or `unknown` for one that this worker can't run."""

    id: str
    epoch: int
    kind: str
    delay_ms: int
    reason: str | bytes


def _flat(rows: Iterable[Sequence[Arg]]) -> list[Arg]:
    rest: list[Arg] = []
    for row in rows:
        rest += row
    return rest


def renew(q: QueueKeys, *, lease_ms: int, held: Sequence[Held], now: int | None = None) -> Command[list[str]]:
    """Extends leases to now + `lease_ms`. Answers `ok`, `lost`, or `cancel` / `force` (renewed, but stop it)."""
    return build("renew", q, texts, {"now": now, "lease_ms": lease_ms}, _flat(held))


def complete(q: QueueKeys, *, worker: str, done: Sequence[Done], now: int | None = None) -> Command[list[str]]:
    """Ends jobs well. Answers `ok`, `lost` or `gone`."""
    return build("complete", q, texts, {"now": now, "worker": worker}, _flat(done))


def fail(q: QueueKeys, *, worker: str, failures: Sequence[Failure], now: int | None = None) -> Command[list[str]]:
    """Ends attempts badly. Answers `retryable`, `failed`, `cancelled`, `ok`, `lost` or `gone`."""
    return build("fail", q, texts, {"now": now, "worker": worker}, _flat(failures))


def release(q: QueueKeys, *, worker: str, jobs: Sequence[Release], now: int | None = None) -> Command[list[str]]:
    """Gives jobs back to their place, the attempt refunded (20 times in a row at most).

    Answers `available`, `failed`, `cancelled`, `ok`, `lost` or `gone`.
    """
    return build("release", q, texts, {"now": now, "worker": worker}, _flat(jobs))


def snooze(
    q: QueueKeys, *, worker: str, grace_ms: int, jobs: Sequence[Snoozed], now: int | None = None
) -> Command[list[str]]:
    """Puts jobs off, the attempt refunded; `unknown` ones fail once `grace_ms` has passed since the first time.

    Answers `scheduled`, `failed`, `cancelled`, `ok`, `lost` or `gone`.
    """
    return build("snooze", q, texts, {"now": now, "worker": worker, "grace_ms": grace_ms}, _flat(jobs))
