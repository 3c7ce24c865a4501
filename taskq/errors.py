"""Every error that taskq raises, under one roof: `TaskQError`.

The first line of a class's docstring is its default message, so that no error
ever reaches a user empty. Errors of redis-py are translated in `connection`
alone, with the cause kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class TaskQError(Exception):
    """Something went wrong in taskq.

    Raised only as one of its subclasses; catch it to catch them all. Without
    arguments `str(error)` is the first line of the class's docstring.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(args or (default_message(type(self)),)))


# --- about a job's record -----------------------------------------------------


class JobNotFound(TaskQError, LookupError):
    """There is no job with this id: it never existed, or its retention has passed."""


class JobAlreadyExists(TaskQError):
    """A job with this id exists already, and nothing was added."""


class DuplicateJob(TaskQError):
    """Another living job owns this unique key, and nothing was added.

    `owner` is that job's id where it is known, else None.
    """

    def __init__(self, *args: object, owner: str | None = None) -> None:
        super().__init__(*args)
        self.owner = owner


class InvalidTransition(TaskQError):
    """The job's state does not allow this.

    `from_state` and `to_state` name the states where they are known, else None.
    """

    def __init__(self, *args: object, from_state: str | None = None, to_state: str | None = None) -> None:
        super().__init__(*args)
        self.from_state = from_state
        self.to_state = to_state


class BadRecord(TaskQError):
    """The stored job is damaged: a field does not hold what it should."""


# --- about holding something --------------------------------------------------


class LeaseLost(TaskQError):
    """The job's lease is no longer held by this worker; nothing was changed."""


class ClaimNotFound(JobNotFound, LeaseLost):
    """There is no such claim: it was not started in time, has ended, or this is no token."""


class LeadershipLost(TaskQError):
    """Another node may lead by now; nothing was changed."""


class LockLost(TaskQError):
    """The lock is no longer held: its time ran out, or it was released by force."""


class LockTimeout(TaskQError, TimeoutError):
    """The lock was not free within the time given; nothing is held."""


# --- about queues, nodes and workers ------------------------------------------


class QueueNotFound(TaskQError):
    """There is no queue with this name: nothing was ever enqueued in it."""


class ScheduleNotFound(TaskQError, LookupError):
    """There is no schedule with this name."""


class NodeNotFound(TaskQError):
    """There is no live node with this id; a node that lost its record registers again."""


class WorkerStopped(TaskQError):
    """The worker has stopped and takes no more work."""


class UnknownTask(TaskQError):
    """No task is registered under this name."""


class Unschedulable(TaskQError):
    """No live node is large enough for this job, so it would wait for ever."""


class TooManyClasses(TaskQError, ValueError):
    """The queue's jobs need too many different things: round amounts up, use fewer labels, or several queues."""


class AdmissionNotFound(TaskQError):
    """There is no reservation with this token: it was never made, or its time ran out."""


class AdmissionConflict(TaskQError):
    """The reservation is bound to another job."""


class NotInJob(TaskQError):
    """`current()` works only while a job runs, and no job runs here."""


# --- about arguments and payloads ---------------------------------------------


class InvalidPayload(TaskQError, ValueError):
    """The payload can't be decoded.

    `newer`: the bytes are sound, but name what isn't known here; newer code may know it.
    """

    def __init__(self, *args: object, newer: bool = False) -> None:
        super().__init__(*args)
        self.newer = newer


class Unencodable(TaskQError, TypeError):
    """A value can't be stored; register its type with `app.types.register`."""


class PayloadTooLarge(TaskQError, ValueError):
    """The payload is larger than `max_payload`; store it elsewhere and pass a reference."""


class BadArguments(TaskQError):
    """The arguments don't match the task's parameters."""


# --- how a job ended: what `result()` raises ----------------------------------


