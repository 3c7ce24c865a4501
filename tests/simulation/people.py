"""What clients and operators ask of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taskq.commands import NewJob
from tests.simulation.model import ENDS, Job, Queue

OF_A_LIFE = ("result", "reason", "finished_at", "cancel", "scheduled_at", "expires_at", "released", "dropped",
             "unknown_since", "unknown_reason")  # fmt: skip


class People(Queue):
    """The queue as people use it."""

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
        for fresh, due in added:
            self.jobs[fresh.id] = fresh
            self._move(fresh, "scheduled" if due else "available", due or 0)
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
        self._remember(job for job in old[:limit] if job.at >= self.now - 60_000)
        self._remove(old[:limit])
        return len(old[:limit])

    def declare(self, *, kinds: Mapping[str, str], retention: Mapping[str, int]) -> tuple[int, dict[str, str]]:
        self.kinds |= kinds
        self.meta |= retention | {"retention_at": self.now}
        return int(self.meta.get("class_version", 0)), {}

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
