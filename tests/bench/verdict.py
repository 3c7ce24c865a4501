"""Flat or growing: what a row of memory samples says.

Compared are the medians of the three thirds, after a warm-up. An allocator's steps and noise are no growth; what is
higher by more than that in the middle than at the start, and again at the end, is.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

WARM_UP = 0.1
TOLERATED = 0.05
TOLERATED_BYTES = 1_000_000


class Verdict(NamedTuple):
    """The medians of the thirds in bytes, the trend of the last two in bytes an hour, and what follows."""

    thirds: tuple[float, float, float]
    an_hour: float
    is_growing: bool


def verdict(samples: Sequence[tuple[float, float]]) -> Verdict:
    """What (seconds, bytes) say; at least nine of them."""
    warm = samples[round(len(samples) * WARM_UP) :]
    third = len(warm) // 3
    parts = warm[:third], warm[third : 2 * third], warm[2 * third :]
    first, middle, last = (statistics.median(value for _, value in part) for part in parts)
    allowed = max(TOLERATED * first, TOLERATED_BYTES)
    later = [*parts[1], *parts[2]]
    slope = statistics.linear_regression([at for at, _ in later], [value for _, value in later]).slope
    is_growing = last - first > allowed and last - middle > allowed / 4 and slope > 0
    return Verdict((first, middle, last), slope * 3600, is_growing)
