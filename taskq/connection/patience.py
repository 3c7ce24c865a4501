"""How long to go on trying: a deadline on the monotonic clock, and the pauses between attempts."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 1.0
_MUCH_LATER, _HELD_UP_MAX = 1.25, 3


class Patience:
    """One call's deadline. The first repeat is immediate: most often a connection went stale while it was idle.

    Args:
        deadline_s: how long to try.
        resend_s: how long after it was first sent the call may be sent again; None: until the deadline.
        strict: what the call waits for its turn here counts; else it doesn't while others get theirs, since that says
            nothing about the server.
    """

    __slots__ = ("_attempts", "_held_up", "_resend_s", "_resend_until", "_until", "strict")

    def __init__(self, deadline_s: float, *, resend_s: float | None = None, strict: bool = True) -> None:
        self._until = time.monotonic() + deadline_s
        self._resend_s = resend_s
        self._resend_until: float | None = None
        self._attempts = 0
        self._held_up = 0
        self.strict = strict

    def waited(self, seconds: float) -> None:
        """The call waited for its turn while others were answered."""
        if not self.strict:
            self._until += seconds

    def held_up(self, began: float, allowed_s: float) -> None:
        """An attempt that began then (monotonic seconds) failed. If it ended much later than it was to, this process
        was held up and read no answer meanwhile: that time isn't the server's.
        """
        lasted_s = time.monotonic() - began
        if not self.strict and lasted_s > allowed_s * _MUCH_LATER and self._held_up < _HELD_UP_MAX:
            self._held_up += 1
            self._until += lasted_s

    def sending(self) -> bool:
        """The call is about to be sent, perhaps again. Whether its end may be nearer than it was, the first time."""
        if self._resend_s is None or self._resend_until is not None:
            return False
        self._resend_until = time.monotonic() + self._resend_s
        return True

    def refused(self) -> None:
        """The server answered that it did nothing. If the call was sent once only, it is as if it had not been sent."""
        if self._attempts == 0:
            self._resend_until = None

    def left_s(self) -> float:
        """Seconds until the deadline; negative after it."""
        until = self._until if self._resend_until is None else min(self._until, self._resend_until)
        return until - time.monotonic()

    def turn_s(self) -> float | None:
        """How long the call may wait for its turn; None: while others get theirs."""
        return self.left_s() if self.strict or self._resend_until is not None else None

    def pause_s(self) -> float | None:
        """How long to wait before the next attempt; None when the deadline leaves no time for one."""
        self._attempts += 1
        if self._attempts == 1:
            pause = 0.0
        else:
            pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(self._attempts - 2, 10))
            pause *= random.uniform(0.5, 1.0)
        return pause if self.left_s() > pause else None


def soonest(times_s: Iterable[float | None]) -> float | None:
    """The shortest of these; None if none is given."""
    return min((each for each in times_s if each is not None), default=None)
