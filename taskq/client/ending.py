"""When waiting for a job is over, and what it then gives: a value, or the error that says how the job ended."""

from __future__ import annotations

import time
from typing import Any

from taskq.codec import Types
from taskq.connection import passes
from taskq.errors import (
    AttemptsExhausted,
    JobCancelled,
    JobCrashed,
    JobFailed,
    JobTimeout,
    ResultExpired,
    ResultTimeout,
    Unavailable,
)
from taskq.record import JobRecord
from taskq.state import TERMINAL, State
from taskq.units import Duration, duration_ms, duration_text

RECHECK_S = 3.0
"""A notification may be lost with its connection: whoever waits looks again after this long."""

LOOK_AGAIN_S = 0.5
"""How long to pause after a look that failed."""


def until(timeout: Duration | None) -> float | None:
    """The monotonic time at which to give up; None for never."""
    return None if timeout is None else time.monotonic() + duration_ms(timeout, name="timeout") / 1000


def ended(record: JobRecord | None) -> bool:
    """Whether there is nothing to wait for: the job has ended, or there is no record of it."""
    return record is None or record.state in TERMINAL


def still_waits(id: str, record: JobRecord | None, timeout: Duration | None, end: float | None) -> float:
    """How long to listen until the next look, in seconds; ResultTimeout if the time is over."""
    if end is None:
        return RECHECK_S
    left = end - time.monotonic()
    if left <= 0:
        state = "gone" if record is None else record.state
        within = duration_text(duration_ms(timeout or 0))
        raise ResultTimeout(f"job {id} has not ended within {within} (it is {state}); it goes on")
    return min(left, RECHECK_S)


def look_again(id: str, error: Unavailable, timeout: Duration | None, end: float | None) -> float:
    """After a look that failed: how long to pause before the next, in seconds. A waiter who gave a time has that long.

    Raises:
        ResultTimeout: the time is over.
        Unavailable: `error` itself, if it won't pass, or nobody said how long to wait.
    """
    if end is None or not passes(error):
        raise error
    left = end - time.monotonic()
    if left <= 0:
        within = duration_text(duration_ms(timeout or 0))
        raise ResultTimeout(f"whether job {id} has ended within {within} is not known: {error}") from error
    return min(left, LOOK_AGAIN_S)


def result_of(record: JobRecord, types: Types) -> Any:
    """What a job that has ended gives its waiter.

    Raises:
        JobFailed, JobCancelled: how it ended.
        ResultExpired: it ended well, but the result is no longer kept.
        InvalidPayload: the result can't be decoded here.
    """
    if record.state is State.COMPLETED:
        if record.dropped:
            raise ResultExpired(f"job {record.id} has ended, its result is no longer kept: raise keep_result=")
        return record.result(types)
    if record.state is State.CANCELLED:
        why = "" if record.reason in (None, State.CANCELLED) else f": {record.reason}"
        raise JobCancelled(
            f"job {record.id} was cancelled{why}",
            job_id=record.id,
            reason=record.reason,
        )
    raise failure_of(record)


def failure_of(record: JobRecord) -> JobFailed:
    """The error of a failed job: of the kind of its last attempt's where that says more than that it failed."""
    kind: type[JobFailed] = JobFailed
    last = record.errors[-1].type if record.errors else ""
    if last in _KINDS:
        kind = _KINDS[last]
    elif (record.reason or "").startswith("attempts exhausted"):
        kind = AttemptsExhausted
    return kind(
        f"job {record.id} failed: {record.reason or 'no reason given'}",
        job_id=record.id,
        reason=record.reason,
        errors=record.errors,
    )


_KINDS: dict[str, type[JobFailed]] = {kind.__name__: kind for kind in (JobTimeout, JobCrashed, AttemptsExhausted)}
