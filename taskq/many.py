"""What `enqueue_many`, `bind` and their twins share: calls checked, what came of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from taskq.client.batch import Interrupted
from taskq.commands import Bound, NewJob
from taskq.errors import EnqueueFailed, shown
from taskq.handle import Job
from taskq.home import Home
from taskq.task import Call, handle_of

__all__ = ["Interrupted", "bound_handle", "checked_calls", "enqueue_failed"]

R = TypeVar("R")


def checked_calls(calls: Iterable[Call[R]], exists: str) -> list[Call[R]]:
    """The calls as a list. TypeError for anything else in it, ValueError for another word than the two."""
    if exists not in {"existing", "raise"}:
        raise ValueError(f'exists={shown(exists)} is none: give "existing" or "raise"')
    if isinstance(calls, Call) or not isinstance(calls, Iterable):
        raise TypeError(f"enqueue_many takes a list of calls, such as [send.call('a@b.c')], not {shown(calls)}")
    asked = list(calls)
    for each in asked:
        if not isinstance(each, Call):
            raise TypeError(f"enqueue_many takes calls, such as send.call('a@b.c'), not {shown(each)}")
    return asked


def bound_handle(home: Home, job: NewJob, bound: Bound) -> Job[Any]:
    """The handle of a reservation's job: made by this call or the same call before, or one that was there."""
    if bound.word in {"existing", "replaced"}:
        return Job(home, bound.id, created=False)
    return handle_of(home, job._replace(id=bound.id), bound.word)


def enqueue_failed(
    home: Home, calls: Sequence[Call[Any]], jobs: Sequence[NewJob], stopped: Interrupted
) -> EnqueueFailed:
    """The error of a batch that stopped part-way, with handles of what is in and calls of what may not be."""
    added: list[Any] = []
    rest: list[Call[Any]] = []
    for call, job, word in zip(calls, jobs, stopped.words, strict=True):
        if word is not None:
            added.append(handle_of(home, job, word))
        else:
            again: Call[Any] = Call(call.task, call.args, call.kwargs, call.payload)
            again.sent = job
            rest.append(again)
    return EnqueueFailed(
        f"{len(added)} of {len(jobs)} jobs were enqueued, then: {stopped.error}; send .rest again",
        jobs=added,
        rest=rest,
    )
