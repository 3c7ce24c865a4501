"""What really ran, told by the jobs themselves to a second server that no fault touches.

A task writes `start` when its code begins and `end` when it is done: with the job's id, the attempt, the epoch, the
process and the monotonic clock, which all processes of a host share. So a test can tell one run from two, whatever the
queue's own records say. A worker finds the ledger by TASKQ_TEST_LEDGER in its environment.
"""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import redis

from taskq import current

VARIABLE = "TASKQ_TEST_LEDGER"
_KEY, _TOLD = "ledger", "told"


class Entry(NamedTuple):
    """One line: `what` is start, end or another word of the task's; `at` is monotonic, in seconds."""

    what: str
    job: str
    attempt: int
    epoch: int
    pid: int
    at: float


class Ledger:
    """The ledger behind a URL, for tests to read."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = redis.Redis.from_url(url, decode_responses=True)

    def entries(self, what: str | None = None, job: str | None = None) -> list[Entry]:
        """What was written, in order of arrival; only some words or one job's if asked."""
        lines: list[Any] = self._client.lrange(_KEY, 0, -1)
        rows = [line.split(" ") for line in lines]
        entries = [Entry(row[0], row[1], int(row[2]), int(row[3]), int(row[4]), float(row[5])) for row in rows]
        return [each for each in entries if what in {None, each.what} and job in {None, each.job}]

    def starts(self, job: str | None = None) -> list[Entry]:
        """Every beginning of a job's code."""
        return self.entries("start", job)

    def ends(self, job: str | None = None) -> list[Entry]:
        """Every end of a job's code that it reached itself."""
        return self.entries("end", job)

    def more_than_once(self) -> dict[str, int]:
        """The jobs whose code began more than once, and how often."""
        return {job: n for job, n in Counter(each.job for each in self.starts()).items() if n > 1}

    def tell(self, word: str) -> None:
        """Let the jobs that wait for this word go on (`until_told`)."""
        self._client.sadd(_TOLD, word)

    def clear(self) -> None:
        """Forget everything."""
        self._client.delete(_KEY, _TOLD)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def most_at_once(entries: Iterable[Entry], struck: Mapping[int, float] | None = None) -> int:
    """How many of these runs there were at the same time at most.

    Args:
        entries: of the jobs that are meant; each run must have an end, unless its process was struck.
        struck: pid → when it was killed or stopped for longer than a lease. What it had begun counts until then: its
            job was another's afterwards, whatever it did when it went on.
    """
    struck = struck or {}
    listed = sorted(entries, key=lambda each: each.at)
    ends = {(each.job, each.epoch): each.at for each in listed if each.what == "end"}
    last = {each.job: each.epoch for each in listed if each.what == "start"}
    moments: list[tuple[float, int]] = []
    for each in listed:
        if each.what != "start":
            continue
        end = ends.get((each.job, each.epoch))
        if each.pid in struck and (end is None or each.epoch < last[each.job]):
            end = struck[each.pid] if end is None else min(end, struck[each.pid])
        assert end is not None, f"{each} began and never ended"
        if end > each.at:
            moments += [(each.at, 1), (end, -1)]
    now = most = 0
    for _, by in sorted(moments):
        now += by
        most = max(most, now)
    return most


# --- the tasks' side ------------------------------------------------------------------------------------------------


def note(what: str) -> None:
    """Write a line about the job that runs here. Returns once the ledger has it."""
    job = current()
    line = f"{what} {job.id} {job.attempt} {job.epoch} {os.getpid()} {time.monotonic():.6f}"
    _writer().rpush(_KEY, line)


async def until_told(word: str) -> None:
    """Returns once the test has told this word."""
    while not _writer().sismember(_TOLD, word):  # noqa: ASYNC110 (another process tells it)
        await asyncio.sleep(0.05)


@contextmanager
def noted() -> Iterator[None]:
    """`start` before the block, `end` after it; nothing if the block is left by an exception."""
    note("start")
    yield
    note("end")


@functools.cache
def _writer() -> redis.Redis:
    return redis.Redis.from_url(os.environ[VARIABLE])
