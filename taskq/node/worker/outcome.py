"""What Redis is told of a job whose code has ended. Pure: a value or an exception goes in, what to send comes out.

| what came                                  | what is told                                              |
|--------------------------------------------|-----------------------------------------------------------|
| a value                                    | complete; failed without a retry if it can't be stored    |
| any exception                              | retry after the backoff; fail at the last attempt         |
| Retry, Snooze, Discard                     | retry, wait without counting the attempt, fail            |
| before its code began: no such task here,  | hand back: another worker may have newer code             |
|   or arguments that don't fit              |                                                           |
| before its code began: a payload that      | fail at once: it won't get better                         |
|   can't be decoded                         |                                                           |
| the task runs in another executor          | release into that class                                   |
| stopped for its timeout                    | as any exception, JobTimeout                              |
| stopped for a cancel or a shutdown         | release (a job with a cancel becomes cancelled)           |
| its lease is lost                          | nothing                                                   |
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from taskq import codec
from taskq.commands import Done, Failure, Release, Snoozed
from taskq.errors import BadArguments, BadRecord, InvalidPayload, JobTimeout, TaskQError, UnknownTask
from taskq.node.worker.running import Running, Stop, number
from taskq.record import failure
from taskq.retry import DEFAULT_BACKOFF, Backoff, Discard, Retry, is_a, next_state
from taskq.state import State

Ending = Done | Failure | Release | Snoozed

HAND_BACK_MS = 5_000  # how soon a job that this worker can't run is tried again, at first
_HAND_BACK_MOST_MS = 60_000


class WrongExecutor(Exception):
    """The task runs in another executor than the one the job was claimed for."""

    def __init__(self, executor: str) -> None:
        super().__init__(executor)
        self.executor = executor


def of_value(job: Running, value: Any, *, worker: str, max_bytes: int, types: codec.Types) -> Ending:
    """What is told of a job whose code returned `value`.

    Args:
        job: the job.
        value: what its function returned.
        worker: this worker's id.
        max_bytes: the largest result that may be stored.
        types: the application's registered types.
    """
    try:
        result = b"" if value is None else codec.encode_value(value, types, name="result", max_bytes=max_bytes)
    except BaseException as error:  # noqa: BLE001 (an encoder of the user's may raise anything)
        if asyncio.iscoroutine(value):
            value.close()  # or Python warns that nobody awaited it
        return _fail(job, error, f"result not serializable: {failure.line_of(error)}", worker)
    return Done(job.id, job.epoch, result)


def of_error(job: Running, error: BaseException, *, worker: str) -> Ending | None:
    """What is told of a job that ended with `error`; None: nothing."""
    stop = job.stop
    if stop is Stop.LOST:
        return None
    if stop is Stop.TIMEOUT:
        return too_late(job, error, worker=worker)
    if is_a(error, WrongExecutor):
        return Release(job.id, job.epoch, error.executor)
    if stop is not None:
        return Release(job.id, job.epoch, "")
    if job.current is None:  # once its code runs these are of what that code did, such as another task's enqueue
        if is_a(error, UnknownTask, BadArguments):
            return _hand_back(job, error)
        if is_a(error, InvalidPayload, BadRecord):
            return _fail(job, error, failure.line_of(error), worker)
    return _failed(job, error, worker)


def too_late(job: Running, cause: BaseException | None = None, *, worker: str) -> Ending:
    """What is told of a job that ran past its timeout, whatever came of it; its cause shows where the code was."""
    error = JobTimeout(f"ran longer than its timeout of {job.timeout_ms / 1000:g} s", job_id=job.id)
    error.__cause__ = cause
    return _failed(job, error, worker)


def untold(job: Running, error: BaseException, *, worker: str) -> Failure:
    """What is told when telling the outcome has failed, of `error`: a failed attempt as any other."""
    why = f"its outcome could not be told: {failure.line_of(error)}"
    text = failure.to_json(TaskQError(why), at_ms=job.now_ms(), worker=worker)
    if job.attempt >= job.max_attempts:
        return Failure(job.id, job.epoch, "fail", 0, text, failure.clean(why, 1024))
    return Failure(job.id, job.epoch, "retry", HAND_BACK_MS, text, "")


def _failed(job: Running, error: BaseException, worker: str) -> Ending:
    """An attempt ended badly, or by the task's own wish: `retry.next_state` knows what follows."""
    to = next_state(job.attempt, job.max_attempts, error, backoff=_backoff(job))
    if to.state is State.SCHEDULED:
        return Snoozed(job.id, job.epoch, "snooze", to.delay_ms, "")
    told = error.__cause__ if is_a(error, Retry) and error.__cause__ is not None else error
    if to.state is State.RETRYABLE:
        text = failure.to_json(told, at_ms=job.now_ms(), worker=worker)
        return Failure(job.id, job.epoch, "retry", to.delay_ms, text, "")
    reason = to.reason if is_a(error, Discard) else f"{to.reason}: {failure.line_of(told)}"
    return _fail(job, told, reason, worker)


def _fail(job: Running, error: BaseException, reason: str, worker: str) -> Failure:
    text = failure.to_json(error, at_ms=job.now_ms(), worker=worker)
    return Failure(job.id, job.epoch, "fail", 0, text, failure.clean(reason, 1024))


def _backoff(job: Running) -> Backoff:
    """The job's own backoff, from `using()`; else its task's."""
    spec = job.fields.get(b"backoff")
    if spec:
        try:
            return Backoff.from_spec(spec.decode())
        except ValueError:  # damage: the attempt must still end
            return DEFAULT_BACKOFF
    return job.known.backoff if job.known else DEFAULT_BACKOFF


def _hand_back(job: Running, error: BaseException) -> Snoozed:
    """Back with a delay that grows with the time the job has already waited for a worker that can run it."""
    waited_ms = job.epoch - number(job.fields.get(b"unknown_since"), job.epoch)  # an epoch is the time of its claim
    delay_ms = min(max(HAND_BACK_MS, waited_ms // 4), _HAND_BACK_MOST_MS)
    return Snoozed(job.id, job.epoch, "unknown", round(delay_ms * random.uniform(0.8, 1.2)), failure.line_of(error))
