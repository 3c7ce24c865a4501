"""The job of all peers: nothing but a count. Between the first tenth and the last job lies the time that is told.

So the start of a worker doesn't count, and no library is asked whether it is done: the job itself knows.
"""

from __future__ import annotations

import os
import time
from itertools import count
from pathlib import Path

JOBS = int(os.environ.get("PEER_JOBS", "0"))

_numbers = count(1)
_began = 0.0


def hit() -> None:
    """One more job has run. The last of them writes jobs a second where the bench looks for it."""
    global _began  # noqa: PLW0603 (one number a process)
    number = next(_numbers)
    if number == JOBS // 10:
        _began = time.perf_counter()
    elif number == JOBS:
        rate = (JOBS - JOBS // 10) / (time.perf_counter() - _began)
        there = Path(os.environ["PEER_RESULT"])
        there.with_suffix(".new").write_text(str(rate), encoding="ascii")
        there.with_suffix(".new").rename(there)
