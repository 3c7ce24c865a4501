"""How many jobs a worker may still claim before another takes its place: a leak in user code then ends with it."""

from __future__ import annotations

from collections.abc import Callable

_NO_END = 1 << 62


class Quota:
    """The jobs of one worker.

    Attributes:
        left: how many more it may claim.

    Args:
        most: how many in all; 0 = no end.
        ageing: called once when a tenth is left, or the last one: time to load another worker.
        used_up: called once when none is left.
    """

    def __init__(self, most: int, *, ageing: Callable[[], None], used_up: Callable[[], None]) -> None:
        self.left = most or _NO_END
        self._late = max(1, most // 10)
        self._ageing = ageing
        self._used_up = used_up
        self._said = False

    def begins(self) -> None:
        """The worker begins to claim."""
        self.took(0)

    def took(self, jobs: int) -> None:
        """So many were claimed."""
        before, self.left = self.left, max(0, self.left - jobs)
        if not self._said and self.left <= self._late:
            self._said = True
            self._ageing()
        if before and not self.left:
            self._used_up()
