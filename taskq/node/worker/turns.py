"""Which queue a worker asks next: the best first, or each in its turn by weight.

By weight, each queue has a clock that its jobs move on, the less the heavier it is, and the one whose clock is behind
comes next. A queue that had nothing for a while is no further behind than the others: it saves no turns up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence


class Turns:
    """The order of some queues. `names`: best first. `weights`: by name, 1 where none is given; none at all: strict."""

    def __init__(self, names: Sequence[str], weights: Mapping[str, float]) -> None:
        self._weights = {name: weights.get(name, 1.0) for name in names} if weights else {}
        self._clocks = dict.fromkeys(names, 0.0)
        self._now = 0.0

    def next(self, names: Iterable[str]) -> str | None:
        """Who of these, given best first, is asked next; None if there is nobody."""
        if not self._weights:
            return next(iter(names), None)
        return min(names, key=lambda name: max(self._clocks[name], self._now), default=None)

    def took(self, name: str, jobs: int) -> None:
        """So many of its jobs were claimed."""
        if self._weights and jobs:
            self._now = max(self._clocks[name], self._now)
            self._clocks[name] = self._now + jobs / self._weights[name]

    def part(self, name: str, slots: int, contending: Iterable[str]) -> int:
        """How many of `slots` a claim of this queue may take while these have something too."""
        if not self._weights or slots <= 0:
            return slots
        others = sum(self._weights[each] for each in contending if each != name)
        return math.ceil(slots * self._weights[name] / (self._weights[name] + others))
