"""The jobs in this worker's hands: written into the shared table when claimed, struck out when Redis knows their end.

A slot of the table and a slot of a class aren't the same. A class has its slot back when the job's code ends; the table
keeps the job until Redis has answered for it, so that the node renews the lease while the finish is on its way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from taskq.commands import Claimed
from taskq.keys import QueueKeys
from taskq.log import get_logger
from taskq.node.table import Table, now_ms
from taskq.node.worker.known import Known
from taskq.node.worker.outcome import Ending
from taskq.node.worker.running import Running, Stop
from taskq.node.worker.suspects import Suspects, is_suspect

FORCE_MS = 2_000  # how long a coroutine that is cancelled by force may take to stop

log = get_logger(__name__)


class Desk:
    """What this worker holds.

    Attributes:
        held: the jobs, by their slot in the table.
        closed: nothing begins any more: what is still claimed is released.
        empty: set while nothing is held.

    Args:
        table: shared with the node.
        tasks: what this worker knows, by name.
    """

    def __init__(self, table: Table, tasks: Mapping[bytes, Known]) -> None:
        self.held: dict[int, Running] = {}
        self.closed = False
        self.empty = asyncio.Event()
        self.empty.set()
        self._table = table
        self._tasks = tasks
        self._run: Callable[[Iterable[Running]], None]
        self._suspects: Suspects
        self._commit: Callable[[Running, Ending], None]
        self._freed: Callable[..., None]

    def serve(
        self,
        *,
        run: Callable[[Iterable[Running]], None],
        commit: Callable[[Running, Ending], None],
        freed: Callable[..., None],
    ) -> None:
        """Connect the others: `run` begins jobs, `commit` sends a finish, `freed` hears of what is free."""
        self._run = run
        self._suspects = Suspects(run)
        self._commit = commit
        self._freed = freed

    def start(
        self, queue: QueueKeys, claimed: list[Claimed], until_ms: int, free: Mapping[str, int] | None = None
    ) -> dict[str, int]:
        """Write down claimed jobs, and begin them. They stand in the table before this returns.

        Gives what they take of each pool. `free`: what is free; jobs for which that doesn't suffice are released.
        """
        tasks, held, name, since = self._tasks, self.held, queue.name, time.monotonic()
        fill = self._table.fill
        taken: dict[str, int] = {"async": 0, "thread": 0}
        jobs: list[Running] = []
        suspects: list[Running] = []
        for each in claimed:
            job = Running(each, name, tasks.get(each.fields.get(b"task", b"")), since)
            executor = job.executor
            taken[executor] += 1
            for pool, amount in job.takes:
                taken[pool] = taken.get(pool, 0) + amount
            place = known.place if (known := job.known) is not None else -1
            job.slot = fill(job.epoch, job.id, until_ms=until_ms, threaded=executor == "thread", task=place)
            held[job.slot] = job
            if self.closed or (free is not None and _is_too_much(job, taken, free)):
                job.stop = Stop.SHUTDOWN
            (suspects if job.attempt > 1 and is_suspect(job) else jobs).append(job)
        self.empty.clear()
        self._run(jobs)
        if suspects:
            self._suspects.hold(suspects)
            self._suspects.let_go()
        return taken

    def begun(self, job: Running) -> None:
        """The job's code is about to begin: from here on its worker's death counts, and its hard timeout."""
        self._table.begin(job.slot, now_ms() + job.kill_after_ms if job.kill_after_ms else 0)

    def finish(self, job: Running, ending: Ending | None) -> None:
        """The job's code has ended, or will not begin."""
        if job.current is None:
            self._table.take_back(job.slot)
        else:
            self._table.end(job.slot)
        self._freed(job.executor, job.queue, *job.takes)
        if ending is None:  # its lease is lost; whoever looks for the job elsewhere must find a word of it
            log.warning("lease lost", job_id=job.id, epoch=job.epoch)
            self._strike_out(job)
        else:
            self._commit(job, ending)

    def settled(self, job: Running, word: str) -> None:
        """Redis has answered for the job."""
        if word == "lost":
            log.info("a finish came too late: the lease was lost", job_id=job.id, epoch=job.epoch)
        self._strike_out(job)

    def verdict(self, op: Literal["lost", "cancel", "force"], id: str, epoch: int) -> None:
        """What the renewal said of a job. One whose code has ended is past it: its finish is on the way."""
        for job in self.held.values():
            if job.id == id and job.epoch == epoch and not job.ended:
                job.halt(Stop.LOST if op == "lost" else Stop.CANCEL)
                if op == "force":
                    # Code in a thread can't be stopped, and a coroutine may refuse: then the node replaces this
                    # worker, as for a hard timeout.
                    patience_ms = 0 if job.executor == "thread" else FORCE_MS
                    self._table.set_hard_deadline(job.slot, now_ms() + patience_ms)
        self._suspects.let_go()

    def close(self) -> None:
        """Begin nothing any more."""
        self.closed = True
        for job in self._suspects.waiting:
            job.halt(Stop.SHUTDOWN)
        self._suspects.let_go()

    def halt_all(self, why: Stop) -> None:
        """Ask all code to stop."""
        for job in list(self.held.values()):
            job.halt(why)
        self._suspects.let_go()

    def check_leases(self) -> None:
        """Nobody renews any more: stop what is past its lease, because another may be running it."""
        now = now_ms()
        for slot, job in list(self.held.items()):
            if not job.ended and now >= self._table.until(slot):
                job.halt(Stop.LOST)
        self._suspects.let_go()

    def _strike_out(self, job: Running) -> None:
        if self.held.get(job.slot) is job:  # an answer that comes twice must not strike out the slot's next job
            del self.held[job.slot]
            self._table.free(job.slot)
            if job.attempt > 1:
                self._suspects.settled(job)
            if not self.held:
                self.empty.set()


def _is_too_much(job: Running, taken: Mapping[str, int], free: Mapping[str, int]) -> bool:
    return any(taken[pool] > free.get(pool, 0) for pool in (job.executor, *(pool for pool, _ in job.takes)))
