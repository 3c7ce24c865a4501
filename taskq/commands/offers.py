"""For executors that aren't our worker: start what was offered, say how far it is, see who holds what.

What every holder says (renew, complete, fail, release) is in `hold`; the offer itself is a claim with `offer_ms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from taskq.commands.command import Arg, Command, build, pairs, text, texts
from taskq.keys import QueueKeys


class Reported(NamedTuple):
    """How far a job is. `progress` is msgpack of {n, total, note}, 64 KiB at most."""

    id: str
    epoch: int
    progress: bytes


class HeldJob(NamedTuple):
    """A job as its lease shows it.

    Attributes:
        id: the job.
        expires_ms: when the lease ends; None without one.
        fields: of its record those that tell of its holder; empty if there is no such job, or none that can be read.
    """

    id: str
    expires_ms: int | None
    fields: dict[bytes, bytes]


class HeldJobs(NamedTuple):
    """Some leases of a queue, how many there are in all, and the server's time."""

    now_ms: int
    total: int
    jobs: list[HeldJob]


def start(
    q: QueueKeys, *, worker: str, lease_ms: int, offers: Sequence[tuple[str, int]], now: int | None = None
) -> Command[list[str]]:
    """Makes leases of offers, given as (id, epoch). Answers `ok`, `lost` (too late) or `gone`; again, `ok` again."""
    rest: list[Arg] = [each for offer in offers for each in offer]
    return build("start", q, texts, {"now": now, "worker": worker, "lease_ms": lease_ms}, rest)


def report(q: QueueKeys, *, worker: str, reports: Sequence[Reported], now: int | None = None) -> Command[list[str]]:
    """Keeps how far jobs are. Answers `ok`, `lost`, `gone` or `offered`."""
    rest: list[Arg] = [each for reported in reports for each in reported]
    return build("report", q, texts, {"now": now, "worker": worker}, rest)


def leases(
    q: QueueKeys, ids: Sequence[str] = (), *, offset: int = 0, limit: int = 50, now: int | None = None
) -> Command[HeldJobs]:
    """A page of a queue's leases, those that end first before the others; or of the jobs named, at most 250."""

    def read(reply: Any) -> HeldJobs:
        rows = zip(reply[2::3], reply[3::3], reply[4::3], strict=True)
        jobs = [HeldJob(text(id), at or None, pairs(flat)) for id, at, flat in rows]
        return HeldJobs(int(reply[0]), int(reply[1]), jobs)

    return build("leases", q, read, {"now": now, "offset": offset, "limit": limit}, ids)
