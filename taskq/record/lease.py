"""A lease as those see it who look: who holds which attempt of a job, since when, and how long ago they said so.

An attempt is named by its key, `<job id>#<attempt>`. A claim is named by its
token, an opaque text that proves its holder: whoever has it may start, renew
and end the attempt, from any process.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from taskq.errors import BadRecord
from taskq.record import JobRecord, node_of
from taskq.record.fields import YEAR_10000_MS, time_json
from taskq.state import State
from taskq.units import Duration, duration_ms

USUAL_LEASE_MS = 8000  # not written where it is this; as in lua/lib/lease.lua
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEY = re.compile(r"([^#]+)#([1-9][0-9]{0,8})")


class Claimant(NamedTuple):
    """What a token says: which claim, of whom."""

    id: str
    epoch: int
    attempt: int
    worker: str


def attempt_key(id: str, attempt: int) -> str:
    """The name of one attempt of a job."""
    return f"{id}#{attempt}"


def read_attempt_key(key: str) -> tuple[str, int] | None:
    """The job and the attempt that a key names; None if it names none."""
    found = _KEY.fullmatch(key)
    return (found[1], int(found[2])) if found else None


def token(claimant: Claimant) -> str:
    """The text that stands for a claim."""
    return base64.urlsafe_b64encode(" ".join(map(str, claimant)).encode()).decode().rstrip("=")


def read_token(text: str) -> Claimant | None:
    """What a token says; None if this is none."""
    try:
        told = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True).decode()
        id, epoch, attempt, worker = told.split(" ")
        return Claimant(id, int(epoch), int(attempt), worker)
    except (ValueError, binascii.Error):
        return None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run one attempt, as it stood when it was read. Instants are ms since 1970 by the server's clock.

    Attributes:
        attempt_key: job and attempt.
        id, task, attempt, epoch: the job.
        worker: the holder; `poller`: who of it claimed, "" if nobody said so.
        claimed_at_ms: when it was claimed.
        beat_at_ms: when the holder last claimed, started or renewed it.
        expires_at_ms: when it ends unless it is renewed, or started if it is an offer.
        read_at_ms: when this was read.
        offered: whether it is an offer that waits for its start.
        cancel: whether the job was asked to stop.
    """

    attempt_key: str
    id: str
    task: str
    attempt: int
    epoch: int
    worker: str
    poller: str
    claimed_at_ms: int
    beat_at_ms: int
    expires_at_ms: int
    read_at_ms: int
    offered: bool
    cancel: bool

    @property
    def queue(self) -> str:
        """The job's queue."""
        return self.id.partition(":")[0]

    @property
    def node(self) -> str | None:
        """The node of the worker; None for an executor that is none of ours."""
        return node_of(self.worker)

    @property
    def token(self) -> str:
        """The claim that it came from."""
        return token(Claimant(self.id, self.epoch, self.attempt, self.worker))

    @property
    def claimed_at(self) -> datetime:
        """When it was claimed."""
        return _EPOCH + timedelta(milliseconds=self.claimed_at_ms)

    @property
    def last_heartbeat_at(self) -> datetime:
        """When the holder last claimed, started or renewed it."""
        return _EPOCH + timedelta(milliseconds=self.beat_at_ms)

    @property
    def age_ms(self) -> int:
        """How long ago that was, when this was read."""
        return max(0, self.read_at_ms - self.beat_at_ms)

    def is_fresh(self, now: datetime | int | None = None, threshold: Duration = "30s") -> bool:
        """Whether the last sign of its holder is less than `threshold` old; never with a threshold of zero or less.

        Args:
            now: an aware datetime, or ms since 1970; None for the server's time when this was read.
            threshold: a duration; exactly so old is not fresh.
        """
        limit_ms = duration_ms(threshold, name="threshold", negative=True)
        if isinstance(now, datetime):
            if now.tzinfo is None:
                raise ValueError(f"now={now} has no time zone: give an aware datetime")
            now = (now - _EPOCH) // timedelta(milliseconds=1)
        at_ms = self.read_at_ms if now is None else now
        return limit_ms > 0 and at_ms - self.beat_at_ms < limit_ms

    def matches(self, key: str, worker: str) -> bool:
        """Whether it is that worker's, for that attempt: both are named and equal."""
        return bool(key and worker) and (key, worker) == (self.attempt_key, self.worker)

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it; `age` in seconds."""
        return {
            "attempt_key": self.attempt_key,
            "id": self.id,
            "queue": self.queue,
            "task": self.task,
            "attempt": self.attempt,
            "epoch": self.epoch,
            "worker": self.worker,
            "poller": self.poller or None,
            "node": self.node,
            "offered": self.offered,
            "cancel_requested": self.cancel,
            "claimed_at": time_json(self.claimed_at_ms),
            "last_heartbeat_at": time_json(self.beat_at_ms),
            "expires_at": time_json(self.expires_at_ms),
            "age": self.age_ms / 1000,
        }


def lease_of(id: str, expires_ms: int | None, fields: Mapping[bytes, bytes], now_ms: int) -> Lease | None:
    """The lease of a job that runs; None for another, or if its record is too damaged to tell.

    Args:
        id: the job.
        expires_ms: when its lease ends; None if it has none.
        fields: those of its record.
        now_ms: the server's time.
    """
    try:
        job = JobRecord.from_fields(id, fields)
    except BadRecord:
        return None
    if job.state is not State.RUNNING or job.epoch is None or not job.worker:
        return None
    if expires_ms is None or not 0 < expires_ms < YEAR_10000_MS:
        return None
    return Lease(
        attempt_key=attempt_key(id, job.attempt),
        id=id,
        task=job.task,
        attempt=job.attempt,
        epoch=job.epoch,
        worker=job.worker,
        poller=job.poller or "",
        claimed_at_ms=job.epoch,
        beat_at_ms=max(0, expires_ms - (job.lease_ms or USUAL_LEASE_MS)),
        expires_at_ms=expires_ms,
        read_at_ms=now_ms,
        offered=job.offered,
        cancel=job.cancel is not None,
    )
