"""`Attempt`: one try to get a lock: what to ask, what an answer means, how long to wait for the next look. Pure but for
the monotonic clock, so that threads and coroutines wait by the same rules.
"""

from __future__ import annotations

import secrets
import time

from taskq import commands
from taskq.commands import Command, LockAnswer
from taskq.connection import passes
from taskq.errors import LockTimeout, Unavailable
from taskq.keys import ClusterKeys
from taskq.units import duration_text

_AWAY_S = 0.5


class Attempt:
    """One.

    Attributes:
        token: 128 random bits that no other acquisition has.
        ttl_ms: how long the lock is held without another word.
        fence: once it is held.
        asked_at: when the call was sent that is answered now (monotonic seconds): the lock's time counts from there.
        unsure: whether something may stand on the server that has to be taken back if the attempt is given up.
    """

    def __init__(self, name: str, *, ttl_ms: int, wait_ms: int | None, owner: str, job: str) -> None:
        self.name = name
        self.token = secrets.token_hex(16)
        self.ttl_ms = ttl_ms
        self.fence = 0
        self.unsure = False
        self.asked_at = 0.0
        self._wait_ms = wait_ms
        self._owner, self._job = owner, job
        self._began = time.monotonic()
        self._answer: LockAnswer | None = None
        self._error: Unavailable | None = None

    def ask(self, c: ClusterKeys) -> Command[LockAnswer]:
        """The next call."""
        self.unsure = True
        self.asked_at = time.monotonic()
        return commands.lock_acquire(
            c,
            name=self.name,
            token=self.token,
            ttl_ms=self.ttl_ms,
            waits=self._wait_ms != 0,
            place=self._answer.place if self._answer else "",
            owner=self._owner,
            job=self._job,
        )

    def hear(self, answer: LockAnswer) -> bool:
        """Whether it is held. An answer so late that the time may be over is none."""
        self._answer, self._error = answer, None
        self.unsure = answer.word != "taken"
        if answer.word == "held" and time.monotonic() < self.asked_at + self.ttl_ms / 1000:
            self.fence = answer.fence
            return True
        return False

    def away(self, error: Unavailable) -> None:
        """The server didn't answer. Raises that, unless this one stands in the line and it may pass."""
        if self._answer is None or not passes(error):
            raise error
        self._error = error

    def pause_s(self) -> float:
        """How long to listen before the next look.

        Raises:
            LockTimeout, Unavailable: `wait` is over.
        """
        look_s = _AWAY_S if self._error or not self._answer else self._answer.look_ms / 1000
        if self._wait_ms is None:
            return look_s
        left_s = self._began + self._wait_ms / 1000 - time.monotonic()
        if left_s > 0:
            return min(look_s, left_s)
        if self._error is not None:
            raise self._error
        if self._answer is not None and self._answer.word == "held":
            raise Unavailable(f"the server's answers come later than a lock of {duration_text(self.ttl_ms)} lasts")
        raise LockTimeout(self._refusal())

    def _refusal(self) -> str:
        answer, within = self._answer, ""
        if self._wait_ms:
            within = f" within {duration_text(self._wait_ms)}"
        if answer is None or not answer.owner:
            return f"the lock {self.name!r} was not to be had{within}: others waited before"
        job = f" for job {answer.job}" if answer.job else ""
        return f"the lock {self.name!r} was not free{within}: {answer.owner} holds it{job}"
