"""What the leader does for jobs of a target that can't run them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from taskq.commands.command import Command, build
from taskq.keys import QueueKeys


class Freed(NamedTuple):
    """One step: jobs that any worker may run now, jobs that failed instead, and of how many looked at; fewer than the
    limit means that none is left.
    """

    moved: int
    failed: int
    looked: int


def untarget(
    q: QueueKeys, klass: str, *, why: Literal["lost", "busy"], limit: int = 100, now: int | None = None
) -> Command[Freed]:
    """Frees waiting jobs of a class with a target: they go to the class without it, at their place.

    Args:
        q: the queue.
        klass: the class.
        why: `lost`: jobs with `on_target_lost="fail"` fail; `busy`: these wait on.
        limit: at most so many jobs, 250 at most.
        now: the time in ms; None for the server's clock.
    """
    named = {"now": now, "class": klass, "why": why, "limit": limit}
    return build("untarget", q, lambda reply: Freed(*reply), named)
