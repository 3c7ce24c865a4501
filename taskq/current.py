"""`current()`: what a running job may know about itself, in async tasks, threads and children alike.

The worker sets `_current` around each call and copies the context into the
thread; nothing here does I/O, and a field is read from the claimed record only
when the task asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any

from taskq.errors import BadRecord, NotInJob

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CurrentJob:
    """The job that runs here and now.

    Attributes:
        id: the full id, `<queue>:<uuid7 or own>`: the same at every attempt, so it is the idempotency key.
        attempt: which attempt this is, from 1.
        epoch: grows with every claim of the job: the fence. A store that refuses an epoch lower than the
            highest it has seen can't be written to by an attempt that has lost its lease.
        deadline: when the attempt's timeout ends it (aware, UTC, by this host's clock), or None.
        cancel_requested: whether somebody has asked for the job to stop; a task in a thread looks here, and then
            raises: whatever it raises, the job is cancelled. One that returns instead counts as completed.
    """

    __slots__ = ("_fields", "attempt", "cancel_requested", "deadline", "epoch", "id")

    def __init__(
        self,
        id: str,
        *,
        epoch: int,
        attempt: int,
        fields: Mapping[bytes, bytes],
        deadline: datetime | None = None,
    ) -> None:
        self.id = id
        self.epoch = epoch
        self.attempt = attempt
        self.deadline = deadline
        self.cancel_requested = False
        self._fields = fields

    @property
    def task(self) -> str:
        """The task's name."""
        return self._fields[b"task"].decode()

    @property
    def queue(self) -> str:
        """The queue the job was claimed from."""
        return self.id.partition(":")[0]

    @property
    def max_attempts(self) -> int:
        """How many attempts the job has in all; a stored number that isn't positive means the default, 3."""
        from taskq.retry import DEFAULT_MAX_ATTEMPTS  # `import taskq` loads this module, and little else

        most = int(self._fields.get(b"max_attempts", 0))
        return most if most > 0 else DEFAULT_MAX_ATTEMPTS

    @property
    def is_last_attempt(self) -> bool:
        """Whether the job fails for good if this attempt does."""
        return self.attempt >= self.max_attempts

    @property
    def tags(self) -> list[str]:
        """The job's tags; a new list at each reading."""
        tags: list[str] = self._json(b"tags", b"[]")
        return tags

    @property
    def meta(self) -> dict[str, str]:
        """What the caller gave as `meta=`; a new dict at each reading."""
        meta: dict[str, str] = self._json(b"meta", b"{}")
        return meta

    @property
    def scheduled_for(self) -> datetime | None:
        """The nominal time of the firing that made the job (aware, UTC); None if no schedule did."""
        ms = self._fields.get(b"scheduled_for")
        return None if ms is None else _EPOCH + timedelta(milliseconds=int(ms))

    def _json(self, name: bytes, otherwise: bytes) -> Any:
        import json  # as above

        try:
            return json.loads(self._fields.get(name) or otherwise)
        except (ValueError, RecursionError) as error:
            raise BadRecord(f"job {self.id}: the field {name.decode()} can't be read: {error}") from error

    def __repr__(self) -> str:
        return f"<CurrentJob {self.id} attempt {self.attempt} of {self.max_attempts}>"


_current: ContextVar[CurrentJob | None] = ContextVar("taskq_current", default=None)


def current() -> CurrentJob:
    """The job that runs here.

    Raises:
        NotInJob: no job runs here, such as in a plain call of the task's function.
    """
    job = _current.get()
    if job is None:
        raise NotInJob
    return job
