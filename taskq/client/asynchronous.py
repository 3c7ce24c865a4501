"""`AsyncClient`: the operations for coroutines. The twin of `synchronous.py`; a test compares their methods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, cast

from taskq import commands, keys
from taskq.client import admission, batch, limiting, operations, sweep
from taskq.client.admission import DEFAULT_TTL, Reservation
from taskq.client.ending import ended, look_again, still_waits, until
from taskq.client.executing_async import AsyncExecuting
from taskq.commands import Bound, Changed, Command, NewJob
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
        """Records in the order asked, None where there is no such job."""
        return await self._all(operations.records(self._namespace, list(ids)))

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
        ended). JobNotFound if there is none.

        Args:
            id: the full id.
            running: whether a running job may be asked to stop; False: InvalidTransition.
            force: its worker may be replaced to stop what can't be interrupted.
        """
        return await run_async(self.server, operations.cancel(self._namespace, id, running=running, force=force))

    async def cancel_many(
        self, ids: Iterable[str], *, running: bool = True, force: bool = False, partial: bool = False
    ) -> list[str]:
        """Cancels jobs, all or nothing for each 250 of a queue, or with `partial` a word for each."""
        return await self._all(
            operations.cancel_many(self._namespace, list(ids), running=running, force=force, partial=partial)
        )

    async def retry(self, id: str) -> str:
        """Runs one job again as if new: attempt 0, errors and result cleared. Its new state;
        JobNotFound if there is none, InvalidTransition if it waits or runs.
        """
        return await run_async(self.server, operations.retry(self._namespace, id))

    async def retry_many(self, ids: Iterable[str], *, partial: bool = False) -> list[str]:
        """Runs jobs again, all or nothing for each 250 of a queue, or with `partial` a word for each."""
        return await self._all(operations.retry_many(self._namespace, list(ids), partial=partial))

    async def reprioritise(self, id: str, priority: int) -> str:
        """Gives one job another priority, −512 … 511, higher first; the state it is in. JobNotFound if there is none,
        InvalidTransition if it has ended.
        """
        return await run_async(self.server, operations.reprioritise(self._namespace, id, priority))

    # --- queues: each raises QueueNotFound for one in which nothing was ever enqueued

    async def pause(self, queue: str) -> bool:
        """Stops handing out the queue's jobs; whether that changed anything."""
        return await run_async(self.server, commands.pause(await self._there(queue)))

    async def resume(self, queue: str) -> bool:
        """Hands them out again; whether that changed anything."""
        return await run_async(self.server, commands.resume(await self._there(queue)))

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

    async def limit(self, queue: str, entry: str, words: Mapping[str, Any]) -> Changed:
        """Says something of a limit, a task, a fairness key or the queue as a whole. Programs use `app.queue(q).limit`,
        `.block`, `.pause`, which build `entry` and `words`.
        """
        return cast("Changed", await self._drive(limiting.change(await self._there(queue), entry, words)))

    async def limits(self, queue: str) -> list[dict[str, Any]]:
        """What is said of all of them, and how it stands now."""
        rows: list[dict[str, Any]] = await self._drive(limiting.look(await self._there(queue)))
        return rows

    async def weigh(self, queue: str, weights: Mapping[Any, int | None]) -> dict[str, int]:
        """Sets weights of fairness keys; None takes one away. All there are then."""
        found: dict[str, int] = await self._drive(limiting.weigh(await self._there(queue), weights))
        return found

    # --- reservations: slots taken before there is a job

    async def reserve(
        self, queue: str, key: object, *, max_concurrency: int, outside_occupancy: int = 0, ttl: Duration = DEFAULT_TTL
    ) -> Reservation:
        """Takes a slot of the queue's capacity for a key, before there is a job. See `Queue.reserve`."""
        command = admission.reserve(self._namespace, queue, key, slots=(max_concurrency, outside_occupancy), ttl=ttl)
        if queue not in self._known:
            await self.register(queue)
        return await run_async(self.server, command)

    async def bind(self, token: str, job: NewJob) -> Bound:
        """Makes the one job of a reservation: a word, as `add` has it, and the job's id. It raises what `Queue.bind`
        does, which builds the job.
        """
        return await run_async(self.server, admission.bind(self._namespace, token, job))

    async def release_reservation(self, token: str) -> None:
        """Gives a reservation back: one that isn't bound, or whose job has ended. AdmissionNotFound if there is none
        (any more), AdmissionConflict if its job lives.
        """
        await run_async(self.server, admission.release(self._namespace, token))

    async def finalize(self, queue: str, key: object) -> bool:
        """Frees the key and the slot that an attempt has left behind; whether there was something to free."""
        command = admission.finalize(self._namespace, queue, key)
        return command is not None and await run_async(self.server, command)

    async def cleanup_reservations(self, queue: str, *, older_than: Duration) -> int:
        """Takes back reservations that hold a slot for nothing; how many. See `Queue.cleanup_reservations`."""
        jobs = admission.cleanup(self._namespace, queue, older_than)
        await self._there(queue)
        done: int = await self._drive(jobs)
        return done

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

    async def _drive(self, steps: limiting.Steps) -> Any:
        command = next(steps)
        while True:
            answer = await run_async(self.server, command)
            try:
                command = steps.send(answer)
            except StopIteration as end:
                return end.value
