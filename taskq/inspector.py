"""`Inspector`: lists and counts of jobs and queues, for people and programs that look. It changes nothing.

A list is a page `{data, total, limit, offset}`, read in a few round trips, however much there is. What stands on it is
decided between them, in `listing` and `activity`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taskq import activity, commands, keys, limited, listing
from taskq.asked import check_page, checked_text
from taskq.commands import Command, Counts, HeldLocks
from taskq.connection import AsyncServer, Server, run, run_async, run_many, run_many_async
from taskq.keys import QueueKeys
from taskq.listing import Reading
from taskq.presence import known_tasks
from taskq.settings import checked_name
from taskq.state import State, StateName
from taskq.why import Why, explain, takers


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
            state: one of the eight; None for all, state after state. Available ones come as they would be claimed,
                queue after queue.
            queue: None for all.
            limit: jobs a page, 1 to 1000.
            offset: how many to skip.

        Raises:
            QueueNotFound: nothing was ever enqueued in this queue.
            ValueError: a state or queue that can't be, or a number out of range.
            TypeError: a limit or offset that is no whole number.
        """
        states = listing.states(state, limit, offset)
        chosen = self._queue_keys([queue] if queue is not None else self._names())
        counts = run_many(self._server, [commands.counts(q) for q in chosen])
        if queue is not None and listing.is_empty(counts[0]):
            run(self._server, commands.expect_queue(keys.cluster(self._namespace), queue))
        return self._read(listing.jobs(states, chosen, counts, limit, offset))

    async def ajobs(
        self, *, state: State | StateName | None = None, queue: str | None = None, limit: int = 50, offset: int = 0
    ) -> dict[str, Any]:
        """As `jobs`, awaited."""
        states = listing.states(state, limit, offset)
        chosen = self._queue_keys([queue] if queue is not None else await self._anames())
        counts = await run_many_async(self._aserver, [commands.counts(q) for q in chosen])
        if queue is not None and listing.is_empty(counts[0]):
            await run_async(self._aserver, commands.expect_queue(keys.cluster(self._namespace), queue))
        return await self._aread(listing.jobs(states, chosen, counts, limit, offset))

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
        nodes = self.nodes() if shut.word == "turn" else ()
        return explain(id, shut, nodes, run_many(self._server, takers(self._namespace, id, shut, nodes)))

    async def awhy(self, id: str) -> Why:
        """As `why`, awaited."""
        shut = await run_async(self._aserver, commands.why(keys.of_job(self._namespace, id), id))
        nodes = await self.anodes() if shut.word == "turn" else ()
        return explain(id, shut, nodes, await run_many_async(self._aserver, takers(self._namespace, id, shut, nodes)))

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
        return [listing.queue_shown(name, count) for name, count in zip(names, counts, strict=True)]

    async def aqueues(self) -> list[dict[str, Any]]:
        """As `queues`, awaited."""
        names = await self._anames()
        counts = await run_many_async(self._aserver, [commands.counts(q) for q in self._queue_keys(names)])
        return [listing.queue_shown(name, count) for name, count in zip(names, counts, strict=True)]

    def counts(self, queue: str) -> Counts:
        """How many jobs of a queue are in each state, and whether it is paused.

        Raises:
            QueueNotFound: nothing was ever enqueued in it, and no worker serves it.
        """
        found = run(self._server, commands.counts(self._queue_keys([queue])[0]))
        if listing.is_empty(found):
            run(self._server, commands.expect_queue(keys.cluster(self._namespace), queue))
        return found

    async def acounts(self, queue: str) -> Counts:
        """As `counts`, awaited."""
        found = await run_async(self._aserver, commands.counts(self._queue_keys([queue])[0]))
        if listing.is_empty(found):
            await run_async(self._aserver, commands.expect_queue(keys.cluster(self._namespace), queue))
        return found

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes that live, by id, each as `app.nodes` shows it."""
        return listing.nodes(run(self._server, commands.nodes(keys.cluster(self._namespace))))

    async def anodes(self) -> list[dict[str, Any]]:
        """As `nodes`, awaited."""
        return listing.nodes(await run_async(self._aserver, commands.nodes(keys.cluster(self._namespace))))

    def tasks(self, *, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """A page of the tasks that living nodes know, by name.

        Each is `{name, queue, other_queue, executor, parameters, options, settings, keys, last_seen, nodes, paused,
        said}`: `options` are those of its jobs, `settings` those that stay in the workers' code, `nodes` the ids of
        those that serve it, `said` what operators say of it, a queue each.

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
        page = listing.page_of_tasks(nodes, names, run_many(self._server, asked), limit, offset)
        limited.tell(page["data"], run_many(self._server, limited.reads(self._namespace, page["data"])))
        return page

    async def atasks(self, *, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """As `tasks`, awaited."""
        check_page(limit, offset, of="tasks")
        nodes = await self.anodes()
        names = known_tasks(nodes)
        asked = [commands.task_info(keys.cluster(self._namespace), name) for name in names[offset : offset + limit]]
        page = listing.page_of_tasks(nodes, names, await run_many_async(self._aserver, asked), limit, offset)
        limited.tell(page["data"], await run_many_async(self._aserver, limited.reads(self._namespace, page["data"])))
        return page

    def task(self, name: str) -> dict[str, Any]:
        """A task that nodes told of within the last day, as `tasks` shows it.

        Raises:
            UnknownTask: none did; the nearest name is told.
            TypeError: the name is no text.
        """
        info = run(self._server, self._told_of(name))
        task = listing.task(name, info, self.nodes())
        limited.tell([task], run_many(self._server, limited.reads(self._namespace, [task])))
        return task

    async def atask(self, name: str) -> dict[str, Any]:
        """As `task`, awaited."""
        info = await run_async(self._aserver, self._told_of(name))
        task = listing.task(name, info, await self.anodes())
        limited.tell([task], await run_many_async(self._aserver, limited.reads(self._namespace, [task])))
        return task

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
        return listing.page_of_locks(found, limit, offset)

    async def alocks(self, *, name: str | None = None, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """As `locks`, awaited."""
        found = await run_async(self._aserver, self._locks(name, limit, offset))
        return listing.page_of_locks(found, limit, offset)

    def leader(self) -> dict[str, Any]:
        """Who leads the nodes: `{node, term, since, until}`; instants as RFC 3339. `node` and `until` are None while
        nobody leads, `term` and `since` then tell of the last leader, or are None too.

        Raises:
            Unavailable: Redis gave no answer in time.
        """
        return listing.leader(run(self._server, commands.leader(keys.cluster(self._namespace))))

    async def aleader(self) -> dict[str, Any]:
        """As `leader`, awaited."""
        return listing.leader(await run_async(self._aserver, commands.leader(keys.cluster(self._namespace))))

    def _read(self, reading: Reading[dict[str, Any]]) -> dict[str, Any]:
        try:
            asked = next(reading)
            while True:
                asked = reading.send(run_many(self._server, asked))
        except StopIteration as end:
            page: dict[str, Any] = end.value
            return page

    async def _aread(self, reading: Reading[dict[str, Any]]) -> dict[str, Any]:
        try:
            asked = next(reading)
            while True:
                asked = reading.send(await run_many_async(self._aserver, asked))
        except StopIteration as end:
            page: dict[str, Any] = end.value
            return page

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
