"""`Job[R]`: what an enqueue gives back, and `app.job(id)`: a job by its id, to wait for, read, cancel or run again.

Making one does no I/O, and neither do its attributes: they hold what this
handle last heard. Every method that asks the server has an a-twin.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from taskq.client.ending import result_of
from taskq.errors import JobNotFound, ResultExpired
from taskq.home import Home
from taskq.keys import queue_of
from taskq.record import JobRecord
from taskq.state import State
from taskq.units import Duration
from taskq.why import Why

R_co = TypeVar("R_co", covariant=True)


class Job(Generic[R_co]):
    """A job.

    Attributes:
        id: the full id, `<queue>:<uuid7 or own>`.
        task: the task's name; None for `app.job(id)` until it is read.
        state: as last heard; None until something was.
        created: whether this enqueue made the job; False if its id existed already, None if not known.
        attempt: as last heard.
        record: all of it, as last read; None until `refresh`, `result` or `join` has read it.
    """

    __slots__ = ("_home", "attempt", "created", "id", "record", "state", "task")

    def __init__(
        self, home: Home, id: str, task: str | None = None, *, state: State | None = None, created: bool | None = None
    ) -> None:
        self._home = home
        self.id = id
        self.task = task
        self.state = state
        self.created = created
        self.attempt = 0
        self.record: JobRecord | None = None

    @property
    def queue(self) -> str:
        """The queue that the id names."""
        return queue_of(self.id)

    def __repr__(self) -> str:
        place = f"{self._home.settings.namespace}/{self.id}"
        return f"<Job {' '.join(filter(None, (place, self.task, self.state or 'not read yet')))}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.id == self.id and other._home is self._home

    def __hash__(self) -> int:
        return hash(self.id)

    # --- the result

    def result(self, timeout: Duration | None = None) -> R_co:
        """Wait until the job has ended, and give its result.

        Args:
            timeout: how long to wait; None for as long as it takes.

        Raises:
            JobFailed: it failed; JobTimeout, JobCrashed or AttemptsExhausted where that is why.
            JobCancelled: it was cancelled.
            ResultTimeout: it has not ended in time; it goes on.
            ResultExpired: it ended, but its result is no longer kept.
            JobNotFound: there is no such job.
            RuntimeError: an event loop runs on this thread; await `aresult` there.
        """
        _off_the_loop("result")
        return self._outcome(self._home.client.wait(self.id, timeout=timeout))

    async def aresult(self, timeout: Duration | None = None) -> R_co:
        """As `result`, awaited."""
        return self._outcome(await self._home.aclient.wait(self.id, timeout=timeout))

    def join(self, timeout: Duration | None = None) -> State:
        """Wait until the job has ended, however it did; its final state.

        Raises:
            ResultTimeout, ResultExpired, JobNotFound, RuntimeError: as `result`.
        """
        _off_the_loop("join")
        return self._final(self._home.client.wait(self.id, timeout=timeout)).state

    async def ajoin(self, timeout: Duration | None = None) -> State:
        """As `join`, awaited."""
        return self._final(await self._home.aclient.wait(self.id, timeout=timeout)).state

    def _outcome(self, record: JobRecord | None) -> R_co:
        value: R_co = result_of(self._final(record), self._home.types)
        return value

    def _final(self, record: JobRecord | None) -> JobRecord:
        if record is not None:
            return self._take(record)
        if self.state is None:
            raise JobNotFound(f"there is no job {self.id}: it never existed, or its retention has passed")
        raise ResultExpired(f"job {self.id} has ended and is no longer kept: raise keep= to keep it longer")

    # --- reading

    def refresh(self) -> Job[R_co]:
        """Read the job anew, into this handle. JobNotFound if it is gone."""
        self._take(self._home.client.job(self.id))
        return self

    async def arefresh(self) -> Job[R_co]:
        """As `refresh`, awaited."""
        self._take(await self._home.aclient.job(self.id))
        return self

    def why(self) -> Why:
        """Why it isn't running: the first gate that is shut, in words and in numbers. JobNotFound if it is gone."""
        return self._home.inspector.why(self.id)

    async def awhy(self) -> Why:
        """As `why`, awaited."""
        return await self._home.inspector.awhy(self.id)

    def to_dict(self) -> Mapping[str, Any]:
        """Read the job anew, and give it as JSON holds it: the same keys in Python, CLI and HTTP."""
        return self._take(self._home.client.job(self.id)).to_dict()

    async def ato_dict(self) -> Mapping[str, Any]:
        """As `to_dict`, awaited."""
        return self._take(await self._home.aclient.job(self.id)).to_dict()

    def _take(self, record: JobRecord) -> JobRecord:
        self.record = record
        self.task, self.state, self.attempt = record.task, record.state, record.attempt
        return record

    # --- changing

    def cancel(self, running: bool = True, force: bool = False) -> str:  # noqa: FBT001, FBT002 (a public contract)
        """Cancel the job: `removed` if it waited, `requested` if its worker was asked to stop it, `too_late`.

        Args:
            running: whether a running job may be stopped; False refuses it with InvalidTransition.
            force: its worker may be replaced, if the job can't be interrupted otherwise.

        Raises:
            JobNotFound, InvalidTransition.
        """
        return self._home.client.cancel(self.id, running=running, force=force)

    async def acancel(self, running: bool = True, force: bool = False) -> str:  # noqa: FBT001, FBT002 (as above)
        """As `cancel`, awaited."""
        return await self._home.aclient.cancel(self.id, running=running, force=force)

    def retry(self) -> Job[R_co]:
        """Run the job again as if new: attempt 0, errors and result cleared.

        Raises:
            JobNotFound.
            InvalidTransition: it waits or runs already.
        """
        self._home.client.retry(self.id)
        return self._again()

    async def aretry(self) -> Job[R_co]:
        """As `retry`, awaited."""
        await self._home.aclient.retry(self.id)
        return self._again()

    def reprioritise(self, priority: int) -> State:
        """Give the job another priority; the state it is in.

        One that waits for its turn goes to the front of the new level, at its place there; one that runs, or waits for
        a time, keeps it for its next turn.

        Args:
            priority: from -512 to 511, higher first.

        Raises:
            JobNotFound.
            InvalidTransition: it has ended.
            ValueError: a priority that can't be.
        """
        self.state = State(self._home.client.reprioritise(self.id, priority))
        return self.state

    async def areprioritise(self, priority: int) -> State:
        """As `reprioritise`, awaited."""
        self.state = State(await self._home.aclient.reprioritise(self.id, priority))
        return self.state

    def _again(self) -> Job[R_co]:
        self.state, self.attempt, self.record = State.AVAILABLE, 0, None
        return self


def _off_the_loop(method: str) -> None:
    """Refuse to block an event loop. Whoever never imported asyncio runs none."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:  # noqa: SLF001 (its only way that doesn't raise)
        raise RuntimeError(
            f"job.{method}() would block the event loop that runs on this thread: await job.a{method}() instead"
        )
