"""How long to go on trying: a deadline on the monotonic clock, and the pauses between attempts."""

from __future__ import annotations

import random
import time

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 1.0


class Patience:
    """One call's deadline. The first repeat is immediate: most often a connection went stale while it was idle."""

    __slots__ = ("_attempts", "_until")

    def __init__(self, deadline_s: float) -> None:
        self._until = time.monotonic() + deadline_s
        self._attempts = 0

    def left_s(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self._until - time.monotonic()

    def pause_s(self) -> float | None:
        """How long to wait before the next attempt; None when the deadline leaves no time for one."""
        self._attempts += 1
        if self._attempts == 1:
            pause = 0.0
        else:
            pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(self._attempts - 2, 10))
            pause *= random.uniform(0.5, 1.0)
        return pause if self.left_s() > pause else None
