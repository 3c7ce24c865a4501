"""A job's record: what its hash in Redis says, checked once and read as Python; and as the JSON that users see.

Only fields that differ from their default are stored, and the empty text stands
for absent. Fields of newer versions are kept and ignored; a field that doesn't
hold what it should makes the record a BadRecord, which names it. Arguments,
result and progress stay bytes until somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from taskq import codec, lanes
from taskq.codec import Types
from taskq.errors import BadRecord, InvalidPayload
from taskq.needs import NOTHING, Needs, number, of_class
from taskq.record.fields import AttemptError, read, seconds_json, time_json
from taskq.retry import DEFAULT_MAX_ATTEMPTS
from taskq.state import State

__all__ = ["AttemptError", "JobRecord", "damaged", "node_of"]


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job as it stood when it was read. Times are ms since 1970 by the server's clock, None where absent.

    Attributes:
        klass: what the job needs of a worker, as the scripts call it; `needs_text` tells of one whose name is a digest.
        worker: who holds the job, or who held it last.
        started_at_ms: the first start of its current life; a retry by hand begins a new one.
        timeout_ms, hard_timeout_ms, backoff: only where the call gave its own; else its task's count.
        lane, once: what it is keyed by, as scripts read it; `fair`, `limits`, `lock` and `unique` say it.
        lock_wait_ms: how long it may wait for its lock.
        errors: of the last attempts that failed, oldest first.
        poller: who of the worker claimed it, where it said so.
        offered_epoch: the last epoch that was only offered, and not started.
        lease_ms: for how long the last holder has its lease, where that isn't the usual time.
        dropped: whether its result was given up before the record (`keep_result`).
        omitted: whether a long page left arguments, result and progress out: they are None in its JSON.
        fields: the hash itself.
    """

    id: str
    task: str
    state: State
    fields: Mapping[bytes, bytes] = field(repr=False)
    priority: int = 0
    klass: str = "async"
    needs_text: str = ""
    on_target_lost: str | None = None
    attempt: int = 0
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    epoch: int | None = None
    worker: str | None = None
    created_at_ms: int | None = None
    scheduled_at_ms: int | None = None
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    expires_at_ms: int | None = None
    scheduled_for_ms: int | None = None
    schedule: str | None = None
    unknown_since_ms: int | None = None
    unknown_reason: str | None = None
    timeout_ms: int | None = None
    hard_timeout_ms: int | None = None
    keep_ms: int | None = None
    keep_result_ms: int | None = None
    backoff: str | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, str] = field(default_factory=dict)
    on_lease_lost: str | None = None
    lane: str = ""
    once: str = ""
    lock_wait_ms: int | None = None
    cancel: str | None = None
    poller: str | None = None
    offered_epoch: int | None = None
    lease_ms: int | None = None
    dropped: bool = False
    omitted: bool = False
    reason: str | None = None
    errors: tuple[AttemptError, ...] = ()

    @classmethod
    def from_fields(cls, id: str, fields: Mapping[bytes, bytes]) -> JobRecord:
        """The record of a job from its hash.

        Raises:
            BadRecord: a field is damaged, or the record has no task or no state.
        """
        values = read(id, fields)
        for needed in ("task", "state"):
            if needed not in values:
                raise BadRecord(f"job {id}: its record has no field {needed}")
        # A first start isn't written: the epoch of a claim is its time, until there is a second one.
        if values.get("attempt") and b"started_at" not in fields:
            values["started_at_ms"] = values.get("epoch")
        if values.get("max_attempts", 1) <= 0:
            del values["max_attempts"]
        return cls(id=id, fields=fields, **values)

    @property
    def queue(self) -> str:
        """The queue, from the id."""
        return self.id.partition(":")[0]

    @property
    def executor(self) -> str:
        """The executor kind that it needs: "async" or "thread"."""
        return self.klass.partition(";")[0]

    @property
    def needs(self) -> Needs:
        """What else it needs of a worker; nothing where that can't be read."""
        return of_class(self.klass, self.needs_text) or NOTHING

    @property
    def fair(self) -> str | None:
        """Whose turn it is, as it stands in the names of keys."""
        return lanes.parsed(self.lane)[0]

    @property
    def limits(self) -> list[str]:
        """The limits that hold it up: `name`, or `name=value`, as they stand in the names of keys."""
        return lanes.parsed(self.lane)[1]

    @property
    def lock(self) -> str | None:
        """Its lock: `name`, or `name=value`."""
        return lanes.parsed(self.lane)[2]

    @property
    def unique(self) -> str | None:
        """Its unique key: `task:value`, or `:value` if all tasks of the queue share it."""
        return self.once.partition(" ")[0] or None

    @property
    def offered(self) -> bool:
        """Whether it is its worker's to start, and not started."""
        return self.state is State.RUNNING and self.epoch is not None and self.offered_epoch == self.epoch

    @property
    def node(self) -> str | None:
        """The node of `worker`."""
        return node_of(self.worker)

    @property
    def attempted_by(self) -> tuple[str, ...]:
        """The nodes that ran its attempts, in that order: those that failed, then the last or present one."""
        workers = [error.worker for error in self.errors]
        if self.attempt and not any(error.attempt == self.attempt for error in self.errors):
            workers.append(self.worker)
        return tuple(node for node in map(node_of, workers) if node)

    def arguments(self, types: Types | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call's `(args, kwargs)`; InvalidPayload where they can't be decoded here."""
        return codec.decode(self.fields.get(b"payload", b""), types)

    def result(self, types: Types | None = None) -> Any:
        """What the job returned, None if nothing; InvalidPayload where it can't be decoded here."""
        return codec.decode_value(self.fields.get(b"result", b""), types)

    def to_dict(self) -> dict[str, Any]:
        """The job as JSON, the same in Python, CLI and HTTP. Never fails, and needs no class of the user's.

        Bytes that are no valid payload are shown as such: `{"$type": "bytes", ...}`.
        """
        args, kwargs = self._call_json()
        return {
            "id": self.id,
            "queue": self.queue,
            "task": self.task,
            "state": str(self.state),
            "priority": self.priority,
            "attempt": self.attempt,
            "max_attempts": self.max_attempts,
            "epoch": self.epoch,
            "worker": self.worker,
            "node": self.node,
            "tags": list(self.tags),
            "meta": dict(self.meta),
            "args": args,
            "kwargs": kwargs,
            "result": self._value_json(b"result"),
            "errors": [dict(error) for error in self.errors],
            "progress": self._progress_json(),
            "created_at": time_json(self.created_at_ms),
            "scheduled_at": time_json(self.scheduled_at_ms),
            "started_at": time_json(self.started_at_ms),
            "finished_at": time_json(self.finished_at_ms),
            "expires_at": time_json(self.expires_at_ms),
            "timeout": seconds_json(self.timeout_ms),
            "unique": self.unique,
            "lock": self.lock,
            "limits": self.limits or None,
            "fair": self.fair,
            "labels": dict(self.needs.labels) or None,
            "resources": {name: number(each) for name, each in self.needs.takes} or None,
            "target": self.needs.target or None,
            "schedule": self.schedule,
            "scheduled_for": time_json(self.scheduled_for_ms),
            **dict.fromkeys(("batch", "flow", "parent")),
            "reason": self.reason or self._waits_because,
        }

    @property
    def _waits_because(self) -> str | None:
        """Why a worker handed the job back, while it waits to be tried by another."""
        return self.unknown_reason if self.state is State.SCHEDULED else None

    def _call_json(self) -> tuple[Any, Any]:
        if self.omitted:
            return None, None
        data = self.fields.get(b"payload", b"")
        try:
            return codec.call_to_json(data)
        except InvalidPayload:
            return codec.bytes_form(data), None

    def _value_json(self, name: bytes) -> Any:
        if self.omitted:
            return None
        data = self.fields.get(name, b"")
        try:
            return codec.value_to_json(data)
        except InvalidPayload:
            return codec.bytes_form(data)

    def _progress_json(self) -> Any:
        progress = self._value_json(b"progress")
        if isinstance(progress, dict) and "$type" not in progress:
            return {name: progress.get(name) for name in ("n", "total", "note")}
        return progress


def node_of(worker: str | None) -> str | None:
    """The node of a worker: its id up to the last dot."""
    return worker.rpartition(".")[0] or None if worker else None


def damaged(id: str, fields: Mapping[bytes, bytes], error: BadRecord) -> dict[str, Any]:
    """A damaged job as JSON: what can still be read of it, and why the rest can't.

    Lists show it so: one bad record never hides the others.
    """
    sound: dict[bytes, bytes] = {b"task": b"?", b"state": State.FAILED.encode()}
    for name, raw in fields.items():
        try:
            JobRecord.from_fields(id, {**sound, name: raw})
        except BadRecord:
            continue
        sound[name] = raw
    shown = JobRecord.from_fields(id, sound).to_dict()
    for needed in ("task", "state"):
        if sound[needed.encode()] != fields.get(needed.encode()):
            shown[needed] = None
    return {**shown, "reason": f"BadRecord: {error}"}
