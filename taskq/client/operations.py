"""What the clients do, as values: some commands, and how their replies become one answer. Pure.

An id names its queue, and a command speaks to one queue with at most 250 ids;
a list of ids is split accordingly, and answered in its own order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from taskq import commands, keys
from taskq.asked import checked_text, checked_whole
from taskq.commands import Command
from taskq.errors import DuplicateJob, InvalidTransition, JobNotFound
from taskq.keys import QueueKeys
from taskq.options.rules import priority as checked_priority
from taskq.record import JobRecord
from taskq.state import State

T = TypeVar("T")

MISSING = "missing"
RECORDS_MAX = 16
"""How many records one call reads: each may hold a few MiB, and a server does nothing else meanwhile."""
_READ_TOGETHER = 4
REFUSALS = (JobNotFound, InvalidTransition, DuplicateJob)
"""What a command of several ids is answered with if one of them forbids it: nothing was done then."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """Commands that may be sent together, and what their replies mean."""

    commands: list[Command[Any]]
    fold: Callable[[list[Any]], T]
    together: int | None = None

    def pipelines(self) -> Iterator[list[Command[Any]]]:
        """The commands, so many at once: each pipeline has a deadline of its own. None: all."""
        step = self.together or len(self.commands) or 1
        for at in range(0, len(self.commands), step):
            yield self.commands[at : at + step]


def _token() -> str:
    """Names one call: what a lost answer makes us send again is known by it, and done once."""
    return os.urandom(8).hex()


@dataclass(frozen=True, slots=True)
class Part:
    """What one command is sent of a list of ids: its queue, and where the ids stand in the list.

    `extent`: how far it goes if a refusal says "nothing was done"; empty if this is all there is.
    """

    q: QueueKeys
    places: list[int]
    extent: str


def parts(namespace: str, ids: Sequence[str], *, partial: bool = False, size: int = commands.BATCH_MAX) -> list[Part]:
    """The ids by queue, and at most `size` in each part.

    What can be no job's id is in none, or with `partial=False` JobNotFound.
    """
    by_queue: dict[QueueKeys, list[int]] = {}
    for place, id in enumerate(ids):
        try:
            by_queue.setdefault(keys.of_job(namespace, id), []).append(place)
        except JobNotFound:
            if not partial:
                raise
    found: list[Part] = []
    for q, all in by_queue.items():
        extent = f" in queue {q.name}" if len(by_queue) > 1 else ""
        for at in range(0, len(all), size):
            some = all[at : at + size]
            with_it = f" with it and {len(some) - 1} more of queue {q.name}"
            found.append(Part(q, some, extent if len(some) == len(all) else with_it))
    return found


def _spread(
    namespace: str,
    ids: Sequence[str],
    build: Callable[[QueueKeys, list[str]], Command[Any]],
    *,
    missing: object = None,
    partial: bool = True,
    size: int = commands.BATCH_MAX,
) -> Operation[list[Any]]:
    """One command for each queue and each `size` ids; the answers in the order of the ids.

    What can be no job's id gets the answer `missing`, or with `partial=False` is refused before anything is sent.
    """
    split = parts(namespace, ids, partial=partial, size=size)

    def fold(replies: list[Any]) -> list[Any]:
        answers = [missing] * len(ids)
        for part, reply in zip(split, replies, strict=True):
            for place, answer in zip(part.places, reply, strict=True):
                answers[place] = answer
        return answers

    sent = [build(part.q, [ids[place] for place in part.places]) for part in split]
    if len(split) > 1:
        sent = [_of_several(each, part) for each, part in zip(sent, split, strict=True)]
    return Operation(sent, fold)


def _of_several(command: Command[T], part: Part) -> Command[T]:
    """The same call. That it refused says nothing of the calls that are sent with it, and so does its error."""

    def read(reply: Any) -> T:
        try:
            return command.read(reply)
        except REFUSALS as error:
            error.args = (f"{error}{part.extent}; what was asked for beyond that may be done",)
            raise

    return replace(command, read=read)


def register(namespace: str, queue: str) -> Command[bool]:
    """Makes a queue known."""
    return commands.register_queue(keys.cluster(namespace), queue)


# --- jobs ---------------------------------------------------------------------


def records(namespace: str, ids: Sequence[str]) -> Operation[list[JobRecord | None]]:
    """Whole records in the order asked, None where there is no such job."""
    spread = _spread(namespace, ids, commands.fetch, size=RECORDS_MAX)

    def fold(replies: list[Any]) -> list[JobRecord | None]:
        return [found and JobRecord.from_fields(*found) for found in spread.fold(replies)]

    return Operation(spread.commands, fold, _READ_TOGETHER)


def record(namespace: str, id: str) -> Command[JobRecord]:
    """One record. JobNotFound if there is none."""

    def read(found: list[tuple[str, commands.Fields] | None]) -> JobRecord:
        if found[0] is None:
            raise JobNotFound(f"there is no job {id}: it never existed, or its retention has passed")
        return JobRecord.from_fields(*found[0])

    return commands.fetch(keys.of_job(namespace, id), [id]).then(read)


def peek(namespace: str, id: str) -> Command[JobRecord | None]:
    """One record, or None."""
    return commands.fetch(keys.of_job(namespace, id), [id]).then(
        lambda found: found[0] and JobRecord.from_fields(*found[0])
    )


def wait(namespace: str, id: str) -> Command[JobRecord | None]:
    """As `peek`, and the job's end will be told on its channel."""
    q = keys.of_job(namespace, id)
    return commands.wait(q, id).then(lambda fields: None if fields is None else JobRecord.from_fields(id, fields))


