"""When waiting for a job is over, and what it then gave: a value, or the error that says how it ended."""

from __future__ import annotations

import time

from taskq.errors import ResultTimeout
from taskq.record import JobRecord
from taskq.state import TERMINAL
from taskq.units import Duration, duration_ms

RECHECK_S = 3.0
"""A notification may be lost with its connection: whoever waits looks again after this long."""


def until(timeout: Duration | None) -> float | None:
    """The monotonic time at which to give up; None for never."""
    return None if timeout is None else time.monotonic() + duration_ms(timeout, name="timeout") / 1000


def ended(record: JobRecord | None) -> bool:
    """Whether there is nothing to wait for: the job has ended, or there is no record of it."""
    return record is None or record.state in TERMINAL


def still_waits(id: str, record: JobRecord | None, timeout: Duration | None, end: float | None) -> float:
    """How many seconds are left; ResultTimeout if none are."""
    if end is None:
        return RECHECK_S
    left = end - time.monotonic()
    if left <= 0:
        state = "gone" if record is None else record.state
        raise ResultTimeout(f"job {id} has not ended within {timeout!r} (it is {state}); it goes on")
    return left
