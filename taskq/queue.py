"""`app.queue("email")`: a queue to pause, resume, limit, empty and count. Making one does no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from taskq.asked import spelled
from taskq.client import Reservation
from taskq.client.admission import DEFAULT_TTL, checked_call
from taskq.client.limiting import checked_weights
from taskq.client.sweep import CLEARED
from taskq.commands import WAITING, Counts, NewJob
from taskq.handle import Job
from taskq.home import Home
from taskq.many import bound_handle
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

    def pause(self, *, key: object = None, task: str | None = None) -> bool:
        """Stop handing out its jobs, everywhere, from the next claim on; whether that changed anything.

        Args:
            key: only those of this fairness key (`fair=`).
            task: only those of this task.

        Raises:
            ValueError: a key that names nothing, or both.
            UnknownTask: neither the queue nor a node has heard of the task; the nearest name is told.
        """
        return self._home.client.pause(self.name, key=key, task=task)

    async def apause(self, *, key: object = None, task: str | None = None) -> bool:
        """As `pause`, awaited."""
        return await self._home.aclient.pause(self.name, key=key, task=task)

    def resume(self, *, key: object = None, task: str | None = None) -> bool:
        """Hand them out again; whether that changed anything. Arguments as for `pause`."""
        return self._home.client.resume(self.name, key=key, task=task)

    async def aresume(self, *, key: object = None, task: str | None = None) -> bool:
        """As `resume`, awaited."""
        return await self._home.aclient.resume(self.name, key=key, task=task)

    # --- limits

    @spelled
    def limit(
        self,
        name: str | None = None,
        *,
        concurrency: int | None = None,
        rate: str | None = None,
        burst: int | None = None,
        key: object = None,
        task: str | None = None,
        reset: bool = False,
    ) -> bool:
        """Change a limit while programs run, at once and on every node; whether that changed anything.

        It beats what code declares until it is reset. Lowering stops nobody: none starts until enough have left.

        Args:
            name: of a `Concurrency` or `Rate`; without it, the queue as a whole: all its jobs together.
            concurrency: how many may run at once, from 0.
            rate: how many may start in a period, such as "100/min".
            burst: how many may start at once after a quiet time; with `rate`.
            key: only for this value of the limit's `by`; it beats the limit's own numbers.
            task: instead of a name: all jobs of this task, whatever they were enqueued with. Those that run
                already don't count.
            reset: take back what was said here: what code declares holds again. It stands alone; keys of a limit
                keep their numbers until each is reset with its `key`.

        Raises:
            ValueError: numbers or names that can't be, or nothing to change.
            QueueNotFound: nothing was ever enqueued in the queue.
            UnknownTask: neither the queue nor a node has heard of the task; the nearest name is told.
        """
        return self._home.client.limit(
            self.name, name, concurrency=concurrency, rate=rate, burst=burst, key=key, task=task, reset=reset
        )

    @spelled
    async def alimit(
        self,
        name: str | None = None,
        *,
        concurrency: int | None = None,
        rate: str | None = None,
        burst: int | None = None,
        key: object = None,
        task: str | None = None,
        reset: bool = False,
    ) -> bool:
        """As `limit`, awaited."""
        return await self._home.aclient.limit(
            self.name, name, concurrency=concurrency, rate=rate, burst=burst, key=key, task=task, reset=reset
        )

    @spelled
    def block(self, name: str | None, duration: Duration, *, key: object = None) -> bool:
        """Let nobody start under a limit for a while, as after a 429; a running job may call it. 0 opens it again.

        Args:
            name: of the limit; None with a `key` blocks a fairness key, None alone the queue.
            duration: from now on.
            key: only this value of the limit's `by`.

        Raises:
            ValueError: a name, key or duration that can't be.
        """
        return self._home.client.block(self.name, name, duration, key=key)

    @spelled
    async def ablock(self, name: str | None, duration: Duration, *, key: object = None) -> bool:
        """As `block`, awaited."""
        return await self._home.aclient.block(self.name, name, duration, key=key)

    def limits(self) -> list[dict[str, Any]]:
        """What is said of its limits, tasks and fairness keys, and how it stands now.

        Each is `{kind, name, key, concurrency, rate, burst, declared, overridden, paused, blocked_until, running,
        waiting_lanes, free, age}`: the numbers that hold, those that code declares, jobs that run under it, lanes that
        wait for it, and how many more may start now (None: as many as like). Keys of a limit without numbers of their
        own are listed while somebody waits for them.
        """
        return self._home.client.limits(self.name)

    async def alimits(self) -> list[dict[str, Any]]:
        """As `limits`, awaited."""
        return await self._home.aclient.limits(self.name)

    def weights(self, weights: Mapping[Any, int | None] | None = None, /, **more: int | None) -> dict[str, int]:
        """How many turns fairness keys get for one of another's; all that were set, after setting these.

        Args:
            weights: fairness key → 1 to 240; None takes one away, and it counts as 1.
            more: the same, for keys that are names: `weights(acme=3)`.

        Raises:
            ValueError: a weight or key that can't be.
        """
        return self._home.client.weigh(self.name, checked_weights(weights, more))

    async def aweights(self, weights: Mapping[Any, int | None] | None = None, /, **more: int | None) -> dict[str, int]:
        """As `weights`, awaited."""
        return await self._home.aclient.weigh(self.name, checked_weights(weights, more))

    def age(self, duration: Duration) -> bool:
        """Let a waiting lane count as one priority higher for each such time that it has waited; 0: none does.
        Whether that changed anything.

        Raises:
            ValueError: no duration.
            QueueNotFound: nothing was ever enqueued in the queue.
        """
        return self._home.client.age(self.name, duration)

    async def aage(self, duration: Duration) -> bool:
        """As `age`, awaited."""
        return await self._home.aclient.age(self.name, duration)

    # --- its jobs

    def purge(self, *, states: Sequence[str] = WAITING) -> int:
        """Cancel its waiting jobs (reason `purged`), all or those of some states; how many. Running ones go on.

        Raises:
            TypeError: no list of states.
            ValueError: a state in which no job waits.
        """
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

        Raises:
            TypeError: no list of states, or a limit that is no whole number.
            ValueError: a state in which no job has ended, or a bad duration or limit.
        """
        return self._home.client.clear(self.name, states=states, older_than=older_than, limit=limit)

    async def aclear(
        self, *, states: Sequence[str] = CLEARED, older_than: Duration = 0, limit: int | None = None
    ) -> int:
        """As `clear`, awaited."""
        return await self._home.aclient.clear(self.name, states=states, older_than=older_than, limit=limit)

    def counts(self) -> Counts:
        """How many jobs are in each state, and whether the queue is paused.

        Raises:
            QueueNotFound: nothing was ever enqueued in the queue, and no worker serves it.
        """
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

    @spelled
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

    @spelled
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
        job: NewJob = checked_call(call).sealed()
        return bound_handle(self._home, job, self._home.client.bind(token, job))

    async def abind(self, token: str, call: Call[R]) -> Job[R]:
        """As `bind`, awaited."""
        job: NewJob = await checked_call(call).asealed()
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

    release, arelease = release_reservation, arelease_reservation

    def finalize(self, key: object) -> bool:
        """Free the key, and the slot, that an attempt has left behind: to be called when the attempt is over, by
        whoever notices, to be sure. A job that ends frees both itself.

        It is by key, for who notices may not have the token. A reservation that no job was bound to goes, for nothing
        of it lives yet: its token is AdmissionNotFound from then on. A living job is left alone: cancel that.

        Args:
            key: as given to `reserve`; an empty one is nobody's.

        Returns:
            True: something was left behind (a reservation without a job, or whose job has ended or is gone), and is
            free. False: nobody holds the key, or a living job does: it waits, or is in its first attempt.

        Raises:
            TypeError, ValueError: a key that can't be.
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

    cleanup, acleanup = cleanup_reservations, acleanup_reservations

    def reservations(self, *, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """A page `{data, total, limit, offset}` of the reservations that hold a slot, those that aren't bound first.

        Each is `{token, key, state, job, created_at, expires_at}`: `state` is `reserved` until it is bound, then that
        of its job; `expires_at` tells when it lapses, and is None once it is bound.

        Args:
            limit: reservations a page, 1 to 1000.
            offset: how many to skip.
        """
        return self._home.client.reservations(self.name, limit=limit, offset=offset)

    async def areservations(self, *, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """As `reservations`, awaited."""
        return await self._home.aclient.reservations(self.name, limit=limit, offset=offset)