def cancel(namespace: str, id: str, *, running: bool, force: bool) -> Command[str]:
    """`removed`, `requested` or `too_late`; JobNotFound, InvalidTransition for a running one with `running=False`."""

    def read(words: list[str]) -> str:
        if words[0] == MISSING:
            raise JobNotFound(f"there is no job {id}; nothing was done")
        if words[0] == State.RUNNING:
            raise InvalidTransition(
                f"job {id} is running: it can't be made cancelled without asking its worker (running=True)",
                from_state=State.RUNNING,
                to_state=State.CANCELLED,
            )
        return words[0]

    q, token = keys.of_job(namespace, id), _token()
    command = commands.cancel(q, [id], running=running, force=force, partial=True, token=token)
    return command.then(read)


def cancel_many(
    namespace: str,
    ids: Sequence[str],
    *,
    running: bool,
    force: bool,
    partial: bool,
) -> Operation[list[str]]:
    """All or nothing for each queue and each 250 ids, or a word for each id."""

    def build(q: QueueKeys, some: list[str]) -> Command[list[str]]:
        return commands.cancel(q, some, running=running, force=force, partial=partial, token=_token())

    return _spread(namespace, ids, build, missing=MISSING, partial=partial)


def retry(namespace: str, id: str) -> Command[str]:
    """`available`; JobNotFound, InvalidTransition."""
    return commands.retry(keys.of_job(namespace, id), [id], token=_token()).then(lambda words: words[0])


def retry_many(namespace: str, ids: Sequence[str], *, partial: bool) -> Operation[list[str]]:
    """All or nothing for each queue and each 250 ids, or a word for each id."""

    def build(q: QueueKeys, some: list[str]) -> Command[list[str]]:
        return commands.retry(q, some, partial=partial, token=_token())

    return _spread(namespace, ids, build, missing=MISSING, partial=partial)


def reprioritise(namespace: str, id: str, priority: int) -> Command[str]:
    """The state it is in; JobNotFound, InvalidTransition. ValueError for a priority that can't be."""
    return commands.reprioritise(keys.of_job(namespace, id), id, checked_priority(priority))


# --- the rest -----------------------------------------------------------------


def release_lock(namespace: str, name: str, fence: int) -> Command[bool]:
    """Whether whoever held it under this fence lost it by this call. TypeError for a name that is no text, or a fence
    that is no whole number.
    """
    name = checked_text(name, name="name", of="lock")
    command = commands.lock_release(keys.cluster(namespace), name=name, fence=checked_whole(fence, "fence"))
    return command.then(lambda word: word == "released")


def task_info(namespace: str, task: str) -> Command[dict[str, str] | None]:
    """As `commands.task_info`. TypeError for a name that is no text."""
    return commands.task_info(keys.cluster(namespace), checked_text(task, name="task", of="task"))
