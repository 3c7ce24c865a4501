"""`Inspector`: lists and counts of jobs and queues, for people and programs that look. It changes nothing.

A list is a page `{data, total, limit, offset}`. One state of one queue is one
sorted structure in Redis; longer lists are such structures one after the other,
so a page costs two round trips, however many jobs there are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taskq import activity, commands, keys
from taskq.asked import check_page, checked_text
from taskq.commands import Command, Counts, HeldLock, HeldLocks, Leader, Nodes, Page
from taskq.connection import AsyncServer, Server, run, run_async, run_many, run_many_async
from taskq.errors import BadRecord, UnknownTask, did_you_mean, shown
from taskq.keys import QueueKeys
from taskq.presence import known_tasks, node_shown, task_shown
from taskq.record import JobRecord, damaged
from taskq.settings import checked_name
from taskq.state import State, StateName, valid
from taskq.units import rfc3339
from taskq.why import Why, explain

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


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a list: one state of one queue, and how many jobs it holds."""

    q: QueueKeys
    state: State
    count: int


class Inspector:
    """Looks. Every method has an a-twin.

    Args:
        server: for threads.
        aserver: for coroutines.
    """

    def __init__(self, server: Server, aserver: AsyncServer) -> None:
        self._server = server
        self._aserver = aserver
        self._namespace = server.settings.namespace

    def jobs(
        self, *, state: State | StateName | None = None, queue: str | None = None, limit: int = 50, offset: int = 0
    ) -> dict[str, Any]:
        """A page of jobs, as JSON holds them, newest first by entry into their state.

        Args:
            state: one of the eight; None for all, state after state. Available ones come as they would be claimed.
            queue: None for all, queue after queue within a state.
            limit: jobs a page, 1 to 1000.
            offset: how many to skip.

        Raises:
            QueueNotFound: nothing was ever enqueued in this queue.
            ValueError: a state or queue that can't be, or a number out of range.
            TypeError: a limit or offset that is no whole number.
        """
        states = _checked(state, limit, offset)
        chosen = self._queue_keys([queue] if queue is not None else self._names())
        counts = run_many(self._server, [commands.counts(q) for q in chosen])
        if queue is not None and _is_empty(counts[0]):
            run(self._server, commands.expect_queue(keys.cluster(self._namespace), queue))
        segments = _segments(states, chosen, counts)
        pages = run_many(self._server, _peeks(segments, limit, offset))
        return _page(segments, pages, limit, offset)

    async def ajobs(
        self, *, state: State | StateName | None = None, queue: str | None = None, limit: int = 50, offset: int = 0
    ) -> dict[str, Any]:
        """As `jobs`, awaited."""
        states = _checked(state, limit, offset)
        chosen = self._queue_keys([queue] if queue is not None else await self._anames())
        counts = await run_many_async(self._aserver, [commands.counts(q) for q in chosen])
        if queue is not None and _is_empty(counts[0]):
            await run_async(self._aserver, commands.expect_queue(keys.cluster(self._namespace), queue))
        segments = _segments(states, chosen, counts)
        pages = await run_many_async(self._aserver, _peeks(segments, limit, offset))
        return _page(segments, pages, limit, offset)

    def why(self, id: str) -> Why:
        """Why a job isn't running: the first gate of the claim that it can't pass, with its numbers.

        Args:
            id: the full id.

        Raises:
            JobNotFound: there is no such job.
            TypeError: the id is no text.
            Unavailable: Redis gave no answer in time.
        """
        shut = run(self._server, commands.why(keys.of_job(self._namespace, id), id))
        return explain(id, shut, self.nodes() if shut.word == "turn" else ())

    async def awhy(self, id: str) -> Why:
        """As `why`, awaited."""
        shut = await run_async(self._aserver, commands.why(keys.of_job(self._namespace, id), id))
        return explain(id, shut, await self.anodes() if shut.word == "turn" else ())

    def active(self, *, queue: str | None = None, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """A page of what runs or is offered, queue after queue, those whose lease ends first before the others.

        Each is as `Lease.to_dict` has it, with `stale` (its lease ran out) and `node_state` (None: no node).

        Args:
            queue: None for all.
            limit: attempts a page, 1 to 1000.
            offset: how many to skip.

        Raises:
            QueueNotFound: nothing was ever enqueued in this queue.
            TypeError, ValueError: no whole number, or one out of range.
        """
        check_page(limit, offset, of="attempts")
        chosen = self._queue_keys([queue] if queue is not None else self._names())
        totals = run_many(self._server, [commands.leases(q, limit=0) for q in chosen])
        if queue is not None and not totals[0].total:
            run(self._server, commands.expect_queue(keys.cluster(self._namespace), queue))
        pages = run_many(self._server, activity.reads(chosen, totals, limit, offset))
        nodes = run(self._server, commands.nodes(keys.cluster(self._namespace), every=True))
        return activity.page(totals, pages, nodes, limit, offset)

    async def aactive(self, *, queue: str | None = None, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """As `active`, awaited."""
        check_page(limit, offset, of="attempts")
        chosen = self._queue_keys([queue] if queue is not None else await self._anames())
        totals = await run_many_async(self._aserver, [commands.leases(q, limit=0) for q in chosen])
        if queue is not None and not totals[0].total:
            await run_async(self._aserver, commands.expect_queue(keys.cluster(self._namespace), queue))
        pages = await run_many_async(self._aserver, activity.reads(chosen, totals, limit, offset))
        nodes = await run_async(self._aserver, commands.nodes(keys.cluster(self._namespace), every=True))
        return activity.page(totals, pages, nodes, limit, offset)

    def queues(self) -> list[dict[str, Any]]:
        """Every queue by name, with how many jobs are in each state and whether it is paused."""
        names = self._names()
        counts = run_many(self._server, [commands.counts(q) for q in self._queue_keys(names)])
        return [_with_name(name, count) for name, count in zip(names, counts, strict=True)]

    async def aqueues(self) -> list[dict[str, Any]]:
        """As `queues`, awaited."""
        names = await self._anames()
        counts = await run_many_async(self._aserver, [commands.counts(q) for q in self._queue_keys(names)])
        return [_with_name(name, count) for name, count in zip(names, counts, strict=True)]

    def counts(self, queue: str) -> Counts:
        """How many jobs of a queue are in each state, and whether it is paused.

        Raises:
            QueueNotFound: nothing was ever enqueued in it, and no worker serves it.
        """
        found = run(self._server, commands.counts(self._queue_keys([queue])[0]))
        if _is_empty(found):
            run(self._server, commands.expect_queue(keys.cluster(self._namespace), queue))
        return found

    async def acounts(self, queue: str) -> Counts:
        """As `counts`, awaited."""
        found = await run_async(self._aserver, commands.counts(self._queue_keys([queue])[0]))
        if _is_empty(found):
            await run_async(self._aserver, commands.expect_queue(keys.cluster(self._namespace), queue))
        return found

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes that live, by id, each as `app.nodes` shows it."""
        return _nodes(run(self._server, commands.nodes(keys.cluster(self._namespace))))

    async def anodes(self) -> list[dict[str, Any]]:
        """As `nodes`, awaited."""
        return _nodes(await run_async(self._aserver, commands.nodes(keys.cluster(self._namespace))))

    def tasks(self, *, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """A page of the tasks that living nodes know, by name.

        Each is `{name, queue, other_queue, executor, parameters, options, settings, keys, last_seen, nodes}`: `options`
        are those of its jobs, `settings` those that stay in the workers' code, `nodes` the ids of those that serve it.

        Args:
            limit: tasks a page, 1 to 1000.
            offset: how many to skip.

        Raises:
            TypeError, ValueError: no whole number, or one out of range.
            Unavailable: Redis gave no answer in time.
        """
        check_page(limit, offset, of="tasks")
        nodes = self.nodes()
        names = known_tasks(nodes)
        asked = [commands.task_info(keys.cluster(self._namespace), name) for name in names[offset : offset + limit]]
        return _page_of_tasks(nodes, names, run_many(self._server, asked), limit, offset)

    async def atasks(self, *, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """As `tasks`, awaited."""
        check_page(limit, offset, of="tasks")
        nodes = await self.anodes()
        names = known_tasks(nodes)
        asked = [commands.task_info(keys.cluster(self._namespace), name) for name in names[offset : offset + limit]]
        return _page_of_tasks(nodes, names, await run_many_async(self._aserver, asked), limit, offset)

    def task(self, name: str) -> dict[str, Any]:
        """A task that nodes told of within the last day, as `tasks` shows it.

        Raises:
            UnknownTask: none did; the nearest name is told.
            TypeError: the name is no text.
        """
        info = run(self._server, self._told_of(name))
        return _task(name, info, self.nodes())

    async def atask(self, name: str) -> dict[str, Any]:
        """As `task`, awaited."""
        info = await run_async(self._aserver, self._told_of(name))
        return _task(name, info, await self.anodes())

    def locks(self, *, name: str | None = None, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """A page of the named locks that are held, those that end first before the others.

        Each is `{name, fence, owner, job, acquired_at, ends_at, waiting}`; `ends_at` moves on while its holder renews
        it, `waiting` is how many stand in line.

        Args:
            name: only this one.
            limit: locks a page, 1 to 1000.
            offset: how many to skip.

        Raises:
            TypeError, ValueError: no whole number, or one out of range.
        """
        found = run(self._server, self._locks(name, limit, offset))
        return _page_of_locks(found, limit, offset)

    async def alocks(self, *, name: str | None = None, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """As `locks`, awaited."""
        found = await run_async(self._aserver, self._locks(name, limit, offset))
        return _page_of_locks(found, limit, offset)

    def leader(self) -> dict[str, Any]:
        """Who leads the nodes: `{node, term, since, until}`; instants as RFC 3339. `node` and `until` are None while
        nobody leads, `term` and `since` then tell of the last leader, or are None too.

        Raises:
            Unavailable: Redis gave no answer in time.
        """
        return _leader(run(self._server, commands.leader(keys.cluster(self._namespace))))

    async def aleader(self) -> dict[str, Any]:
        """As `leader`, awaited."""
        return _leader(await run_async(self._aserver, commands.leader(keys.cluster(self._namespace))))

    def _told_of(self, name: str) -> Command[dict[str, str] | None]:
        return commands.task_info(keys.cluster(self._namespace), checked_text(name, name="name", of="task"))

    def _locks(self, name: str | None, limit: int, offset: int) -> Command[HeldLocks]:
        check_page(limit, offset, of="locks")
        if name is not None:
            checked_text(name, name="name", of="lock")
        return commands.locks(keys.cluster(self._namespace), name=name or "", limit=limit, offset=offset)

    def _names(self) -> list[str]:
        return run(self._server, commands.queues(keys.cluster(self._namespace)))

    async def _anames(self) -> list[str]:
        return await run_async(self._aserver, commands.queues(keys.cluster(self._namespace)))

    def _queue_keys(self, names: Sequence[str]) -> list[QueueKeys]:
        return [keys.queue(self._namespace, checked_name(name, name="queue")) for name in names]


# --- between the round trips: pure --------------------------------------------


def _checked(state: str | None, limit: int, offset: int) -> Sequence[State]:
    check_page(limit, offset, of="jobs")
    if state is None:
        return _ORDER
    if not valid(state):
        hint = did_you_mean(shown(state), map(str, State))
        raise ValueError(f"there is no state {shown(state)}{hint}: {', '.join(State)}")
    return (State(state),)


def _segments(states: Sequence[State], queues: Sequence[QueueKeys], counts: Sequence[Counts]) -> list[Segment]:
    return [
        Segment(q, state, getattr(count, state)) for state in states for q, count in zip(queues, counts, strict=True)
    ]


def _peeks(segments: Sequence[Segment], limit: int, offset: int) -> list[Command[Page]]:
    """What to read for one page: the stretch of each segment that lies in it."""
    found: list[Command[Page]] = []
    skip, wanted = offset, limit
    for segment in segments:
        if skip < segment.count and wanted:
            some = min(wanted, segment.count - skip)
            found.append(commands.peek(segment.q, segment.state, offset=skip, limit=some))
            wanted -= some
        skip = max(0, skip - segment.count)
    return found


def _page(segments: Sequence[Segment], pages: Sequence[Page], limit: int, offset: int) -> dict[str, Any]:
    return {
        "data": [_shown(id, fields) for page in pages for id, fields in page.records],
        "total": sum(segment.count for segment in segments),
        "limit": limit,
        "offset": offset,
    }


def _shown(id: str, fields: Mapping[bytes, bytes]) -> dict[str, Any]:
    """A job for a list. A damaged one is shown with what is wrong, and doesn't hide the others."""
    try:
        return JobRecord.from_fields(id, fields).to_dict()
    except BadRecord as error:
        return damaged(id, fields, error)


def _leader(found: Leader) -> dict[str, Any]:
    """A leader as the faces show it."""
    return {
        "node": found.node or None,
        "term": found.term or None,
        "since": rfc3339(found.since_ms) if found.since_ms else None,
        "until": rfc3339(found.until_ms) if found.node else None,
    }


def _page_of_locks(found: HeldLocks, limit: int, offset: int) -> dict[str, Any]:
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


def _with_name(name: str, counts: Counts) -> dict[str, Any]:
    return {"queue": name, **counts._asdict()}


def _is_empty(counts: Counts) -> bool:
    """Whether the queue may be one that never was: only then is it worth a look at the list of queues."""
    return not any(counts)


def _page_of_tasks(
    nodes: Sequence[dict[str, Any]],
    names: Sequence[str],
    told: Sequence[dict[str, str] | None],
    limit: int,
    offset: int,
) -> dict[str, Any]:
    here = names[offset : offset + limit]
    data = [task_shown(name, info, nodes) for name, info in zip(here, told, strict=True)]
    return {"data": data, "total": len(names), "limit": limit, "offset": offset}


def _task(name: str, info: dict[str, str] | None, nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if info is None and name not in (known := known_tasks(nodes)):
        raise UnknownTask(f"no node has known a task {name!r} within the last day{did_you_mean(name, known)}")
    return task_shown(name, info, nodes)


def _nodes(found: Nodes) -> list[dict[str, Any]]:
    return [node_shown(fields, found.now_ms) for fields in found.nodes]
