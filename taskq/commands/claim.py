"""Taking jobs to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from taskq.commands.command import Arg, Command, build, pairs, text, text_pairs, texts
from taskq.keys import QueueKeys


class Claimed(NamedTuple):
    """A job that the worker now holds. `fields` is its record as it stood before the claim."""

    id: str
    epoch: int
    attempt: int
    fields: dict[bytes, bytes]


class Claim(NamedTuple):
    """What a claim gave.

    Attributes:
        word: `ok`, `paused` (the queue hands nothing out), `gone` (the worker was declared dead) or `stale` (a newer
            request of this worker was seen).
        jobs: what to run now.
        next_ms: ms until something is due that this worker should claim for; None if nothing is.
        version: changes when the queue got a class that it did not have, or dropped one.
        at_ms: when, by the server's clock; the leases count from there.
    """

    word: str
    jobs: list[Claimed]
    next_ms: int | None
    version: int
    at_ms: int = 0


class Classes(NamedTuple):
    """The narrow classes of a queue, each with what it needs (`taskq.needs`), and of which version they are; where
    every target is meant, the executors too that claim here and aren't our worker.
    """

    version: int
    classes: dict[str, str]
    executors: Sequence[str] = ()


EVERY_TARGET = "*"
_NONE: Mapping[str, Mapping[str, int]] = {}


def claim(
    q: QueueKeys,
    *,
    worker: str,
    request: int,
    lease_ms: int,
    limit: int,
    free: Mapping[str, int],
    narrow: Mapping[str, Mapping[str, int]] = _NONE,
    offer_ms: int = 0,
    poller: str = "",
    call: str = "",
    now: int | None = None,
) -> Command[Claim]:
    """Takes the right to run waiting jobs, best first, and everything needed to run them.

    Args:
        q: the queue.
        worker: who claims.
        request: number of this claim of the worker on this queue; the same number again is the same claim.
        lease_ms: how long the right lasts unless it is renewed.
        limit: at most so many jobs, 250 at most.
        free: pool → how much of it is free: an executor kind's slots, or `+<resource>`. Jobs that need nothing but a
            kind are of the class called like it.
        narrow: each further class that the worker serves → pool → what a job takes of it.
        offer_ms: 0: they start now; else each is an offer, which `start` must make a lease within this time.
        poller: who of the worker asks; kept beside it.
        call: names this call instead of `request`: for those who keep no count. Known for a minute.
        now: the time in ms; None for the server's clock.
    """
    rest: list[Arg] = []
    for pair in free.items():
        rest += pair
    for klass, takes in narrow.items():
        rest += (klass, len(takes))
        for pair in takes.items():
            rest += pair
    named: dict[str, Arg | None] = {"now": now, "worker": worker, "request": request, "lease_ms": lease_ms}
    named |= {"limit": limit, "offer_ms": offer_ms, "poller": poller, "call": call, "pools": len(free)}
    return build("claim", q, _read, named, rest)


def _read(reply: Any) -> Claim:
    jobs = [Claimed(id.decode(), int(epoch), attempt, pairs(flat)) for id, epoch, attempt, flat in reply[1]]
    return Claim(text(reply[0]), jobs, reply[2] if reply[2] >= 0 else None, reply[3], reply[4])


def classes(q: QueueKeys, *, targets: Iterable[str] = (), now: int | None = None) -> Command[Classes]:
    """The narrow classes of a queue: those without a target, and those whose target is one of these.

    Args:
        q: the queue.
        targets: names of the worker, as requirements hold them; `EVERY_TARGET` for all targets.
        now: the time in ms; None for the server's clock.
    """

    def read(reply: Any) -> Classes:
        return Classes(reply[0], text_pairs(reply[1]), texts(reply[2]))

    return build("classes", q, read, {"now": now}, list(targets))
