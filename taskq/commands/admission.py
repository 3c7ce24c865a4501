"""Reservations: slots of a queue's capacity that are taken before there is a job, and the job that one is bound to."""

from __future__ import annotations

import hashlib
from typing import Any, Literal, NamedTuple

from taskq.commands.command import Arg, Command, build, text, texts
from taskq.commands.enqueue import RESEND_S, NewJob, refused
from taskq.errors import AdmissionConflict, AdmissionNotFound
from taskq.keys import QueueKeys
from taskq.lanes import decoded
from taskq.units import rfc3339

Which = Literal["unbound", "bound"]
RESERVATIONS: tuple[Which, ...] = ("unbound", "bound")


class Reserved(NamedTuple):
    """The answer to a request for a slot.

    Attributes:
        word: `reserved`, `duplicate` (another reservation holds the key) or `no_capacity`.
        number: until when it holds, in ms since 1970; with `no_capacity` how many slots are taken; else 0.
    """

    word: str
    number: int


class Bound(NamedTuple):
    """What a reservation was bound to.

    Attributes:
        word: `available` or `scheduled` (the job was made); or `existing`, `replaced` (it is another that was there).
        id: the job.
    """

    word: str
    id: str


class StoredReservation(NamedTuple):
    """A reservation as it stands in Redis; '' for what isn't known. `state` is that of its job."""

    token: str
    key: str
    created_at: str
    expires_at: str
    job: str
    state: str

    def shown(self) -> dict[str, Any]:
        """As JSON; what isn't known is null."""
        return {
            "token": self.token,
            "key": decoded(self.key) if self.key else None,
            "state": (self.state or None) if self.job else "reserved",
            "job": self.job or None,
            "created_at": _instant(self.created_at),
            "expires_at": None if self.job else _instant(self.expires_at),
        }


class StoredReservations(NamedTuple):
    """A page of them, and how many there are."""

    total: int
    reservations: list[StoredReservation]


def _instant(text: str) -> str | None:
    return rfc3339(int(text)) if text.isdecimal() and len(text) < 15 else None


def reserve(
    q: QueueKeys, *, token: str, key: str, most: int, outside: int = 0, ttl_ms: int, now: int | None = None
) -> Command[Reserved]:
    """Takes a slot of the queue's capacity. The same token again is the same call.

    Args:
        q: the queue.
        token: names the reservation.
        key: what it is for, encoded (`taskq.lanes`); at most one reservation holds it.
        most: how many slots there are.
        outside: how many are taken by what the queue doesn't know of.
        ttl_ms: how long it holds unbound.
        now: the time in ms; None for the server's clock.
    """
    named = {"now": now, "token": token, "key": key, "most": most, "outside": outside, "ttl_ms": ttl_ms}

    def read(reply: Any) -> Reserved:
        word = text(reply[0])
        return Reserved(word, 0 if word == "duplicate" else int(reply[1]))

    return build("reserve", q, read, named)


def bind(q: QueueKeys, *, token: str, job: NewJob, now: int | None = None) -> Command[Bound]:
    """Makes exactly one waiting job, which starts in the slot of this reservation. The same content again is the same
    call, also after the job has ended.

    Raises (when read):
        AdmissionNotFound: there is no such reservation, or it lapsed.
        AdmissionConflict: it was bound, with other content.
        DuplicateJob, TooManyClasses: as `enqueue`; the reservation stays as it was.
    """
    rest: list[Arg] = []
    job.put_into(rest)
    named = {"now": now, "token": token, "print": fingerprint(job)}

    def read(reply: Any) -> Bound:
        word, *facts = texts(reply)
        if word == "unknown":
            raise AdmissionNotFound(_unknown(token))
        if word == "conflict":
            raise AdmissionConflict(f"reservation {token} is bound to job {facts[0]}, which is another call")
        if word != "ok":
            raise refused(word, facts, q)
        return Bound(*facts)

    return build("bind", q, read, named, rest, durable=(job.id,), resend_s=RESEND_S)


def release_reservation(q: QueueKeys, *, token: str, call: str, now: int | None = None) -> Command[None]:
    """Gives a slot back that is unbound, or whose job lives no more. `call` names the call, so that it may be repeated.

    Raises (when read):
        AdmissionNotFound: there is no such reservation, it lapsed, or was released before.
        AdmissionConflict: its job lives.
    """

    def read(reply: Any) -> None:
        if reply[0] == b"unknown":
            raise AdmissionNotFound(_unknown(token))
        if reply[0] == b"conflict":
            raise AdmissionConflict(f"reservation {token} is bound to job {text(reply[1])}, which lives: cancel that")

    return build("release_reservation", q, read, {"now": now, "token": token, "call": call})


def finalize(q: QueueKeys, *, key: str, now: int | None = None) -> Command[bool]:
    """Frees a key, encoded, unless a living job holds it. Answers whether there was something to free."""
    return build("finalize", q, bool, {"now": now, "key": key})


def sweep_reservations(
    q: QueueKeys,
    which: Which,
    *,
    older_ms: int | None = None,
    skip: int = 0,
    limit: int = 100,
    now: int | None = None,
) -> Command[tuple[int, int]]:
    """Takes back, in one step, what holds a slot for nothing. Answers how many it were, out of how many looked at.

    Args:
        q: the queue.
        which: those that wait for their job, or those that have one.
        older_ms: unbound ones of that age go though they haven't lapsed; None: those that lapsed alone.
        skip: how many the steps before have left.
        limit: how many are looked at; fewer than that means the end.
        now: the time in ms; None for the server's clock.
    """
    named = {"now": now, "which": which, "older_ms": older_ms, "skip": skip, "limit": limit}
    return build("sweep_reservations", q, lambda reply: (int(reply[0]), int(reply[1])), named)


def reservations(
    q: QueueKeys, *, limit: int = 50, offset: int = 0, now: int | None = None
) -> Command[StoredReservations]:
    """Those that hold a slot or a key: unbound ones first."""

    def read(reply: Any) -> StoredReservations:
        return StoredReservations(int(reply[0]), [StoredReservation(*texts(row)) for row in reply[1:]])

    return build("reservations", q, read, {"now": now, "skip": offset, "limit": limit})


def fingerprint(job: NewJob) -> str:
    """What tells the content of a call from another: not the id that was made for it, nor who made it."""
    own = job.id if job.token else ""
    said = [own, job.task, job.priority, job.due, job.expires, job.lane, job.once, job.needs]
    said += [part for pair in sorted(job.fields.items()) for part in pair]
    found = hashlib.sha1(usedforsecurity=False)
    for each in said:
        raw = each if isinstance(each, bytes) else str(each).encode("utf-8", "surrogatepass")
        found.update(f"{len(raw)}:".encode() + raw)
    return found.hexdigest()


def _unknown(token: str) -> str:
    return f"there is no reservation {token}: it was never made, or its time ran out before it was bound"
