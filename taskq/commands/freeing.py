"""Jobs of a target that can't run them, offers to one that won't, and classes that no job needs: what frees them.

The first two are the leader's alone, who sees the nodes; they carry its term.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from taskq.commands.command import Command, build, texts
from taskq.errors import LeadershipLost
from taskq.keys import QueueKeys


class Freed(NamedTuple):
    """One step: jobs that any worker may run now, jobs that failed instead, and of how many looked at; fewer than the
    limit means that none is left.
    """

    moved: int
    failed: int
    looked: int


def untarget(
    q: QueueKeys, klass: str, *, why: Literal["lost", "busy"], term: int, limit: int = 100, now: int | None = None
) -> Command[Freed]:
    """Frees waiting jobs of a class with a target: they go to the class without it, at their place.

    Args:
        q: the queue.
        klass: the class.
        why: `lost`: jobs with `on_target_lost="fail"` fail; `busy`: these wait on.
        term: of the leader.
        limit: at most so many jobs, 250 at most.
        now: the time in ms; None for the server's clock.

    Raises (when read):
        LeadershipLost: a later leader has written to this queue; nothing was done.
    """
    named = {"now": now, "class": klass, "why": why, "limit": limit, "term": term}
    return build("untarget", q, lambda reply: Freed(*_done(reply)), named)


class Withdrawn(NamedTuple):
    """One step: how many offers went back, and from where to go on; None at the end."""

    given_back: int
    next: int | None


def withdraw(
    q: QueueKeys,
    worker: str,
    *,
    why: Literal["gone", "busy"],
    term: int,
    offset: int = 0,
    limit: int = 250,
    now: int | None = None,
) -> Command[Withdrawn]:
    """Gives back, for its executor, what it was offered and hasn't started; nothing else.

    Args:
        q: the queue.
        worker: the executor.
        why: `gone`: as if it had let the offers lapse; `busy`: no fault of the jobs.
        term: of the leader.
        offset: where among what runs to go on.
        limit: look at most at so many, 250 at most.
        now: the time in ms; None for the server's clock.

    Raises (when read):
        LeadershipLost: a later leader has written to this queue; nothing was done.
    """

    def read(reply: Sequence[Any]) -> Withdrawn:
        given_back, at = _done(reply)
        return Withdrawn(given_back, at if at >= 0 else None)

    named = {"now": now, "worker": worker, "why": why, "offset": offset, "limit": limit, "term": term}
    return build("withdraw", q, read, named)


def _done(reply: Sequence[Any]) -> Sequence[int]:
    """What follows the word.

    Raises:
        LeadershipLost: the word is `lost`.
    """
    if reply[0] == b"lost":
        raise LeadershipLost
    return reply[1:]


class Idle(NamedTuple):
    """How many classes went, and those of which no job waits now: to be passed with the next call."""

    swept: int
    classes: list[str]


def sweep_classes(q: QueueKeys, *, idle: Sequence[str] = (), limit: int = 250, now: int | None = None) -> Command[Idle]:
    """Forgets narrow classes of which no job waits, and none did at the last call; a job that needs one brings it back.

    Args:
        q: the queue.
        idle: what the last call answered, some time ago; nothing else goes.
        limit: at most so many are answered, and so many go; 250 at most.
        now: the time in ms; None for the server's clock.
    """

    def read(reply: Sequence[Any]) -> Idle:
        return Idle(int(reply[0]), texts(reply[1:]))

    return build("sweep_classes", q, read, {"now": now, "limit": limit}, list(idle))
