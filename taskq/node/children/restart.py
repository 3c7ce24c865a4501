"""When a worker that died is started again: at once, then ever later while it keeps dying."""

from __future__ import annotations

FIRST_S = 0.5
MAX_S = 30.0
SETTLED_MS = 30_000  # having lived so long, it starts afresh


class Restarts:
    """The deaths in a row of one worker's place."""

    def __init__(self) -> None:
        self.in_a_row = 0

    def delay_s(self, lived_ms: int) -> float:
        """After a life of `lived_ms`: how long to wait. 0, then 0.5 s, doubled up to 30 s."""
        self.in_a_row = 1 if lived_ms >= SETTLED_MS else self.in_a_row + 1
        if self.in_a_row == 1:
            return 0.0
        return float(min(MAX_S, FIRST_S * 2 ** min(self.in_a_row - 2, 10)))
