"""`AsyncClient`: the operations for coroutines. The twin of `synchronous.py`; a test compares their methods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from taskq import commands, keys
from taskq.asked import checked_ids, spelled
from taskq.client import admission, batch, limiting, operations, sweep
from taskq.client.admission import DEFAULT_TTL, Reservation, Sealable
from taskq.client.ending import ended, look_again, still_waits, until
from taskq.client.executing_async import AsyncExecuting
from taskq.commands import Bound, Command, NewJob
from taskq.connection import AsyncServer, connect_async, run_async, run_many_async
from taskq.errors import TaskQError, Unavailable
from taskq.keys import QueueKeys
from taskq.record import JobRecord
from taskq.settings import Settings, resolve
from taskq.units import Duration


class AsyncClient(AsyncExecuting):
    """Adds, reads and changes jobs and queues by their names; each call is awaited. Usable from several event loops.

    Args:
        url: which Redis; default as for TaskQ.
        namespace: as for TaskQ.
        deadline: the longest a call takes before it raises Unavailable; default 5 s.
        settings: all of it at once, instead.

    `async with AsyncClient(…) as client:` closes its connections at the end of the block.
    """

    @spelled
    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str | None = None,
        deadline: Duration | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.settings = settings or resolve(url=url, namespace=namespace, deadline=deadline)
        self.server: AsyncServer = connect_async(self.settings)
        self._namespace = self.settings.namespace
        self._known: dict[str, float] = {}

    # --- adding

    async def add(self, q: QueueKeys, job: NewJob, *, exists: str = "existing") -> str:
        """Adds one job: `available`, `scheduled` or `existing` (its id was taken; that job is untouched), and where its
        unique key is another job's, `existing <id>` or `replaced <id>`. Programs use `task.enqueue`, which builds it.

        With `exists="raise"` a taken id is JobAlreadyExists.
        """
        if q.name not in self._known:
            await self.register(q.name)
        word = (await run_async(self.server, commands.enqueue(q, (job,), exists=exists)))[0]
        await self._remind(q.name)
        return word

    async def add_many(self, jobs: Sequence[NewJob], *, exists: str = "existing") -> list[str]:
        """Adds jobs in calls of at most 250, a word for each; `batch.Interrupted` if one of several calls fails."""
        calls = batch.calls(self._namespace, jobs)
        for call in calls:
            if call.q.name not in self._known:
                await self.register(call.q.name)
        progress = batch.Progress(len(jobs), len(calls))
        for at in range(0, len(calls), batch.CALLS_AT_ONCE):
            some = calls[at : at + batch.CALLS_AT_ONCE]
            error = await self._add_calls(some, [batch.command(call, jobs, exists) for call in some], progress)
            if error is not None:
                progress.interrupt(error)
        for call in calls:
            await self._remind(call.q.name)
        return progress.answer()

    async def _add_calls(
        self, calls: list[batch.Call], built: list[Command[list[str]]], progress: batch.Progress
    ) -> TaskQError | None:
        try:
            return progress.take(
                calls, await run_many_async(self.server, [batch.told_apart(command) for command in built])
            )
        except Unavailable as error:
            return error
        except TaskQError:
            pass  # one was refused by the server, and took the others' answers with it: ask each again
        for command, call in zip(built, calls, strict=True):
            try:
                words = await run_async(self.server, command)
            except TaskQError as error:
                return error
            progress.take([call], [words])
        return None

    # --- jobs

    async def job(self, id: str) -> JobRecord:
        """One record. JobNotFound if there is none."""
        return await run_async(self.server, operations.record(self._namespace, id))

    async def jobs(self, ids: Iterable[str]) -> list[JobRecord | None]:
        """Records in the order asked, None where there is no such job. TypeError for what is no list of ids."""
        return await self._all(operations.records(self._namespace, checked_ids(ids)))

    async def wait(self, id: str, *, timeout: Duration | None = None) -> JobRecord | None:
        """The record once the job has ended; None if there is none (any more). ResultTimeout after `timeout`."""
        end = until(timeout)
        record = await self._look(operations.peek(self._namespace, id), id, timeout, end)
        if ended(record):
            return record
        still_waits(id, record, timeout, end)
        async with self.server.listen(keys.of_job(self._namespace, id).done(id)) as bell:
            while True:
                record = await self._look(operations.wait(self._namespace, id), id, timeout, end)
                if ended(record):
                    return record
                await bell.wait(still_waits(id, record, timeout, end))

    async def _look(
        self, command: Command[JobRecord | None], id: str, timeout: Duration | None, end: float | None
    ) -> JobRecord | None:
        while True:
            try:
                return await run_async(self.server, command)
            except Unavailable as error:
                pause_s = look_again(id, error, timeout, end)
            await asyncio.sleep(pause_s)

    async def cancel(self, id: str, *, running: bool = True, force: bool = False) -> str:
        """Cancels one job: `removed` (it waited), `requested` (it runs, and its worker is asked) or `too_late` (it has
        ended). JobNotFound if there is none, TypeError for a flag that is neither True nor False.

        Args:
            id: the full id.
            running: whether a running job may be asked to stop; False: InvalidTransition.
            force: its worker may be replaced to stop what can't be interrupted.
        """
        return await run_async(self.server, operations.cancel(self._namespace, id, running=running, force=force))

    async def cancel_many(
        self, ids: Iterable[str], *, running: bool = True, force: bool = False, partial: bool = False
    ) -> list[str]:
        """Cancels jobs, all or nothing for each 250 of a queue, or with `partial` a word for each. TypeError for
        what is no list of ids, or no flag.
        """
        return await self._all(
            operations.cancel_many(self._namespace, checked_ids(ids), running=running, force=force, partial=partial)
        )

    async def retry(self, id: str) -> str:
        """Runs one job again as if new: attempt 0, errors and result cleared. Its new state;
        JobNotFound if there is none, InvalidTransition if it waits or runs.
        """
        return await run_async(self.server, operations.retry(self._namespace, id))

    async def retry_many(self, ids: Iterable[str], *, partial: bool = False) -> list[str]:
        """Runs jobs again, all or nothing for each 250 of a queue, or with `partial` a word for each. TypeError for
        what is no list of ids, or no flag.
        """
        return await self._all(operations.retry_many(self._namespace, checked_ids(ids), partial=partial))

    async def reprioritise(self, id: str, priority: int) -> str:
        """Gives one job another priority, −512 … 511, higher first; the state it is in. JobNotFound if there is none,
        InvalidTransition if it has ended.
        """
        return await run_async(self.server, operations.reprioritise(self._namespace, id, priority))

    # --- queues: each raises QueueNotFound for one in which nothing was ever enqueued

    async def pause(self, queue: str, *, key: object = None, task: str | None = None, any_task: bool = False) -> bool:
        """Stops handing out the queue's jobs, everywhere, from the next claim on; whether that changed anything.

        Args:
            queue: which.
            key: only those of this fairness key.
            task: only those of this task. UnknownTask if neither the queue nor a node has heard of it.
            any_task: also of a task that nobody has heard of, as before its first worker starts.
        """
        if key is None and task is None:
            return await run_async(self.server, commands.pause(await self._there(queue)))
        entry = limiting.part_of(key, task)
        return await self._change(queue, entry, {"paused": 1}, None if any_task else task)

    async def resume(self, queue: str, *, key: object = None, task: str | None = None) -> bool:
        """Hands out the queue's jobs again, or those of a fairness key or a task; whether that changed anything."""
        if key is None and task is None:
            return await run_async(self.server, commands.resume(await self._there(queue)))
        return await self._change(queue, limiting.part_of(key, task), {"paused": ""})

    async def purge(self, queue: str, *, states: Sequence[str] = commands.WAITING) -> int:
        """Cancels the jobs that wait in these states; how many. What is added meanwhile may stay."""
        jobs = sweep.purge(self._namespace, queue, states)
        await self._there(queue)
        count: int = await self._drive(jobs)
        return count

    async def clear(
        self,
        queue: str,
        *,
        states: Sequence[str] = sweep.CLEARED,
        older_than: Duration = 0,
        limit: int | None = None,
    ) -> int:
        """Deletes ended jobs of these states for good, by default the failed and the cancelled; how many.

        With `limit` at most so many: state after state as given, the longest ended of each first.
        """
        jobs = sweep.clear(self._namespace, queue, states, older_than, limit)
        await self._there(queue)
        count: int = await self._drive(jobs)
        return count

    async def limit(
        self,
        queue: str,
        name: str | None = None,
        *,
        concurrency: int | None = None,
        rate: str | None = None,
        burst: int | None = None,
        key: object = None,
        task: str | None = None,
        reset: bool = False,
    ) -> bool:
        """Changes a limit of a queue while programs run; whether that changed anything. It beats what code declares.

        Args:
            queue: whose.
            name: of a `Concurrency` or `Rate`; without it, the queue as a whole.
            concurrency: how many may run at once, from 0.
            rate: how many may start in a period, such as "100/min".
            burst: how many may start at once after a quiet time; with `rate`.
            key: only for this value of the limit's `by`.
            task: instead of a name: all jobs of this task. UnknownTask as for `pause`.
            reset: what code declares holds again.
        """
        entry, words = limiting.asked(
            name, key=key, task=task, concurrency=concurrency, rate=rate, burst=burst, reset=reset
        )
        return await self._change(queue, entry, words, None if reset else task)

    async def block(self, queue: str, name: str | None, duration: Duration, *, key: object = None) -> bool:
        """Lets nobody start under a limit for a while, as after a 429; 0 opens it again. Whether that changed anything.

        Args:
            queue: whose.
            name: of the limit; None with a `key` blocks a fairness key, None alone the queue.
            duration: from now on.
            key: only this value of the limit's `by`.
        """
        words = limiting.block_words(duration)
        return await self._change(queue, limiting.entry_of(name, key=key), words)

    async def age(self, queue: str, duration: Duration) -> bool:
        """Lets a waiting lane count as one priority higher for each such time that it has waited; 0: none does. Whether
        that changed anything.
        """
        return await self._change(queue, limiting.entry_of(), limiting.words_of(age=duration))

    async def limits(self, queue: str) -> list[dict[str, Any]]:
        """What is said of all of them, and how it stands now."""
        rows: list[dict[str, Any]] = await self._drive(limiting.look(await self._there(queue)))
        return rows

    async def weigh(self, queue: str, weights: Mapping[Any, int | None]) -> dict[str, int]:
        """Sets weights of fairness keys; None takes one away. All there are then. ValueError for what are none."""
        weights = limiting.checked_weights(weights)
        found: dict[str, int] = await self._drive(limiting.weigh(await self._there(queue), weights))
        return found

    # --- reservations: slots taken before there is a job

    async def reserve(
        self, queue: str, key: object, *, max_concurrency: int, outside_occupancy: int = 0, ttl: Duration = DEFAULT_TTL
    ) -> Reservation:
        """Takes a slot of the queue's capacity for a key, before there is a job; true if it was granted. See
        `Queue.reserve` for what is counted.

        Args:
            queue: whose capacity.
            key: what the slot is for: text, a number, a UUID ..., or a tuple of such.
            max_concurrency: how many slots there are, from 1.
            outside_occupancy: how many of them are taken by what the queue doesn't know of.
            ttl: how long it holds until it is bound; 30 s by default, a day at most.
        """
        command = admission.reserve(self._namespace, queue, key, slots=(max_concurrency, outside_occupancy), ttl=ttl)
        if queue not in self._known:
            await self.register(queue)
        return await run_async(self.server, command)

    async def bind(self, token: str, call: Sealable | NewJob) -> Bound:
        """Makes the one job of a reservation: a word, as `add` has it, and the job's id. `Queue.bind` gives its handle,
        and says what is raised.

        Args:
            token: of the reservation.
            call: as a task gives it: `app.by_name("crm.sync", queue="crm").call("acme")`.
        """
        job = await admission.checked_call(call).asealed() if not isinstance(call, NewJob) else call
        return await run_async(self.server, admission.bind(self._namespace, token, job))

    async def release_reservation(self, token: str) -> None:
        """Gives a reservation back: one that isn't bound, or whose job has ended. AdmissionNotFound if there is none
        (any more), AdmissionConflict if its job lives.

        Here `release` is what gives a claim back, so this one has the longer name; `Queue.release` is the same.
        """
        await run_async(self.server, admission.release(self._namespace, token))

    async def finalize(self, queue: str, key: object) -> bool:
        """Frees a key and its slot when an attempt is over, unless a living job holds them; whether there was something
        to free. See `Queue.finalize`.
        """
        command = admission.finalize(self._namespace, queue, key)
        return command is not None and await run_async(self.server, command)

    async def cleanup_reservations(self, queue: str, *, older_than: Duration) -> int:
        """Takes back reservations that hold a slot for nothing; how many. See `Queue.cleanup_reservations`."""
        jobs = admission.cleanup(self._namespace, queue, older_than)
        await self._there(queue)
        done: int = await self._drive(jobs)
        return done

    cleanup = cleanup_reservations

    async def reservations(self, queue: str, *, limit: int = 50, offset: int = 0) -> dict[str, Any]:
        """A page `{data, total, limit, offset}` of the reservations of a queue, those that aren't bound first. See
        `Queue.reservations`.

        Args:
            queue: whose.
            limit: reservations a page, 1 to 1000.
            offset: how many to skip.
        """
        page = await run_async(self.server, admission.reservations(self._namespace, queue, limit, offset))
        if not page["total"]:
            await self._there(queue)
        return page

    # --- the rest

    async def release_lock(self, name: str, *, fence: int) -> bool:
        """Takes a lock from whoever holds it under this fence; whether that one did. Its holder is told LockLost."""
        return await run_async(self.server, operations.release_lock(self._namespace, name, fence))

    async def task_info(self, task: str) -> dict[str, str] | None:
        """What the nodes say of a task, by word; None where none has named it for a day."""
        return await run_async(self.server, operations.task_info(self._namespace, task))

    async def ping(self) -> bool:
        """Whether the server answers; Unavailable if it doesn't within the deadline."""
        return await self.server.ping()

    async def close(self) -> None:
        """Closes this loop's connections; a later call opens new ones."""
        await self.server.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _all(self, operation: operations.Operation[operations.T]) -> operations.T:
        replies: list[Any] = []
        for some in operation.pipelines():
            replies += await run_many_async(self.server, some)
        return operation.fold(replies)

    async def _change(self, queue: str, entry: str, words: Mapping[str, Any], task: str | None = None) -> bool:
        q = await self._there(queue)
        changed: bool = await self._drive(limiting.change(q, entry, words, task))
        return changed

    async def _drive(self, steps: limiting.Steps) -> Any:
        command = next(steps)
        while True:
            answer = await run_async(self.server, command)
            try:
                command = steps.send(answer)
            except StopIteration as end:
                return end.value
