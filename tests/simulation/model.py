"""A queue in plain Python: what the scripts must do, told without Redis. Times are ms; one method an operation.

Every structure is computed from the jobs, so the model can't lose one; the scripts keep each structure by hand, and are
compared with `keyspace()` after every call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from taskq.commands import Buried, Done, Failure, Held, NewJob, Release, Snoozed

WAITS, ENDS = ("available", "scheduled", "retryable", "pending"), ("completed", "failed", "cancelled")
LEAST_MS, LEAST_WITH_RESULT_MS, REFUNDS_MAX, ERRORS_MAX, CALL_MAX = 15_000, 300_000, 20, 20, 250
RETENTION = {"keep_completed": 86_400_000, "keep_failed": 1_209_600_000, "keep_cancelled": 1_209_600_000,
             "max_completed": 10_000, "max_failed": 100_000}  # fmt: skip
OF_A_LIFE = ("result", "reason", "finished_at", "cancel", "scheduled_at", "expires_at", "released", "unknown_since",
             "dropped")  # fmt: skip
WAS_CANCELLED = "cancelled while running"


class Job:
    """`at` is its score in the structure of its state (due, end of the lease, time of entry); `order` its turn in a body."""

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


class Model:
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
        self.removed: set[str] = set()
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
            self._remove([job])
        keep, wanted = self._keep(job), job["keep_result"]
        if result is not None:
            keep = max(keep, LEAST_WITH_RESULT_MS) if wanted is None else min(keep, max(1, wanted))
        job.prune_at = self.now + keep

    def _remove(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            del self.jobs[job.id]
            self.removed.add(job.id)

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
        return quiet

    # --- clients

    def enqueue(self, jobs: Sequence[NewJob], *, exists: str) -> list[str] | str:
        words: list[str] = []
        new: dict[str, Job] = {}
        for job in jobs:
            there = self.jobs.get(job.id)
            since = there["created_at"] if there else self.now
            due, expires = (
                int(text) + since * text.startswith("+") if text else None for text in (job.due, job.expires)
            )
            due = due if due and due > since else None
            if job.id in new or (there and (there["token"] or "") != job.token):
                if exists == "raise":
                    return "JobAlreadyExists"
                words.append("existing")
                continue
            words.append("scheduled" if due else "available")
            klass = self.kinds.get(job.task) or job.executor or "async"
            given = {"task": job.task, "created_at": self.now, "token": job.token or None, "scheduled_at": due,
                     "priority": job.priority or None, "expires_at": expires, **job.fields,
                     "class": klass if klass != "async" else None}  # fmt: skip
            new[job.id] = there or Job(job.id, {field: value for field, value in given.items() if value is not None})
        added = [(job, job["scheduled_at"]) for id, job in new.items() if id not in self.jobs]
        for job, due in added:
            self.jobs[job.id] = job
            self._move(job, "scheduled" if due else "available", due or 0)
        if self._new_classes(job.klass for job, _ in added):
            self.wake(self.classes)
        self._flush()
        return words

    def cancel(self, ids: Sequence[str], *, running: bool, force: bool, partial: bool) -> list[str] | str:
        jobs = [self.jobs.get(id) for id in ids]
        words = ["missing" if not job else "too_late" if job.state in ENDS else "removed" if job.state != "running"
                 else "requested" if running else "running" for job in jobs]  # fmt: skip
        wrong = [word for word in words if word not in {"removed", "requested"}]
        if wrong and not partial:
            return "JobNotFound" if wrong[0] == "missing" else "InvalidTransition"
        for job, word in zip(jobs, words, strict=True):
            if job and word == "removed":
                self._move(job, "cancelled", reason="cancelled")
            elif job and word == "requested":
                job.record["cancel"] = "force" if force or job["cancel"] == "force" else 1
        self._flush()
        return words

    def retry(self, ids: Sequence[str], *, partial: bool) -> list[str] | str:
        jobs = [self.jobs.get(id) for id in ids]
        words = ["missing" if not job else "available" if job.state in (*ENDS, "retryable")
                 else "waiting" if job.state == "available" else job.state for job in jobs]  # fmt: skip
        wrong = [word for word in words if word != "available"]
        if wrong and not partial:
            return "JobNotFound" if wrong[0] == "missing" else "InvalidTransition"
        for job, word in zip(jobs, words, strict=True):
            if job and word == "available":
                job.record = {f: v for f, v in job.record.items() if f not in OF_A_LIFE and not f.startswith("error:")}
                self._move(job, "available", attempt=0, started_at="")
        self._flush()
        return words

    def purge(self, *, states: Sequence[str], limit: int) -> tuple[int, int]:
        left = limit
        for state in states:
            jobs = self.of(state)
            if state == "available":
                jobs.sort(key=lambda job: (self.classes.index(job.klass), -job.lane[1], job.turn))
            for job in jobs[:left]:
                self._move(job, "cancelled", reason="purged")
                left -= 1
        self._flush(quiet=True)
        return limit - left, limit - left

    def clear(self, *, states: Sequence[str], older_than_ms: int, limit: int) -> int:
        old = [job for state in states for job in self.of(state) if job.at <= self.now - older_than_ms]
        self._remove(old[:limit])
        return len(old[:limit])

    def declare(self, *, kinds: Mapping[str, str], retention: Mapping[str, int]) -> int:
        self.kinds |= kinds
        self.meta |= retention
        return int(self.meta.get("class_version", 0))

    def wait(self, id: str) -> None:
        if id in self.jobs and self.jobs[id].state not in ENDS:
            self.jobs[id].record["waited"] = 1

    def pause(self) -> bool:
        changed = "paused" not in self.meta
        self.meta.setdefault("paused", self.now)
        return changed

    def resume(self) -> bool:
        self.wake(self.classes)
        return self.meta.pop("paused", None) is not None

    def wake(self, classes: Iterable[str]) -> str:
        self.markers |= dict.fromkeys(classes, self.now)
        return "ok"

    # --- workers

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
        left, got, looked = dict(free), set(), 0
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
        if job.number("expires_at", self.now + 1) <= self.now:
            return self._move(job, "cancelled", reason="expired") == "running"
        attempt, epoch = job.number("attempt") + 1, max(job.number("epoch") + 1, self.now)
        if attempt > job.number("max_attempts", 3):
            return self._move(job, "failed", reason="attempts exhausted") == "running"
        if job["started_at"] == "" or (job["epoch"] and job["started_at"] is None):
            job.record["started_at"] = self.now if job["started_at"] == "" else job["epoch"]
        self._move(job, "running", self.now + lease_ms, epoch=epoch, attempt=attempt, worker=worker, entry="")
        return True

    def _held(self, id: str, epoch: int, worker: str) -> Job | None:
        job = self.jobs.get(id)
        return job if job and (job.state, job["epoch"], job["worker"]) == ("running", epoch, worker) else None

    def _answers(self, verb: str, worker: str, rows: Sequence[Any], act: Callable[[Job, Any], str]) -> list[str]:
        words = []
        for row in rows:
            job, record = self._held(row.id, row.epoch, worker), self.jobs.get(row.id)
            ended = f"{row.epoch} {verb}"
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

        return self._answers("fail", worker, failures, act)

    def _attempt_ended(self, job: Job, error: str) -> None:
        job.record |= {f"error:{job['attempt']}": error, **({"released": 0} if job["released"] is not None else {})}
        for field in ("unknown_since", f"error:{job['attempt'] - ERRORS_MAX}"):
            job.record.pop(field, None)

    def _failed(self, job: Job, again: bool, delay_ms: int, reason: str) -> str:
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
        if job.number("released") < REFUNDS_MAX:
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
            job.record |= {"unknown_since": since} if row.kind == "unknown" else {}
            for field in ("unknown_since", "released") if row.kind == "snooze" else ():
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
            message = (
                f"worker died: {worker} ({why})"
                if row.verb == "lost"
                else f"hard timeout: worker {worker} was replaced"
            )
            return self._lost(job, message, "JobCrashed" if row.verb == "lost" else "JobTimeout", row.delay_ms)

        states = self._answers("bury", worker, rows, act)
        self.claimed[worker] = {"gone": 1}
        self.wake(self.classes)
        return [(row.id, state) for row, state in zip(rows, states, strict=True)]

    def _lost(self, job: Job, message: str, kind: str = "JobCrashed", delay_ms: int = 0) -> str:
        error = {"type": kind, "message": message, "at": self.now, "worker": job["worker"]}
        self._attempt_ended(job, json.dumps(error, sort_keys=True))
        if kind == "JobTimeout":
            return self._failed(job, True, delay_ms, message)
        last = job["on_lease_lost"] == "fail" or job["attempt"] >= job.number("max_attempts", 3)
        if last or job["cancel"]:
            return self._move(
                job, "cancelled" if job["cancel"] else "failed", reason=WAS_CANCELLED if job["cancel"] else message
            )
        return self._move(job, "available", restore=True)

    def reap(self, *, lease_ms: int, limit: int) -> tuple[list[tuple[str, str]], int]:
        quiet = self._stamp(lease_ms) - self.now
        over = [job for job in self.of("running") if job.at <= self.now][: limit if quiet <= 0 else 0]
        for job in over:
            job.record["ended"] = f"{job['epoch']} reap"
            self._lost(job, f"lease expired: worker {job['worker']}")
        self._flush()
        return [(job.id, job.state) for job in over], max(0, quiet)

    def promote(self, *, limit: int) -> int:
        return self._promote(limit)[0]

    def _promote(self, limit: int, *, quiet: bool = False) -> tuple[int, set[str]]:
        due = [job for state in ("scheduled", "retryable") for job in self.of(state) if job.at <= self.now][:limit]
        for job in due:
            if job.number("expires_at", self.now + 1) <= self.now:
                self._move(job, "cancelled", reason="expired")
            else:
                self._move(job, "available")
        return len(due), self._flush(quiet=quiet)

    def expire(self, *, limit: int) -> int:
        over = [(job["expires_at"], id) for id, job in self.jobs.items() if job.state in WAITS and job["expires_at"]]
        ids = [id for at, id in sorted(over) if at <= self.now][:limit]
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
