"""`app.queue("email")`: a queue to pause, resume, empty and count. Making one does no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from taskq import commands, keys
from taskq.client import Reservation
from taskq.client.admission import DEFAULT_TTL, reservations
from taskq.client.sweep import CLEARED
from taskq.commands import WAITING, Counts
from taskq.connection import run, run_async
from taskq.handle import Job
from taskq.home import Home
from taskq.many import bound_handle, seal
from taskq.settings import checked_name
from taskq.state import State, StateName
from taskq.task import Call
from taskq.units import Duration

R = TypeVar("R")


class Queue:
    """A queue of the app, by its name. ValueError if it can be no queue's name.

    Its methods raise QueueNotFound if nothing was ever enqueued in it and no worker serves it: a mistyped name.
    """

    __slots__ = ("_home", "name")

    def __init__(self, home: Home, name: str) -> None:
        self._home = home
        self.name = checked_name(name, name="queue")

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    def pause(self) -> bool:
        """Stop handing out its jobs, everywhere, from the next claim on; whether that changed anything."""
        return self._home.client.pause(self.name)

    async def apause(self) -> bool:
        """As `pause`, awaited."""
        return await self._home.aclient.pause(self.name)

    def resume(self) -> bool:
        """Hand them out again; whether that changed anything."""
        return self._home.client.resume(self.name)

    async def aresume(self) -> bool:
        """As `resume`, awaited."""
        return await self._home.aclient.resume(self.name)

    def purge(self, *, states: Sequence[str] = WAITING) -> int:
        """Cancel its waiting jobs (reason `purged`), all or those of some states; how many. Running ones go on."""
        return self._home.client.purge(self.name, states=states)

    async def apurge(self, *, states: Sequence[str] = WAITING) -> int:
        """As `purge`, awaited."""
        return await self._home.aclient.purge(self.name, states=states)

    def clear(self, *, states: Sequence[str] = CLEARED, older_than: Duration = 0, limit: int | None = None) -> int:
        """Delete its ended jobs for good; how many.

        Args:
            states: which; the failed and the cancelled unless it says otherwise.
            older_than: only those that ended at least so long ago.
            limit: at most so many, state after state, the longest ended of each first; None for all.
        """
        return self._home.client.clear(self.name, states=states, older_than=older_than, limit=limit)

    async def aclear(
        self, *, states: Sequence[str] = CLEARED, older_than: Duration = 0, limit: int | None = None
    ) -> int:
        """As `clear`, awaited."""
        return await self._home.aclient.clear(self.name, states=states, older_than=older_than, limit=limit)

    def counts(self) -> Counts:
        """How many jobs are in each state, and whether the queue is paused."""
        return self._home.inspector.counts(self.name)

    async def acounts(self) -> Counts:
        """As `counts`, awaited."""
        return await self._home.inspector.acounts(self.name)

    def jobs(self, state: State | StateName | None = None, *, limit: int = 50, offset: int = 0) -> Mapping[str, Any]:
        """A page of its jobs: `{data, total, limit, offset}`. See `Inspector.jobs`."""
        return self._home.inspector.jobs(state=state, queue=self.name, limit=limit, offset=offset)

    async def ajobs(
        self, state: State | StateName | None = None, *, limit: int = 50, offset: int = 0
    ) -> Mapping[str, Any]:
        """As `jobs`, awaited."""
        return await self._home.inspector.ajobs(state=state, queue=self.name, limit=limit, offset=offset)

    # --- admission: a slot of the queue, taken before there is a job

    def reserve(
        self, key: object, *, max_concurrency: int, outside_occupancy: int = 0, ttl: Duration = DEFAULT_TTL
    ) -> Reservation:
        """Take a slot of its capacity for a key, before there is a job; true if it was granted.

        However many ask at once, no more slots are given than there are, and a key is given to one. Taken are: what
        runs, what is reserved, and jobs of reservations that haven't begun.

        Args:
            key: what the slot is for: text, a number, a UUID ..., or a tuple of such.
            max_concurrency: how many slots there are, from 1.
            outside_occupancy: how many of them are taken by what the queue doesn't know of.
            ttl: how long it holds until it is bound; 30 s by default, a day at most.

        Raises:
            ValueError, TypeError: an argument that can't be.
            Unavailable: the server gave no answer in time.
        """
        return self._home.client.reserve(
            self.name, key, max_concurrency=max_concurrency, outside_occupancy=outside_occupancy, ttl=ttl
        )

    async def areserve(
        self, key: object, *, max_concurrency: int, outside_occupancy: int = 0, ttl: Duration = DEFAULT_TTL
    ) -> Reservation:
        """As `reserve`, awaited."""
        return await self._home.aclient.reserve(
            self.name, key, max_concurrency=max_concurrency, outside_occupancy=outside_occupancy, ttl=ttl
        )

    def bind(self, token: str, call: Call[R]) -> Job[R]:
        """Make the one job of a reservation. It starts before all others, in the slot that is reserved, though the
        queue is full; its first retry takes a slot like any job.

        The same token and call again give the same job, also after it has ended. Where a job with the call's own id or
        unique key exists, that one is given, with `created=False`, and the slot is free.

        Raises:
            AdmissionNotFound: there is no such reservation, or it lapsed.
            AdmissionConflict: it was bound to another call.
            ValueError: it is a slot of another queue than the call goes to.
            DuplicateJob, ServerFull, Unavailable ...: as enqueueing; the reservation stays as it was.
        """
        job = seal(call, call.task.plan())
        return bound_handle(self._home, job, self._home.client.bind(token, job))

    async def abind(self, token: str, call: Call[R]) -> Job[R]:
        """As `bind`, awaited."""
        job = seal(call, await call.task.aplan())
        return bound_handle(self._home, job, await self._home.aclient.bind(token, job))

    def release_reservation(self, token: str) -> None:
        """Give a reservation back: one that isn't bound, or whose job has ended.

        Raises:
            AdmissionNotFound: there is no such reservation, it lapsed, or was released before.
            AdmissionConflict: it is bound, and its job lives: cancel that.
        """
        self._home.client.release_reservation(token)

    async def arelease_reservation(self, token: str) -> None:
        """As `release_reservation`, awaited."""
        await self._home.aclient.release_reservation(token)

    def finalize(self, key: object) -> bool:
        """Free the key, and the slot, that an attempt has left behind; whether there was something to free. A key that
        nobody holds, an empty one, and one that is held by what lives are left alone.
        """
        return self._home.client.finalize(self.name, key)

    async def afinalize(self, key: object) -> bool:
        """As `finalize`, awaited."""
        return await self._home.aclient.finalize(self.name, key)

    def cleanup_reservations(self, *, older_than: Duration) -> int:
        """Take back reservations that hold a slot for nothing; how many. The nodes do so too, now and then.

        Args:
            older_than: those that were made so long ago and aren't bound go though they haven't lapsed. One that is
                bound goes when nothing tells that its job lives: it neither waits nor has its first lease.
        """
        return self._home.client.cleanup_reservations(self.name, older_than=older_than)

    async def acleanup_reservations(self, *, older_than: Duration) -> int:
        """As `cleanup_reservations`, awaited."""
        return await self._home.aclient.cleanup_reservations(self.name, older_than=older_than)

    def reservations(self, *, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """A page `{data, total, limit, offset}` of the reservations that hold a slot, those that aren't bound first.

        Each is `{token, key, state, job, created_at, expires_at}`: `state` is `reserved` until it is bound, then that
        of its job; `expires_at` tells when it lapses, and is None once it is bound.

        Args:
            limit: reservations a page, 1 to 1000.
            offset: how many to skip.
        """
        client, namespace = self._home.client, self._home.settings.namespace
        page = run(client.server, reservations(namespace, self.name, limit, offset))
        if not page["total"]:
            run(client.server, commands.expect_queue(keys.cluster(namespace), self.name))
        return page

    async def areservations(self, *, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """As `reservations`, awaited."""
        client, namespace = self._home.aclient, self._home.settings.namespace
        page = await run_async(client.server, reservations(namespace, self.name, limit, offset))
        if not page["total"]:
            await run_async(client.server, commands.expect_queue(keys.cluster(namespace), self.name))
        return page
