"""Jobs that are added evenly over some seconds, beside whatever else a test does."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

_BATCH = 250


class Load:
    """Adds jobs in a thread while its block lasts, and to the end.

    Args:
        add: takes calls, and enqueues them.
        call: gives the call of the n-th job.
        count: how many. `seconds`: over how long.
    """

    def __init__(
        self, add: Callable[[list[Any]], object], call: Callable[[int], Any], count: int, seconds: float
    ) -> None:
        self._add, self._call, self._count, self._seconds = add, call, count, seconds
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> Self:
        self._added = self._pool.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
        self._added.result()

    def _run(self) -> None:
        began = time.monotonic()
        for first in range(0, self._count, _BATCH):
            time.sleep(max(0.0, began + self._seconds * first / self._count - time.monotonic()))
            self._add([self._call(n) for n in range(first, min(self._count, first + _BATCH))])
