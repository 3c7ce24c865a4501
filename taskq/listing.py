"""Lists for people who look: what to read for one page, and pages and what stands on them as JSON. Pure.

One state of one queue is one sorted structure in Redis; longer lists are such structures one after the other, or
merged by time, and a page reads the stretch of each that lies in it.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from taskq import commands
from taskq.asked import check_page
from taskq.commands import Command, Counts, HeldLock, HeldLocks, Leader, Nodes
from taskq.errors import BadRecord, UnknownTask, did_you_mean, shown
from taskq.keys import QueueKeys
from taskq.presence import known_tasks, node_shown, task_shown
from taskq.record import JobRecord, damaged
from taskq.state import State, valid
from taskq.units import rfc3339

T = TypeVar("T")

_ORDER = (
    State.RUNNING,
    State.AVAILABLE,
    State.SCHEDULED,
    State.RETRYABLE,
    State.PENDING,
    State.FAILED,
    State.COMPLETED,
    State.CANCELLED,
)
"""State after state, when none is asked for: what happens now, what will, what did."""


def stretches(counts: Sequence[int], limit: int, offset: int) -> Iterator[tuple[int, int, int]]:
    """What of several lists, one after the other, lies in a page: which list, how many of it to skip, how many of it.

    Args:
        counts: how many each list has.
        limit: the page has at most so many.
        offset: how many stand before it.
    """
    skip, wanted = offset, limit
    for i, count in enumerate(counts):
        if skip < count and wanted:
            some = min(wanted, count - skip)
            yield i, skip, some
            wanted -= some
        skip = max(0, skip - count)


# --- jobs


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a list: one state of one queue, and how many jobs it holds."""

    q: QueueKeys
    state: State
    count: int


def states(state: str | None, limit: int, offset: int) -> Sequence[State]:
    """The states of a list of jobs, in order.

    Raises:
        TypeError, ValueError: there is no such state or page.
    """
    check_page(limit, offset, of="jobs")
    if state is None:
        return _ORDER
    if not valid(state):
        hint = did_you_mean(shown(state), map(str, State))
        raise ValueError(f"there is no state {shown(state)}{hint}: {', '.join(State)}")
    return (State(state),)


Reading: TypeAlias = Generator[Sequence[Command[Any]], Sequence[Any], T]
"""What is read in several steps: yields commands, is sent their answers, and gives what they come to."""


def jobs(
    states: Sequence[State], queues: Sequence[QueueKeys], counts: Sequence[Counts], limit: int, offset: int
) -> Reading[dict[str, Any]]:
    """A page of jobs as JSON: state after state, within one the newest of all queues first. `counts`: of each queue.

    Available ones stand queue after queue, as they would be claimed: only within a queue is one before another.
    """
    parts = [[Segment(q, state, getattr(n, state)) for q, n in zip(queues, counts, strict=True)] for state in states]
    totals = [sum(segment.count for segment in part) for part in parts]
    data: list[dict[str, Any]] = []
    for i, skip, some in stretches(totals, limit, offset):
        part = [segment for segment in parts[i] if segment.count]
        if states[i] is State.AVAILABLE or len(part) == 1:
            data += yield from _in_turn(part, skip, some)
        else:
            data += yield from _merged(part, skip, some)
    return {"data": data, "total": sum(totals), "limit": limit, "offset": offset}


def _in_turn(segments: Sequence[Segment], skip: int, some: int) -> Reading[list[dict[str, Any]]]:
    """Jobs of a state, queue after queue."""
    pages = yield [
        commands.peek(segments[i].q, segments[i].state, offset=before, limit=count)
        for i, before, count in stretches([segment.count for segment in segments], some, skip)
    ]
    return [job_shown(*row) for page in pages for row in page.records]


def _merged(segments: Sequence[Segment], skip: int, some: int) -> Reading[list[dict[str, Any]]]:
    """Jobs of a state, the newest of all queues first. What of a queue lies in the page is one stretch of its list."""
    order = yield from _order(segments, skip + some)
    before, here = Counter(order[:skip]), Counter(order[skip:])
    pages = yield [
        commands.peek(segments[i].q, segments[i].state, offset=before[i], limit=count) for i, count in here.items()
    ]
    rows = {i: iter(page.records) for i, page in zip(here, pages, strict=True)}
    return [job_shown(*row) for i in order[skip:] for row in islice(rows[i], 1)]


