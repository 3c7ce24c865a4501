"""One claimed job in this worker, from the claim until its finish is answered, and why its code was stopped.

The reasons are kept apart, because they end differently: a timeout is a failed attempt, a cancel and a shutdown release
the job (Redis makes the former `cancelled`), and of a lost lease nothing more is said.
"""

from __future__ import annotations

import asyncio
import enum
import time
from collections.abc import Mapping

from taskq import needs
from taskq.commands import Claimed
from taskq.current import CurrentJob
from taskq.node.worker.known import Known
from taskq.options import KILL_AFTER_MS
from taskq.retry import DEFAULT_MAX_ATTEMPTS


class Stop(enum.Enum):
    """Why a job's code was asked to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    SHUTDOWN = "shutdown"
    LOST = "lost"


def number(value: bytes | None, otherwise: int) -> int:
    """A number of a record, at least 0; a damaged one counts as absent, because one bad job must never stop others."""
    return int(value) if value and len(value) < 16 and value.isdigit() else otherwise


def executor_of(fields: Mapping[bytes, bytes]) -> str:
    """The executor kind a record was claimed for: "async" or "thread"."""
    return "thread" if fields.get(b"class", b"").startswith(b"thread") else "async"


def takes_of(fields: Mapping[bytes, bytes]) -> tuple[tuple[str, int], ...]:
    """What a job takes of its worker's resources, as pools: `(("+gpu", 1000),)`."""
    klass = fields.get(b"class", b"")
    if b";" not in klass:
        return ()
    found = needs.of_class(klass.decode(errors="replace"), fields.get(b"needs", b"").decode(errors="replace"))
    return tuple((f"+{name}", amount) for name, amount in found.takes) if found else ()


class Running:
    """A job that this worker holds.

    Attributes:
        id, epoch, attempt, fields, queue: as claimed.
        executor: the kind it was claimed for, "async" or "thread": whose slot it takes.
        takes: what else it takes, as `takes_of`.
        known: what its task is here; None if no task has its name.
        slot: its place in the shared table.
        since: when it was claimed (monotonic s).
        timeout_ms, kill_after_ms: its timeout and its hard one, from its begin; 0 = none.
        code: the asyncio task that runs it, once it does.
        current: what user code sees; None until the code begins.
        timer: of its timeout.
        stop: why it was asked to stop; None while nobody has.
        ended: its code has ended; the finish is on its way.
    """

    __slots__ = (
        "attempt", "code", "current", "ended", "epoch", "executor", "fields", "id", "kill_after_ms", "known", "queue",
        "since", "slot", "stop", "takes", "timeout_ms", "timer",
    )  # fmt: skip

    def __init__(self, claimed: Claimed, queue: str, known: Known | None, since: float) -> None:
        self.id, self.epoch, self.attempt, self.fields = claimed
        fields = self.fields
        self.queue = queue
        self.known = known
        self.executor = executor_of(fields)
        self.takes = takes_of(fields)
        self.since = since
        self.timeout_ms, self.kill_after_ms = (known.timeout_ms, known.kill_after_ms) if known else (0, 0)
        if b"timeout" in fields:  # the job's own timeout takes its task's hard timeout with it
            self.timeout_ms = number(fields[b"timeout"], 0)
            self.kill_after_ms = self.timeout_ms + KILL_AFTER_MS if self.timeout_ms else 0
        if b"hard_timeout" in fields:
            self.kill_after_ms = number(fields[b"hard_timeout"], 0)
        self.slot = -1
        self.code: asyncio.Task[None] | None = None
        self.current: CurrentJob | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.stop: Stop | None = None
        self.ended = False

    @property
    def max_attempts(self) -> int:
        """How many attempts the job has in all; a stored number that isn't positive means the default."""
        return number(self.fields.get(b"max_attempts"), 0) or DEFAULT_MAX_ATTEMPTS

    def now_ms(self) -> int:
        """The server's clock, as far as this worker knows it: an epoch is the time of its claim."""
        return self.epoch + int((time.monotonic() - self.since) * 1000)

    def halt(self, why: Stop) -> None:
        """Ask the code to stop. The first reason stands, but a lost lease is stronger than any other.

        Code on the loop is cancelled. Code in a thread can only be told; so is code that hasn't begun: it will not.
        """
        if self.ended:
            return
        if self.stop is None or why is Stop.LOST:
            self.stop = why
        if self.current is None:
            return
        self.current.cancel_requested = True
        if self.executor == "async" and self.code is not None:
            self.code.cancel()
