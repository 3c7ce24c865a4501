"""What workers and nodes do to the model: claims, what holders say, what is done for the dead, and what time brings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from taskq.commands import Buried, Done, Failure, Held, Release, Snoozed
from tests.simulation.model import WAITS, Job
from tests.simulation.people import People

REFUNDS_MAX, ERRORS_MAX, CALL_MAX = 20, 20, 250
WAS_CANCELLED = "cancelled while running"


class Model(People):
    """The whole model."""

    def claim(
        self, *, worker: str, request: int, lease_ms: int, limit: int, free: Mapping[str, int]
    ) -> tuple[str, set[Any]]:
        memory = self.claimed.get(worker, {})
        if "gone" in memory:
            self._pass_on(free)
            return "gone", set()
        if request < memory.get("request", 0):
            return "stale", set()
        if request == memory.get("request"):
            held = [job for id, epoch in memory.items() if (job := self._held(id, epoch, worker))]
            for job in held:
                job.at = self.now + lease_ms
            return "ok", {(job.id, job["epoch"], job["attempt"]) for job in held}
        self._stamp(lease_ms)
        memory = self.claimed[worker] = {"request": request}
        if "paused" in self.meta:
            return "paused", set()
        left, looked = dict(free), 0
        got: set[Any] = set()
        self.wake(self._promote(100, quiet=True)[1] - free.keys())
        while lanes := [
            lane for lane in self._lanes if left.get(lane[0], 0) > 0 and len(got) < limit and looked < CALL_MAX
        ]:
            lane = max(lanes, key=lambda lane: (lane[1], -list(free).index(lane[0])))
            for job in self.waiting(lane)[: min(limit - len(got), left[lane[0]], CALL_MAX - looked)]:
                looked += 1
                if self._start(job, worker, lease_ms):
                    got.add((job.id, job["epoch"], job["attempt"]))
                    memory[job.id] = job["epoch"]
                    left[lane[0]] -= 1
            self._flush(quiet=True)
        self._pass_on(free)
        return "ok", got

    def _pass_on(self, classes: Iterable[str]) -> None:
        self.wake({klass for klass, _ in self._lanes}.intersection(classes))

    def _start(self, job: Job, worker: str, lease_ms: int) -> bool:
        if self._expired(job):
            return self._move(job, "cancelled", reason="expired") == "running"
        last = max(job.number("epoch"), self.meta.get("epoch_floor", 0))
        attempt, epoch = job.number("attempt") + 1, max(last + 1, self.now)
        if attempt > job.number("max_attempts", 3):
            return self._move(job, "failed", reason="attempts exhausted") == "running"
        if job["started_at"] == "" or (job["epoch"] and job["started_at"] is None):
            job.record["started_at"] = self.now if job["started_at"] == "" else job["epoch"]
        self._move(job, "running", self.now + lease_ms, epoch=epoch, attempt=attempt, worker=worker, entry="")
        return True

    def _expired(self, job: Job) -> bool:
        return job["epoch"] is None and job.number("expires_at", self.now + 1) <= self.now

    def _held(self, id: str, epoch: int, worker: str) -> Job | None:
        job = self.jobs.get(id)
        return job if job and (job.state, job["epoch"], job["worker"]) == ("running", epoch, worker) else None

    def _answers(self, verb: str | None, worker: str, rows: Sequence[Any], act: Callable[[Job, Any], str]) -> list[str]:
        words = []
        for row in rows:
            job, record = self._held(row.id, row.epoch, worker), self.jobs.get(row.id)
            ended = f"{row.epoch} {verb or row.verb}"
            if job:
                job.record["ended"] = ended
            words.append(
                act(job, row) if job else "gone" if not record else "ok" if record["ended"] == ended else "lost"
            )
        self._flush()
        return words

    def renew(self, *, lease_ms: int, held: Sequence[Held]) -> list[str]:
        self._stamp(lease_ms)
        words = []
        for row in held:
            if job := self._held(row.id, row.epoch, row.worker):
                job.at = self.now + lease_ms
            words.append({None: "ok", 1: "cancel", "force": "force"}[job["cancel"]] if job else "lost")
        return words

    def complete(self, *, worker: str, done: Sequence[Done]) -> list[str]:
        def act(job: Job, row: Done) -> str:
            dropped = {"dropped": 1} if job["keep_result"] == 0 else {"result": row.result.decode()}
            self._move(job, "completed", **(dropped if row.result else {}))
            return "ok"

        return self._answers("complete", worker, done, act)

    def fail(self, *, worker: str, failures: Sequence[Failure]) -> list[str]:
        def act(job: Job, row: Failure) -> str:
            self._attempt_ended(job, row.error)
            return self._failed(job, row.verb == "retry", row.delay_ms, row.reason)

        return self._answers(None, worker, failures, act)

    def _attempt_ended(self, job: Job, error: str | bytes) -> None:
        job.record |= {f"error:{job['attempt']}": error, **({"released": 0} if job["released"] is not None else {})}
        for field in ("unknown_since", "unknown_reason", f"error:{job['attempt'] - ERRORS_MAX}"):
            job.record.pop(field, None)

    def _failed(self, job: Job, again: bool, delay_ms: int, reason: str | bytes) -> str:
        if again and job["cancel"]:
            return self._move(job, "cancelled", reason=WAS_CANCELLED)
        if again and job["attempt"] < job.number("max_attempts", 3):
            return self._move(job, "retryable", self.now + delay_ms, scheduled_at=self.now + delay_ms)
        return self._move(job, "failed", reason=reason)

    def release(self, *, worker: str, jobs: Sequence[Release]) -> list[str]:
        def act(job: Job, row: Release) -> str:
            if row.executor and row.executor != job.klass:
                job.record["class"] = row.executor
                self._new_classes([row.executor])
            return self._give_back(job)

        return self._answers("release", worker, jobs, act)

    def _give_back(self, job: Job) -> str:
        if job.number("released") < REFUNDS_MAX and not job["cancel"]:
            job.record |= {"attempt": max(0, job["attempt"] - 1), "released": job.number("released") + 1}
        if job["cancel"]:
            return self._move(job, "cancelled", reason=WAS_CANCELLED)
        if job["attempt"] >= job.number("max_attempts", 3):
            return self._move(job, "failed", reason=f"attempts exhausted: given back {REFUNDS_MAX} times in a row")
        return self._move(job, "available", restore=True)

    def snooze(self, *, worker: str, grace_ms: int, jobs: Sequence[Snoozed]) -> list[str]:
        def act(job: Job, row: Snoozed) -> str:
            since = job.number("unknown_since", self.now)
            if job["cancel"]:
                return self._move(job, "cancelled", reason=WAS_CANCELLED)
            if row.kind == "unknown" and self.now - since >= grace_ms:
                return self._move(job, "failed", reason=row.reason)
            job.record |= {"unknown_since": since, "unknown_reason": row.reason} if row.kind == "unknown" else {}
            for field in ("unknown_since", "unknown_reason", "released") if row.kind == "snooze" else ():
                job.record.pop(field, None)
            due = self.now + row.delay_ms
            return self._move(job, "scheduled", due, scheduled_at=due, attempt=max(0, job["attempt"] - 1))

        return self._answers("snooze", worker, jobs, act)

    # --- nodes

    def bury(self, *, worker: str, why: str, jobs: Sequence[Buried]) -> list[tuple[str, str]]:
        memory = self.claimed.get(worker, {})
        told = {row.id for row in jobs if self._held(row.id, row.epoch, worker)}
        more = [Buried(id, epoch, "refund") for id, epoch in memory.items() if id in self.jobs and id not in told]
        rows = [row for row in (*jobs, *more) if self._held(row.id, row.epoch, worker)]

        def act(job: Job, row: Buried) -> str:
            if row.verb == "refund":
                return self._give_back(job)
            if row.verb == "lost":
                return self._lost(job, f"worker died: {worker} ({why})")
            message = f"hard timeout: worker {worker} was replaced"
            self._attempt_failed(job, "JobTimeout", message)
            return self._failed(job, True, row.delay_ms, message)

        states = self._answers("bury", worker, rows, act)
        self.claimed[worker] = {"gone": 1}
        self.wake(self.classes)
        return [(row.id, state) for row, state in zip(rows, states, strict=True)]

    def _attempt_failed(self, job: Job, kind: str, message: str) -> None:
        error = {"type": kind, "message": message, "at": self.now, "worker": job["worker"]}
        self._attempt_ended(job, json.dumps(error, sort_keys=True))

    def _lost(self, job: Job, message: str) -> str:
        self._attempt_failed(job, "JobCrashed", message)
        if job["cancel"]:
            return self._move(job, "cancelled", reason=WAS_CANCELLED)
        if job["on_lease_lost"] == "fail" or job["attempt"] >= job.number("max_attempts", 3):
            return self._move(job, "failed", reason=message)
        return self._move(job, "available", restore=True)

    def reap(self, *, lease_ms: int, limit: int) -> tuple[list[tuple[str, str]], int, bool]:
        quiet, due = self._stamp(lease_ms) - self.now, self._is_any_due()
        over = [job for job in self.of("running") if job.at <= self.now][: limit if quiet <= 0 else 0]
        for job in over:
            job.record["ended"] = f"{job['epoch']} reap"
            self._lost(job, f"lease expired: worker {job['worker']}")
        self._flush()
        return [(job.id, job.state) for job in over], max(0, quiet), due

    def _is_any_due(self) -> bool:
        waits = any(job.at <= self.now for state in ("scheduled", "retryable") for job in self.of(state))
        return waits or any(job.state in WAITS and self._expired(job) for job in self.jobs.values())

    def promote(self, *, limit: int) -> int:
        return self._promote(limit)[0]

    def _promote(self, limit: int, *, quiet: bool = False) -> tuple[int, set[str]]:
        due = [job for state in ("scheduled", "retryable") for job in self.of(state) if job.at <= self.now][:limit]
        for job in due:
            if self._expired(job):
                self._move(job, "cancelled", reason="expired")
            else:
                self._move(job, "available")
        return len(due), self._flush(quiet=quiet)

    def expire(self, *, limit: int) -> int:
        over = [(job["expires_at"], id) for id, job in self.jobs.items() if job.state in WAITS and self._expired(job)]
        ids = [id for _, id in sorted(over)][:limit]
        for id in ids:
            self._move(self.jobs[id], "cancelled", reason="expired")
        self._flush()
        return len(ids)

    def prune(self, *, limit: int) -> int:
        touched = self._retain(limit)
        old = sorted((at, lane) for lane, at in self.empty.items() if at <= self.now - 60_000)[:limit]
        for _, lane in old:
            del self.empty[lane]
            self.bodies -= {lane} - self._lanes
        return max(touched, len(old))
