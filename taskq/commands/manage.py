"""What people do with jobs and queues: cancel, retry, reprioritise, pause, resume, purge, clear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from taskq.asked import checked_flag
from taskq.commands.command import Command, build, text, texts
from taskq.errors import DuplicateJob, InvalidTransition, JobNotFound
from taskq.keys import QueueKeys

WAITING = ("available", "scheduled", "retryable", "pending")
_ENDS = frozenset({"completed", "failed", "cancelled"})


class Purged(NamedTuple):
    """One step of a purge: `cancelled` jobs, out of `looked` at; fewer looked at than the limit means the end."""

    cancelled: int
    looked: int


def _words(verb: str) -> Callable[[Any], list[str]]:
    def read(reply: Any) -> list[str]:
        if reply[0] != b"refused":
            return texts(reply[1:])
        id, word = text(reply[1]), text(reply[2])
        if word == "missing":
            raise JobNotFound(f"there is no job {id}; nothing was done")
        if word.startswith("duplicate "):
            owner = word.partition(" ")[2]
            raise DuplicateJob(f"job {owner} owns the unique key of {id}; nothing was done", owner=owner)
        state = text(reply[3]) if len(reply) > 3 else word
        target = "cancelled" if verb == "cancel" else "available"
        if target == "cancelled" and state in _ENDS:
            why = f"has ended already: it is {state}"
        elif target == "cancelled":
            why = f"is {state}: it can't be made cancelled without asking its worker (running=True)"
        elif state == target:
            why = f"is {state} already"
        else:
            why = f"is {state}: it can't be made available before it has ended"
        raise InvalidTransition(f"job {id} {why}; nothing was done", from_state=state, to_state=target)

    return read


def cancel(
    q: QueueKeys,
    ids: Sequence[str],
    *,
    running: bool = True,
    force: bool = False,
    partial: bool = False,
    token: str = "",
    now: int | None = None,
) -> Command[list[str]]:
    """Cancels jobs, all or none: `removed` for a waiting one, `requested` for a running one, whose worker is asked.

    Args:
        q: the queue of all ids.
        ids: full ids, 250 at most.
        running: whether running jobs may be asked to stop; False refuses them.
        force: its worker may be replaced to stop a job that can't be interrupted.
        partial: an answer for each id instead of all or none: also `too_late`, `missing`, `running` (refused).
        token: names the call, so that it may be repeated: sent again it changes nothing and is answered as before.
        now: the time in ms; None for the server's clock.

    Raises:
        TypeError: a flag that is neither True nor False.

    Raises (when read, without `partial`):
        JobNotFound: an id is unknown.
        InvalidTransition: a job has ended, or is running and may not be asked.
    """
    given = {"running": running, "force": force, "partial": partial}
    flags = {name: int(checked_flag(flag, name)) for name, flag in given.items()}
    return build("cancel", q, _words("cancel"), {"now": now, **flags, "token": token}, ids)


def retry(
    q: QueueKeys, ids: Sequence[str], *, partial: bool = False, token: str = "", now: int | None = None
) -> Command[list[str]]:
    """Runs jobs again as if new: attempt 0, errors and result cleared. All or none; `available` for each.

    Args:
        q: the queue of all ids.
        ids: full ids of completed, failed, cancelled or retryable jobs, 250 at most.
        partial: an answer for each id instead: also `waiting` (it is available already), `missing`, or the state
            that forbids it.
        token: names the call, so that it may be repeated: sent again it changes nothing and is answered as before.
        now: the time in ms; None for the server's clock.

    Raises:
        TypeError: `partial` is neither True nor False.

    Raises (when read, without `partial`):
        JobNotFound: an id is unknown.
        InvalidTransition: a job waits or runs already.
    """
    flags = {"now": now, "partial": int(checked_flag(partial, "partial")), "token": token}
    return build("retry", q, _words("retry"), flags, ids)


def reprioritise(q: QueueKeys, id: str, priority: int, *, now: int | None = None) -> Command[str]:
    """Gives a job another priority. Answers the state it is in; it stands at its place there, or will.

    Args:
        q: the queue.
        id: a full id.
        priority: −512 … 511, higher first.
        now: the time in ms; None for the server's clock.

    Raises (when read):
        JobNotFound: there is no such job.
        InvalidTransition: it has ended.
    """

    def read(reply: Any) -> str:
        state = text(reply)
        if state == "missing":
            raise JobNotFound(f"there is no job {id}; nothing was done")
        if state in _ENDS:
            raise InvalidTransition(
                f"job {id} is {state}: it waits for no turn any more; nothing was done",
                from_state=state,
                to_state=state,
            )
        return state

    return build("reprioritise", q, read, {"now": now, "id": id, "priority": priority})


def pause(q: QueueKeys, *, now: int | None = None) -> Command[bool]:
    """Stops handing out jobs of the queue, everywhere, from the next claim on. Answers whether it changed."""
    return build("pause", q, bool, {"now": now})


def resume(q: QueueKeys, *, now: int | None = None) -> Command[bool]:
    """Hands out jobs of the queue again. Answers whether it changed."""
    return build("resume", q, bool, {"now": now})


def purge(
    q: QueueKeys, *, states: Sequence[str] = WAITING, limit: int = 250, now: int | None = None
) -> Command[Purged]:
    """Cancels waiting jobs (reason `purged`), in one step of at most `limit`. Running ones are left alone."""
    return build("purge", q, lambda reply: Purged(*reply), {"now": now, "limit": limit}, states)


def clear(
    q: QueueKeys,
    *,
    states: Sequence[str],
    older_than_ms: int = 0,
    before_ms: int | None = None,
    limit: int = 250,
    now: int | None = None,
) -> Command[int]:
    """Deletes ended jobs for good, oldest first. Answers how many; fewer than `limit` means nothing is left.

    Args:
        q: the queue.
        states: of which ended states.
        older_than_ms: only those that ended at least so long before the call is executed.
        before_ms: only those that ended before this instant; None for any.
        limit: at most so many.
        now: the time in ms; None for the server's clock.
    """
    named: dict[str, int | None] = {"now": now, "older_ms": older_than_ms, "before": before_ms, "limit": limit}
    return build("clear", q, int, named, states)
