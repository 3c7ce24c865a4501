"""A queue in plain Python: its jobs, how they move, and what ends every call. No Redis; times are ms.

Every structure is computed from the jobs, so the model can't lose one; the scripts keep each structure by hand, and are
compared with it after every call. `people.py` adds what clients and operators ask, `workers.py` what workers and nodes
do: one method an operation, named and called as in `taskq.commands`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

WAITS, ENDS = ("available", "scheduled", "retryable", "pending"), ("completed", "failed", "cancelled")
LEAST_MS, LEAST_WITH_RESULT_MS = 15_000, 300_000
RETENTION = {"keep_completed": 86_400_000, "keep_failed": 1_209_600_000, "keep_cancelled": 1_209_600_000,
             "max_completed": 10_000, "max_failed": 100_000}  # fmt: skip


class Job:
    """`at` is its score in the structure of its state: due, end of lease, time of entry; `order` its turn in a body."""

    def __init__(self, id: str, record: dict[str, Any]) -> None:
        self.id, self.state, self.at, self.prune_at, self.order, self.record = id, "", 0, 0, 0, record

    def __getitem__(self, field: str) -> Any:
        return self.record.get(field)

    def number(self, field: str, default: int = 0) -> int:
        return int(self.record.get(field, default))

    @property
    def klass(self) -> str:
        return self["class"] or "async"

    @property
    def lane(self) -> tuple[str, int]:
        return self.klass, self.number("priority")

    @property
    def place(self) -> int:
        return self.number("place", self["created_at"])

    @property
    def turn(self) -> tuple[int, int, str]:
        return (1, self.order, "") if self["entry"] else (0, self.place, self.id)


class Queue:
    """A queue at one time."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.jobs: dict[str, Job] = {}
        self.meta: dict[str, Any] = {}
        self.classes: list[str] = []
        self.kinds: dict[str, str] = {}
        self.markers: dict[str, int] = {}
        self.claimed: dict[str, dict[str, int]] = {}
        self.bodies: set[tuple[str, int]] = set()
        self.empty: dict[tuple[str, int], int] = {}
        self._orders = count(1)
        self._begin()

    def _begin(self) -> None:
        self._filled: set[str] = set()
        self._due: list[Job] = []
        self._ended = 0
        self._lanes = {job.lane for job in self.jobs.values() if job.state == "available"}

    def of(self, state: str) -> list[Job]:
        return sorted((job for job in self.jobs.values() if job.state == state), key=lambda job: (job.at, job.id))

    def waiting(self, lane: tuple[str, int]) -> list[Job]:
        return sorted((job for job in self.of("available") if job.lane == lane), key=lambda job: job.turn)

    # --- moves

    def _move(self, job: Job, to: str, at: int = 0, *, restore: bool = False, **fields: Any) -> str:
        job.record |= fields
        if job.state == "available" and to in ENDS and job["entry"]:
            job.record["entry"] = "gone"
        job.state, job.at = to, at
        if to == "available":
            job.record["entry"] = "" if restore else "*"
            if not restore:
                job.order = next(self._orders)
                self.bodies.add(job.lane)
                if job["created_at"] != self.now:
                    job.record["place"] = self.now
            self._filled.add(job.klass)
        elif to in {"scheduled", "retryable"}:
            self._due.append(job)
        elif to in ENDS:
            self._end(job, fields.get("result"))
        return to

    def _setting(self, name: str) -> int:
        return int(self.meta.get(name, RETENTION[name]))

    def _keep(self, job: Job) -> int:
        return max(job.number("keep", self._setting(f"keep_{job.state}")), LEAST_MS)

    def _end(self, job: Job, result: Any) -> None:
        self._ended += 1
        job.at = job.record["finished_at"] = self.now
        if job["keep"] == 0:
            self._remember([job])
            self._remove([job])
        keep, wanted = self._keep(job), job["keep_result"]
        if result is not None:
            keep = max(keep, LEAST_WITH_RESULT_MS) if wanted is None else min(keep, max(1, wanted))
        job.prune_at = self.now + keep

    def _remember(self, jobs: Iterable[Job]) -> None:
        """Epochs of records that go early don't come again."""
        if (last := max((job.number("epoch") for job in jobs), default=0)) >= self.now:
            self.meta["epoch_floor"] = max(last, self.meta.get("epoch_floor", 0))

    def _remove(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            del self.jobs[job.id]

    def _flush(self, *, quiet: bool = False) -> set[str]:
        """What ends every call. Returns the classes that got work."""
        filled = {job.klass for job in self.jobs.values() if job.state == "available"} & self._filled
        lanes, due, ended = self._lanes, self._due, self._ended
        self._begin()
        self.empty |= dict.fromkeys(lanes - self._lanes, self.now)
        self.wake(filled if not quiet else ())
        self.wake(job.klass for state in ("scheduled", "retryable") for job in self.of(state)[:1] if job in due)
        if ended:
            self._retain(2 * ended + 2)
        return filled

    def _retain(self, limit: int) -> int:
        over = sorted(
            (job.prune_at, id) for id, job in self.jobs.items() if job.state in ENDS and job.prune_at <= self.now
        )
        for _, id in over[:limit]:
            job = self.jobs[id]
            until = job["finished_at"] + self._keep(job)
            if job["result"] is None or job["keep_result"] is None or until <= self.now:
                self._remove([job])
            else:
                del job.record["result"]
                job.record["dropped"], job.prune_at = 1, until
        touched = min(limit, len(over))
        for state in ("completed", "failed"):
            jobs = self.of(state)
            for job in jobs[: max(0, min(len(jobs) - self._setting(f"max_{state}"), limit - touched))]:
                if self.now - job.at < (LEAST_MS if job["result"] is None else LEAST_WITH_RESULT_MS):
                    break
                self._remove([job])
                touched += 1
        return touched

    def _new_classes(self, classes: Iterable[str]) -> bool:
        new = [klass for klass in dict.fromkeys(classes) if klass not in self.classes]
        if new:
            self.meta["class_version"] = self.meta.get("class_version", 0) + 1
            self.classes += new
        return bool(new)

    def _stamp(self, lease_ms: int) -> int:
        span, seen, quiet = max(lease_ms, 4000), self.meta.get("seen", 0), self.meta.get("quiet_until", 0)
        outage = seen > self.now or self.now - seen > span * 3 / 8
        if outage or self.now - seen > span / 32:
            self.meta["seen"] = self.now
        if outage or quiet > self.now + span:
            self.meta["quiet_until"] = quiet = self.now + span
        return int(quiet)

    def wake(self, classes: Iterable[str]) -> str:
        self.markers |= dict.fromkeys(classes, self.now)
        return "ok"
