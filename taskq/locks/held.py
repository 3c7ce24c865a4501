"""`Held`: one acquisition of a lock, as this process knows it. No reply is no lock: what the server was last asked and
answered counts from the moment it was asked, by the monotonic clock, and when that time is over the lock is lost.
"""

from __future__ import annotations

import os
import time

from taskq import commands
from taskq.commands import Command
from taskq.connection import Server
from taskq.keys import ClusterKeys

#: Of its time a third has passed when it is renewed, so that two more tries fit in.
RENEW_AT = 3
_RETRY_MAX_S = 0.5

NO_ANSWER = "the server didn't confirm it before its time ran out"
NOT_OURS = "the server says that it ended, was released, or is another's"
FORKED = "the process that this one was forked from holds it"


class Held:
    """An acquisition.

    Attributes:
        name, token, fence: which.
        ttl_ms: how long it is held without another word.
        server: where, for threads.
        due_at: when to renew it (monotonic seconds).
    """

    __slots__ = (
        "__weakref__", "_keys", "_pid", "_why", "due_at", "ends_at", "fence", "name", "server", "token", "ttl_ms",
    )  # fmt: skip

    def __init__(
        self, c: ClusterKeys, server: Server, *, name: str, token: str, fence: int, ttl_ms: int, asked_at: float
    ) -> None:
        self._keys = c
        self._pid = os.getpid()
        self._why = ""
        self.server = server
        self.name = name
        self.token = token
        self.fence = fence
        self.ttl_ms = ttl_ms
        self.ends_at = self.due_at = asked_at
        self._holds_from(asked_at, ttl_ms)

    @property
    def is_here(self) -> bool:
        """Whether this very process acquired it, not the one that it was forked from."""
        return self._pid == os.getpid()

    @property
    def lost(self) -> str:
        """Why it is lost; '' while it is held. Once lost it stays so."""
        if not self._why and not self.is_here:
            return FORKED
        if not self._why and time.monotonic() >= self.ends_at:
            self._why = NO_ANSWER
        return self._why

    @property
    def left_s(self) -> float:
        """How long it is surely held."""
        return 0.0 if self.lost else max(0.0, self.ends_at - time.monotonic())

    def extend(self, ttl_ms: int | None = None) -> Command[str]:
        """The call that holds it for at least so long from now on; without a time for its own."""
        return commands.lock_extend(self._keys, name=self.name, token=self.token, ttl_ms=ttl_ms or self.ttl_ms)

    def release(self) -> Command[str]:
        """The call that gives it back."""
        return commands.lock_release(self._keys, name=self.name, token=self.token)

    def answered(self, word: str, asked_at: float, ttl_ms: int | None = None) -> None:
        """The server's answer to `extend`, and when it was asked. It comes too late if the time is over by now."""
        if word != "ok":
            self._why = self._why or NOT_OURS
        elif not self.lost:
            self._holds_from(asked_at, ttl_ms or self.ttl_ms)

    def unanswered(self) -> None:
        """There was no answer: ask again soon."""
        self.due_at = time.monotonic() + min(_RETRY_MAX_S, self.ttl_ms / 10_000)

    def _holds_from(self, asked_at: float, ttl_ms: int) -> None:
        self.ends_at = max(self.ends_at, asked_at + ttl_ms / 1000)
        self.due_at = asked_at + min(ttl_ms, self.ttl_ms) / 1000 / RENEW_AT
