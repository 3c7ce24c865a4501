"""The way of one job through this worker, in small steps that can each be tested alone.

    look up → decode → bind → begin → around → call → outcome (which encodes)

Most jobs pass with a dictionary lookup, one decode and one call. Whatever user code raises, SystemExit included, is the
outcome of its job and never the end of the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from taskq import codec
from taskq.commands import Done, Failure, Snoozed
from taskq.current import CurrentJob, _current
from taskq.errors import BadArguments, BadRecord, InvalidPayload, UnknownTask
from taskq.log import get_logger
from taskq.node.worker import forked, outcome
from taskq.node.worker.executors import Threads
from taskq.node.worker.known import Known
from taskq.node.worker.outcome import Ending, WrongExecutor
from taskq.node.worker.running import Running, Stop

Middleware = Callable[[CurrentJob, Callable[..., Awaitable[Any]]], Awaitable[Any]]
Arguments = tuple[Sequence[Any], Mapping[str, Any]]

_NONE: Arguments = ((), {})

log = get_logger(__name__)


class NotBegun(Exception):
    """The job was stopped before its code began."""


class Pipeline:
    """Runs jobs.

    Args:
        threads: where `def` tasks run.
        middleware: the application's chain, outermost first.
        types: the application's registered types.
        worker: this worker's id.
        max_bytes: the largest result.
        begun: told of each job whose code is about to begin.
        finish: told of each job whose code has ended, with what to send (None: nothing).
    """

    def __init__(
        self,
        *,
        threads: Threads,
        middleware: Sequence[Middleware],
        types: codec.Types,
        worker: str,
        max_bytes: int,
        begun: Callable[[Running], None],
        finish: Callable[[Running, Ending | None], None],
    ) -> None:
        self._threads = threads
        self._middleware = tuple(middleware)
        self._types = types
        self._worker = worker
        self._max_bytes = max_bytes
        self._begun = begun
        self._finish = finish

    async def run(self, job: Running) -> None:
        """Run one job from its claim to its outcome. Never raises."""
        try:
            known = look_up(job)
            self._begun(job)
            payload = job.fields.get(b"payload")
            args, kwargs = decode(payload, self._types) if payload else _NONE
            if args or kwargs or not known.bare:
                known.bind(args, kwargs)
            begin(job)
            if known.plain and not self._middleware:
                value = await known.fn(*args, **kwargs)
            else:
                value = await self._around(job, known, args, kwargs)
        except BaseException as error:  # noqa: BLE001 (all that user code raises is the job's outcome)
            forked.leave(error)
            job.ended = True
            ending = self._of_error(job, error)
        else:
            forked.leave()
            job.ended = True
            nothing = value is None and job.stop is None
            ending = Done(job.id, job.epoch, b"") if nothing else self._of_value(job, value)
        if job.timer is not None:
            job.timer.cancel()
        self._finish(job, ending)
        if type(ending) is not Done:
            with contextlib.suppress(Exception):  # a line of the log decides nothing
                tell(job, ending)

    def _of_error(self, job: Running, error: BaseException) -> Ending | None:
        """Telling an error asks code of the user's: its class, its backoff. What that raises is the error then."""
        try:
            ending = outcome.of_error(job, error, worker=self._worker)
        except BaseException as other:  # noqa: BLE001 (as above)
            try:
                ending = outcome.of_error(job, other, worker=self._worker)
            except BaseException as last:  # noqa: BLE001 (the job must have an end all the same)
                ending = outcome.untold(job, last, worker=self._worker)
        return ending

    def _of_value(self, job: Running, value: Any) -> Ending | None:
        try:
            return self._of_any_value(job, value)
        except BaseException as error:  # noqa: BLE001 (a value too may be of a hostile class)
            return self._of_error(job, error)

    def _of_any_value(self, job: Running, value: Any) -> Ending | None:
        if job.stop is Stop.LOST:
            return None
        if job.stop is Stop.TIMEOUT:  # too late: code that can't be stopped, or wouldn't be, has failed all the same
            return outcome.too_late(job, worker=self._worker)
        return outcome.of_value(job, value, worker=self._worker, max_bytes=self._max_bytes, types=self._types)

    async def _around(self, job: Running, known: Known, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The middleware, outermost first, around the call."""
        if not self._middleware:
            return await self._call(job, known, args, kwargs)
        current = _current.get()
        assert current is not None  # noqa: S101 (begin has set it)

        async def step(at: int) -> Any:
            if at == len(self._middleware):
                return await self._call(job, known, args, kwargs)

            async def call_next(_job: CurrentJob | None = None) -> Any:
                return await step(at + 1)

            return await self._middleware[at](current, call_next)

        return await step(0)

    async def _call(self, job: Running, known: Known, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The user's function, where it belongs."""
        if job.executor == "async":
            value = known.fn(*args, **kwargs)
        else:
            value = await self._threads.run(known.fn, args, kwargs)
        # A def may return a coroutine too, such as a partial of an async def: its body hasn't run yet.
        return await value if asyncio.iscoroutine(value) else value


def look_up(job: Running) -> Known:
    """The job's task, if it may run here and now.

    Raises:
        NotBegun: it was stopped before it began.
        UnknownTask: no task here has its name.
        WrongExecutor: it was claimed for another executor than its task runs in.
    """
    if job.stop is not None:
        raise NotBegun
    known = job.known
    if known is None:
        try:
            name = job.fields.get(b"task", b"").decode()
        except UnicodeDecodeError as error:
            raise BadRecord(f"its task's name is no text: {error}") from error
        raise UnknownTask(f"unknown task: this worker's app has no task {name!r:.300}")
    if known.executor != job.executor:
        raise WrongExecutor(known.executor)
    return known


def decode(payload: bytes, types: codec.Types) -> Arguments:
    """The call's arguments.

    Raises:
        BadArguments: the bytes name what isn't known here, and may be elsewhere.
        BadRecord: they are damaged.
    """
    try:
        return codec.decode(payload, types)
    except InvalidPayload as error:
        if error.newer:
            raise BadArguments(str(error)) from error
        raise BadRecord(f"its arguments can't be read: {error}") from error


def tell(job: Running, ending: Ending | None) -> None:
    """A line for whoever reads the log. Inside a job its id stands on each; one that hadn't begun is named here."""
    about = {} if job.current is not None else _about(job)
    if isinstance(ending, Failure):
        told = json.loads(ending.error)  # as stored: what a timeout or a cause made of the error
        if ending.verb == "retry":
            line = " ".join(f"{told['type']}: {told['message']}".split())[:500]
            log.warning("attempt failed", error=line, again_in_s=ending.delay_ms / 1000, **about)
        else:
            log.error("job failed", reason=ending.reason, exception=told["traceback"].rstrip(), **about)
    elif isinstance(ending, Snoozed) and ending.kind == "unknown":
        log.warning("handed back: this worker can't run it", reason=ending.reason, **about)


def _about(job: Running) -> dict[str, object]:
    """What a line inside the job would carry (`taskq.log.JOB_FIELDS`)."""
    task = job.fields.get(b"task", b"").decode("utf-8", "backslashreplace")
    return {"job_id": job.id, "task": task, "attempt": job.attempt, "queue": job.queue}


def begin(job: Running) -> None:
    """From here on it is user code that runs: `current()` is set, the timeout counts."""
    deadline = None
    if job.timeout_ms:
        deadline = datetime.now(UTC) + timedelta(milliseconds=job.timeout_ms)
        job.timer = asyncio.get_running_loop().call_later(job.timeout_ms / 1000, job.halt, Stop.TIMEOUT)
    job.current = CurrentJob(job.id, epoch=job.epoch, attempt=job.attempt, fields=job.fields, deadline=deadline)
    _current.set(job.current)
