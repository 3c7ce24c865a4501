"""A fault on trial: what the ledger and the queue say of it once it is over, as a row of the table in docs/faults.md.

A test that strikes a fault is marked `fault("its name")`. After it, every job that was accepted must have ended
(CONSERVE), none may have been run again but for a holder that was struck (ONE-HOLDER), no word of an older holder may
stand in a record, every worker must have done something new since (ALIVE, RECOVER), and nobody may have walked the
keyspace (CHEAP).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import redis

from taskq import commands
from tests.chaos.conserve import Snapshot
from tests.chaos.walks import Walks
from tests.fleet import Fleet
from tests.ledger import Entry, Ledger
from tests.waiting import wait_until

#: Every fault, in the table's order.
FAULTS = (
    "SIGKILL of a worker",
    "SIGKILL of a node",
    "SIGKILL of everything",
    "SIGKILL of the leader, again and again",
    "SIGSTOP of a worker",
    "SIGSTOP of a node",
    "SIGSTOP of everything",
    "The server restarts with its append-only file",
    "The server restarts without its data",
    "The server stands still",
    "DEBUG SLEEP of the server",
    "FLUSHALL under load",
    "The script cache is emptied all the time",
    "CLIENT KILL of everybody every second",
    "The reply of each script is cut in the middle",
    "The reply of every fifth call is lost",
    "All replies are lost for a while",
    "Connections become black holes",
    "A slow network",
    "maxmemory is reached and freed",
    "Clocks hours apart",
    "A storm of everything at random",
)

HEADINGS = ("fault", "jobs", "run again", "lost", "accepted stale writes", "recovered after")


@dataclass
class Row:
    """What one fault did. `again`: runs whose holder was struck, so that another had to begin."""

    fault: str
    jobs: int = 0
    again: int = 0
    lost: int = 0
    stale: int = 0
    recovered_s: float | None = None

    def add(self, other: Row) -> None:
        """The same fault, struck once more."""
        self.jobs += other.jobs
        self.again += other.again
        self.lost += other.lost
        self.stale += other.stale
        times = [each for each in (self.recovered_s, other.recovered_s) if each is not None]
        self.recovered_s = max(times, default=None)

    def cells(self) -> tuple[str, ...]:
        """As the table shows it."""
        recovered = "" if self.recovered_s is None else f"{self.recovered_s:.1f} s"
        return (self.fault, f"{self.jobs:,}", f"{self.again:,}", str(self.lost), str(self.stale), recovered)

    @classmethod
    def read(cls, line: str) -> Row:
        """A line of the table, back again; ValueError for one that no run can have printed."""
        fault, jobs, again, lost, stale, recovered = (cell.strip() for cell in line.strip("|").split("|"))
        return cls(fault, *(int(each.replace(",", "")) for each in (jobs, again, lost, stale)), _seconds(recovered))


def _seconds(cell: str) -> float | None:
    return float(cell.removesuffix(" s")) if cell else None


def table(rows: Iterable[Row]) -> str:
    """The rows in the order of `FAULTS`, as Markdown."""
    merged: dict[str, Row] = {}
    for row in rows:
        merged.setdefault(row.fault, Row(row.fault)).add(row)
    lines = [HEADINGS, ("---",) * len(HEADINGS)]
    lines += [merged[fault].cells() for fault in FAULTS if fault in merged]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class Trial:
    """One fault, struck by one test.

    Attributes:
        struck: pids whose jobs may be run again, because they were killed or stood still past their leases.
        look, fleet: as the fixtures of these names.
        walks: is told before the server is killed.
    """

    def __init__(self, fault: str, shop: Any, raw: redis.Redis, look: Any, fleet: Fleet) -> None:
        assert fault in FAULTS, f"{fault!r} is not among the faults of tests/chaos/trial.py"
        self.struck: set[int] = set()
        self._row = Row(fault)
        self.look, self.fleet = look, fleet
        self._shop, self._raw = shop, raw
        self._ledger: Ledger = look.ledger
        self._since: float | None = None
        self.walks = Walks(raw)

    def over(self, within_s: float = 20) -> None:
        """The fault is over now. Waits until every worker has begun a new job, and notes how long that took."""
        self._since = time.monotonic()
        seen: set[int] = set()

        def all_alive() -> bool:
            self._shop.nap.using(priority=100).enqueue(0)
            seen.update(each.pid for each in self._ledger.starts() if each.at > self._since)
            wanted = {pid for node in self.fleet.living() for pid in node.workers()}
            return bool(wanted) and wanted <= seen

        wait_until(all_alive, within_s, step_s=0.05, what="a new job on every worker")
        self.recovered(time.monotonic() - self._since)

    def recovered(self, seconds: float) -> None:
        """How long it took; the longest time counts."""
        self._row.add(Row(self._row.fault, recovered_s=seconds))

    def verdict(self) -> Row:
        """Wait for the end of what runs; then count, and insist that nothing was lost or done by the wrong hand."""
        wait_until(self.all_ended, 60, what="the end of all jobs")
        accepted, row = self.look.accepted, self._row
        found = judged(accepted, Snapshot(self._raw, self.look.q).jobs, self._ledger, self.struck)
        row.jobs, row.again, row.lost, row.stale = len(accepted), found.again, len(found.lost), len(found.stale)
        found.insist()
        self.walks.insist()
        return row

    def all_ended(self) -> bool:
        """Whether no job waits or runs."""
        counts = self.look.run(commands.counts(self.look.q))
        return not (counts.available or counts.running or counts.scheduled or counts.retryable or self.look.leases())


@dataclass
class Judgement:
    """What the ledger and the records say together: jobs that never ended, those whose last word is an older holder's,
    those that ran again though nobody struck their holders. `again`: how many runs were not their job's first.
    """

    again: int
    lost: dict[str, Any]
    stale: dict[str, Any]
    doubled: dict[str, Any]

    def insist(self) -> None:
        """None of it."""
        assert not self.lost, list(self.lost.items())[:5]
        assert not self.stale, list(self.stale.items())[:5]
        assert not self.doubled, f"run again, though nobody struck their holders: {list(self.doubled.items())[:5]}"


def judged(
    accepted: Iterable[str], jobs: Mapping[str, dict[str, str]], ledger: Ledger, struck: Container[int]
) -> Judgement:
    """Judges jobs that have all ended, by their records and by what really ran."""
    runs: dict[str, list[Entry]] = defaultdict(list)
    for each in ledger.starts():
        runs[each.job].append(each)
    ends = {(each.job, each.epoch) for each in ledger.ends()}
    return Judgement(
        again=sum(len(each) - 1 for each in runs.values()),
        lost={id: jobs.get(id) for id in accepted if not _is_done(jobs.get(id), id, ends)},
        stale={id: runs[id] for id in accepted if id in jobs and not _by_its_last_holder(jobs[id], runs[id])},
        doubled={id: each for id, each in runs.items() if not all(run.pid in struck for run in each[:-1])},
    )


def _is_done(job: dict[str, str] | None, id: str, ends: set[tuple[str, int]]) -> bool:
    """Whether a job has ended, and its code has too if the record says so."""
    if job is None or job.get("state") not in {"completed", "failed", "cancelled"}:
        return False
    return job["state"] != "completed" or (id, _ended_epoch(job)) in ends


def _by_its_last_holder(job: dict[str, str], runs: list[Entry]) -> bool:
    """Whether the last word about a job is of the holder that had it last."""
    return job.get("state") != "completed" or _ended_epoch(job) == int(job["epoch"]) == max(run.epoch for run in runs)


def _ended_epoch(job: dict[str, str]) -> int:
    return int(job.get("ended", "0 ").split(" ")[0])