class JobFailed(TaskQError):
    """The job failed.

    Attributes:
        job_id: the job's id, or None.
        reason: why it failed in one line, or None.
        errors: one mapping an attempt (`attempt type message traceback at worker`), as in the job's record.
    """

    def __init__(
        self,
        *args: object,
        job_id: str | None = None,
        reason: str | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(*args)
        self.job_id = job_id
        self.reason = reason
        self.errors = tuple(errors)


class JobTimeout(JobFailed):
    """The job ran longer than its timeout."""


class JobCrashed(JobFailed):
    """The process that ran the job died."""


class AttemptsExhausted(JobFailed):
    """The job failed at every one of its attempts."""


class JobCancelled(TaskQError):
    """The job was cancelled.

    `job_id` and `reason` are None where they are not known.
    """

    def __init__(self, *args: object, job_id: str | None = None, reason: str | None = None) -> None:
        super().__init__(*args)
        self.job_id = job_id
        self.reason = reason


class ResultTimeout(TaskQError, TimeoutError):
    """The job has not ended within the time given; it goes on, and may be waited for again."""


class ResultExpired(TaskQError):
    """The job ended, but its result is no longer kept; raise `keep_result` to keep it longer."""


class EnqueueFailed(TaskQError):
    """Only some of the jobs were enqueued: `.jobs` are, `.rest` may be sent again.

    Attributes:
        jobs: what was enqueued, in order.
        rest: the calls that were not (or not surely); safe to send again within 10 s.
    """

    def __init__(self, *args: object, jobs: Sequence[Any] = (), rest: Sequence[Any] = ()) -> None:
        super().__init__(*args)
        self.jobs = list(jobs)
        self.rest = list(rest)


# --- about the server ---------------------------------------------------------


class Unavailable(TaskQError, ConnectionError):
    """Redis did not answer within the deadline; check the URL and that the server runs."""


class NotReplicated(Unavailable):
    """The jobs were added, but too few replicas had them by the deadline; a failover now might lose them.

    Attributes:
        job_ids: the jobs. They are there, and run like any others.
    """

    def __init__(self, *args: object, job_ids: Sequence[str] = ()) -> None:
        super().__init__(*args)
        self.job_ids = list(job_ids)


class ServerFull(TaskQError):
    """Redis has reached its `maxmemory`: nothing was enqueued; free memory or raise the limit."""


class ServerUnsupported(TaskQError):
    """The server can't run taskq: it needs Redis 6.2 or newer, or Valkey, with scripts allowed."""


# --- words for messages -------------------------------------------------------


def default_message(kind: type[BaseException]) -> str:
    """The message of an error raised without one: its docstring's first line."""
    for cls in kind.__mro__:
        # A user's subclass without a docstring speaks with its parent's words;
        # under `python -OO` no class has one, and its name must do.
        if issubclass(cls, TaskQError) and cls.__doc__:
            return cls.__doc__.strip().splitlines()[0]
    return kind.__name__


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'queue'?)` if a known name is near, else the empty string."""
    near = nearest(name, known)
    return "" if near is None else f" (did you mean {near!r}?)"


def shown(value: object, most: int = 80) -> str:
    """Any value for a message: as `repr` has it, but on one line and of at most so many characters."""
    if isinstance(value, int) and value.bit_length() > 8 * most:  # Python refuses to write down the largest ones
        return f"an integer of {value.bit_length()} bits"[:most]
    if isinstance(value, bytes | bytearray):
        value = bytes(value[:most])
    import reprlib  # as difflib below

    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = brief.maxlong = most
    try:
        text = brief.repr(value)
    except Exception:  # noqa: BLE001 (a user's own __repr__)
        text = f"<{type(value).__name__}>"
    if not text.isprintable():
        text = text.encode("unicode_escape").decode()
    return text if len(text) <= most else text[: most - 3] + "..."


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like this one; None if none does."""
    import difflib  # only when somebody has mistyped: producers start faster without it

    near = difflib.get_close_matches(name[:200].lower(), sorted(known), n=1, cutoff=0.6)
    return str(near[0]) if near else None
