"""Says when the clocks of this host and of Redis differ. Nothing here goes by the host's clock, so such a node may also
lead; but its log and its jobs do, and whoever compares times over hosts should know.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from taskq.log import get_logger

BY_S = 2.0
AGAIN_S = 3_600.0

log = get_logger(__name__)


class Skew:
    """What is known of the difference. `wall`: the host's clock, seconds since 1970; `clock`: seconds, monotonic."""

    def __init__(self, wall: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic) -> None:
        self.wall = wall
        self._clock = clock
        self._said_at: float | None = None

    def hear(self, asked_at: float, now_ms: int) -> None:
        """The server said what time it is, between `asked_at` and now by the host's clock. Said once an hour, and when
        it is over.
        """
        answered_at, told_at = self.wall(), now_ms / 1000
        by_s = max(asked_at - told_at, told_at - answered_at, 0.0) if asked_at <= answered_at else 0.0
        if by_s <= BY_S:
            if self._said_at is not None:
                self._said_at = None
                log.info("this host's clock agrees with Redis's again")
        elif self._said_at is None or self._clock() - self._said_at >= AGAIN_S:
            self._said_at = self._clock()
            ahead_s = round(answered_at - told_at, 1)
            log.warning("this host's clock and Redis's differ: times in its log and jobs are its own", ahead_s=ahead_s)
