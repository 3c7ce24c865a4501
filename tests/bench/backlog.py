"""A queue with a backlog: so many waiting, scheduled and failed jobs, put there by our own commands, pipelined.

Jobs are alike and named by number, so that a call does the same on a queue of any size. The time is given, as in all
tests of scripts: it is the same on each, and what is scheduled becomes due when the caller says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import redis

from taskq import commands, keys, scripts
from taskq.commands import Claim, Claimed, Command, Failure, NewJob

T0 = 1_800_000_000_000  # the start of a minute
DAY_MS = 86_400_000
LEASE_MS = DAY_MS
ERROR = '{"type": "ValueError"}'
_CALL = 250
_CALLS_AT_ONCE = 16


class Sizes(NamedTuple):
    """How many jobs stand in each state before anything is measured."""

    waiting: int
    scheduled: int
    failed: int

    def over(self, divisor: int) -> Sizes:
        """The same, that many times smaller."""
        return Sizes(*(size // divisor for size in self))


NONE = Sizes(0, 0, 0)


class Backlog:
    """One queue on a server of its own, and a clock that only the caller moves."""

    def __init__(self, client: redis.Redis, sizes: Sizes, *, namespace: str = "bench", batch: int = 100) -> None:
        self.client = client
        self.sizes = sizes
        self.batch = batch
        self.q = keys.queue(namespace, "default")
        self.c = keys.cluster(namespace)
        self.now = T0
        self._made = self._middle = self._asked = 0
        self._requests = 0

    def fill(self, tell: Callable[[str, int, int], None] = lambda what, done, of: None) -> None:
        """Puts the backlog there. `tell` hears how far it is."""
        for name in scripts.names():
            self.client.script_load(scripts.load(name).source)
        # What fails later pushes out as many of the old ones; what completes goes after the least time allowed.
        kept = {"keep_completed": 15_000, "keep_failed": 14 * DAY_MS, "max_failed": self.sizes.failed or 1000}
        self.run(commands.declare(self.q, kinds={"t": "async"}, retention=kept, now=self.now))
        self.run(commands.register_queue(self.c, "default"))
        self._send(self._failing(self.sizes.failed), "failed", self.sizes.failed, tell)
        self._send(self._adding("s", self.sizes.scheduled, due=f"+{DAY_MS}"), "scheduled", self.sizes.scheduled, tell)
        self._send(self._adding("w", self.sizes.waiting), "waiting", self.sizes.waiting, tell)
        self._asked = 0

    # --- calling

    def run(self, command: Command[Any]) -> Any:
        """Calls a command."""
        return command.read(self._evalsha(self.client, command))

    def new(self, **options: str) -> list[NewJob]:
        """A batch of jobs that aren't there yet."""
        jobs = [self._job(f"x-{self._made + number}", **options) for number in range(self.batch)]
        self._made += self.batch
        return jobs

    def add(self, **options: str) -> list[str]:
        """A batch more, at the end; their ids."""
        jobs = self.new(**options)
        self.run(commands.enqueue(self.q, jobs, now=self.now))
        return [job.id for job in jobs]

    def claim(self, *, limit: int | None = None, worker: str = "n.1", lease_ms: int = LEASE_MS) -> Command[Claim]:
        """The next claim."""
        self._requests += 1
        request, limit = self._requests, limit or self.batch
        self._asked += limit
        free = {"async": limit, "thread": limit}
        return commands.claim(
            self.q, worker=worker, request=request, lease_ms=lease_ms, limit=limit, free=free, now=self.now
        )

    def held(self, **options: Any) -> list[Claimed]:
        """A batch that `n.1` runs; as many are added at the end, so that the backlog stays as long as it was."""
        self.add()
        claim = self.run(self.claim(**options))
        assert len(claim.jobs) == self.batch, f"{claim.word}: {len(claim.jobs)} of {self.batch}"
        jobs: list[Claimed] = claim.jobs
        return jobs

    def failed(self) -> list[str]:
        """A batch that has just failed."""
        jobs = self.held()
        failures = [Failure(job.id, job.epoch, "fail", 0, ERROR, "ValueError: x") for job in jobs]
        self.run(commands.fail(self.q, worker="n.1", failures=failures, now=self.now))
        return [job.id for job in jobs]

    def middle(self) -> list[str]:
        """A batch in the middle of those that wait, another at each call, and never one that a claim can have reached:
        it may be gone. Added now if there is none, as without a backlog.
        """
        first = max(self.sizes.waiting // 2, self._asked) + self._middle
        self._middle += self.batch
        if first + self.batch > self.sizes.waiting:
            return self.add()
        return [f"default:w-{number}" for number in range(first, first + self.batch)]

    # --- filling

    @staticmethod
    def _evalsha(client: Any, command: Command[Any]) -> Any:
        return client.evalsha(command.script.sha, len(command.keys), *command.keys, *command.args)

    @staticmethod
    def _job(name: str, due: str = "", expires: str = "") -> NewJob:
        return NewJob(f"default:{name}", "", "t", "async", 0, due, expires, {"payload": b"x" * 200})

    def _adding(self, letter: str, count: int, due: str = "") -> Iterator[list[Command[Any]]]:
        for first in range(0, count, _CALL):
            jobs = [self._job(f"{letter}-{number}", due) for number in range(first, min(first + _CALL, count))]
            yield [commands.enqueue(self.q, jobs, now=self.now)]

    def _failing(self, count: int) -> Iterator[list[Command[Any]]]:
        """Added, claimed and failed, a batch after the other; what a claim gives is known, as nothing else waits."""
        epoch = T0
        for first in range(0, count, _CALL):
            jobs = [self._job(f"f-{number}") for number in range(first, min(first + _CALL, count))]
            failures = [Failure(job.id, epoch, "fail", 0, ERROR, "ValueError: x") for job in jobs]
            yield [
                commands.enqueue(self.q, jobs, now=self.now),
                self.claim(limit=len(jobs)),
                commands.fail(self.q, worker="n.1", failures=failures, now=self.now),
            ]

    def _send(
        self,
        batches: Iterable[Sequence[Command[Any]]],
        what: str,
        total: int,
        tell: Callable[[str, int, int], None],
    ) -> None:
        pipeline, done, waiting = self.client.pipeline(transaction=False), 0, 0
        for batch in batches:
            for command in batch:
                self._evalsha(pipeline, command)
            waiting += 1
            if waiting == _CALLS_AT_ONCE:
                pipeline.execute()
                done, waiting = done + waiting * _CALL, 0
                tell(what, done, total)
        pipeline.execute()
        tell(what, total, total)