def _order(segments: Sequence[Segment], most: int) -> Reading[list[int]]:
    """Which of the lists each of the first `most` jobs of all of them together is of."""
    times: list[deque[float]] = [deque() for _ in segments]
    read = [0] * len(segments)
    unread = set(range(len(segments)))
    order: list[int] = []
    while len(order) < most:
        if lacking := sorted(i for i in unread if not times[i]):
            count = min(most - len(order), commands.ENTERED_MAX)
            asked = [commands.entered(segments[i].q, segments[i].state, offset=read[i], limit=count) for i in lacking]
            for i, found in zip(lacking, (yield asked), strict=True):
                times[i].extend(found)
                read[i] += len(found)
                if len(found) < count:
                    unread.discard(i)
        newest = max((i for i, of in enumerate(times) if of), key=lambda i: times[i][0], default=None)
        if newest is None:
            break
        times[newest].popleft()
        order.append(newest)
    return order


def job_shown(id: str, fields: Mapping[bytes, bytes]) -> dict[str, Any]:
    """A job for a list. A damaged one is shown with what is wrong, and doesn't hide the others."""
    try:
        return JobRecord.from_fields(id, fields).to_dict()
    except BadRecord as error:
        return damaged(id, fields, error)


# --- queues


def queue_shown(name: str, counts: Counts) -> dict[str, Any]:
    """A queue as JSON."""
    return {"queue": name, **counts._asdict()}


def is_empty(counts: Counts) -> bool:
    """Whether the queue may be one that never was: only then is it worth a look at the list of queues."""
    return not any(counts)


# --- nodes and tasks


def nodes(found: Nodes) -> list[dict[str, Any]]:
    """Nodes as JSON, in their order."""
    return [node_shown(fields, found.now_ms) for fields in found.nodes]


def leader(found: Leader) -> dict[str, Any]:
    """Who leads, as JSON; instants as RFC 3339."""
    return {
        "node": found.node or None,
        "term": found.term or None,
        "since": rfc3339(found.since_ms) if found.since_ms else None,
        "until": rfc3339(found.until_ms) if found.node else None,
    }


def page_of_tasks(
    nodes: Sequence[dict[str, Any]],
    names: Sequence[str],
    told: Sequence[dict[str, str] | None],
    limit: int,
    offset: int,
) -> dict[str, Any]:
    """The page as JSON. `names`: all that these nodes know; `told`: what they tell of those on it."""
    here = names[offset : offset + limit]
    data = [task_shown(name, info, nodes) for name, info in zip(here, told, strict=True)]
    return {"data": data, "total": len(names), "limit": limit, "offset": offset}


def task(name: str, info: dict[str, str] | None, nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A task as JSON.

    Raises:
        UnknownTask: nobody told of it; the nearest name that a node knows is told.
    """
    if info is None and name not in (known := known_tasks(nodes)):
        raise UnknownTask(f"no node has known a task {name!r} within the last day{did_you_mean(name, known)}")
    return task_shown(name, info, nodes)


# --- locks


def page_of_locks(found: HeldLocks, limit: int, offset: int) -> dict[str, Any]:
    """The page as JSON."""
    data = [_lock(each) for each in found.locks]
    return {"data": data, "total": found.total, "limit": limit, "offset": offset}


def _lock(held: HeldLock) -> dict[str, Any]:
    """A lock as JSON; a field that is damaged or missing is null."""
    fields = held.fields
    acquired_at, ends_at = (_number(fields.get(field, ""), 14) for field in ("since", "until"))
    return {
        "name": held.name,
        "fence": _number(fields.get("fence", ""), 16),
        "owner": fields.get("owner") or None,
        "job": fields.get("job") or None,
        "acquired_at": None if acquired_at is None else rfc3339(acquired_at),
        "ends_at": None if ends_at is None else rfc3339(ends_at),
        "waiting": held.waiting,
    }


def _number(text: str, digits: int) -> int | None:
    return int(text) if re.fullmatch(f"[0-9]{{1,{digits}}}", text) else None
