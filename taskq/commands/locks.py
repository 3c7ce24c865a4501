"""Named locks: taking, keeping and giving back one; which are held."""

from __future__ import annotations

from typing import Any, NamedTuple

from taskq.commands.command import Command, build, text, text_pairs
from taskq.keys import ClusterKeys

#: How long a lock may be held without another word. Shorter than the first nobody could renew it in time.
TTL_MIN_MS, TTL_MAX_MS = 100, 86_400_000


class LockAnswer(NamedTuple):
    """What a call for a lock was answered.

    Attributes:
        word: `held`, `waits` or `taken`.
        fence: of the acquisition; 0 unless it is held.
        place: where the caller stands in the line, to be passed with its next call; '' unless it waits.
        look_ms: when to look again at the latest.
        owner, job: who holds it; '' if it is free for the first in the line.
    """

    word: str
    fence: int
    place: str
    look_ms: int
    owner: str
    job: str


class HeldLock(NamedTuple):
    """A lock that is held: its name, how many wait for it, and its record (texts)."""

    name: str
    waiting: int
    fields: dict[str, str]


class HeldLocks(NamedTuple):
    """A page of them, and how many there are."""

    total: int
    locks: list[HeldLock]


def lock_acquire(
    c: ClusterKeys,
    *,
    name: str,
    token: str,
    ttl_ms: int,
    waits: bool = False,
    place: str = "",
    owner: str = "",
    job: str = "",
    now: int | None = None,
) -> Command[LockAnswer]:
    """Takes a lock, or stands in the line for it. Asked again with the same token, it answers as before.

    Args:
        c: where locks live.
        name: which.
        token: who asks; a new one for each acquisition.
        ttl_ms: how long it is held without another word.
        waits: whether to stand in the line if it isn't free.
        place: '' at first, then what the last answer gave.
        owner: who asks, for people.
        job: the job that asks, '' for none.
        now: the time in ms; None for the server's clock.
    """

    def read(reply: list[Any]) -> LockAnswer:
        word, number = text(reply[0]), text(reply[1])
        fence = int(number) if word == "held" else 0
        place = number if word == "waits" else ""
        return LockAnswer(word, fence, place, int(reply[2]), text(reply[3]), text(reply[4]))

    named = {"now": now, "name": name, "token": token, "ttl_ms": ttl_ms, "waits": int(waits), "place": place}
    return build("lock_acquire", c, read, {**named, "owner": owner, "job": job})


def lock_extend(c: ClusterKeys, *, name: str, token: str, ttl_ms: int, now: int | None = None) -> Command[str]:
    """Holds it for at least so long from now on: `ok`, or `lost` and nothing was done."""
    return build("lock_extend", c, text, {"now": now, "name": name, "token": token, "ttl_ms": ttl_ms})


def lock_release(
    c: ClusterKeys, *, name: str, token: str = "", fence: int | None = None, now: int | None = None
) -> Command[str]:
    """Gives it back, or leaves the line: `released`, `left`, or `lost` and nothing was done.

    Args:
        c: where locks live.
        name: which.
        token: whose.
        fence: without a token: whoever holds it, if it is under this fence.
        now: the time in ms; None for the server's clock.
    """
    return build("lock_release", c, text, {"now": now, "name": name, "token": token, "fence": fence})


def locks(
    c: ClusterKeys, *, name: str = "", offset: int = 0, limit: int = 1000, now: int | None = None
) -> Command[HeldLocks]:
    """The locks that are held, or the one of a name; those that end first before the others."""

    def read(reply: list[Any]) -> HeldLocks:
        rows = [HeldLock(text(name), int(waiting), text_pairs(flat)) for name, waiting, flat in reply[1:]]
        return HeldLocks(int(reply[0]), rows)

    return build("locks", c, read, {"now": now, "name": name, "offset": offset, "limit": limit})
