"""How many jobs a worker may still run before another takes its place: a leak in user code then ends with it.

What it has claimed counts from its claim, so that it never has more in hand than it may run; what was handed back
unbegun doesn't count.
"""

from __future__ import annotations

from collections.abc import Callable

_NO_END = 1 << 62


class Quota:
    """The jobs of one worker.

    Attributes:
        left: how many more it may claim.

    Args:
        most: how many it may run in all; 0 = no end.
        ageing: called once when it has a tenth to run, or the last one: time to load another worker.
        used_up: called once when the last one has begun.
    """

    def __init__(self, most: int, *, ageing: Callable[[], None], used_up: Callable[[], None]) -> None:
        self.left = most or _NO_END
        self._to_begin = self.left
        self._late = max(1, most // 10)
        self._ageing = ageing
        self._used_up = used_up
        self._said = False

    def begins(self) -> None:
        """The worker begins to claim."""
        if not self._said and self._to_begin <= self._late:
            self._said = True
            self._ageing()

    def took(self, jobs: int) -> None:
        """So many were claimed."""
        self.left -= jobs

    def gave_back(self) -> None:
        """One ended without having begun."""
        self.left += 1

    def began(self) -> None:
        """One begins to run."""
        self._to_begin -= 1
        self.begins()
        if not self._to_begin:
            self._used_up()
