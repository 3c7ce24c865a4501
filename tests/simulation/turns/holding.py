"""Workers and executors: they claim, start what was offered, finish, die, go silent, and ask again where an answer got
lost.
"""

from __future__ import annotations

from typing import Any

from taskq import commands
from taskq.commands import Buried, Claim, Done, Failure, Release, Snoozed
from tests.simulation.turns import order
from tests.simulation.turns.reserving import Reserving
from tests.simulation.turns.world import FREE, LEASE_MS, NARROW, Worker

OFFER_MS = 1_500
WORKERS = 3


class Holding(Reserving):
    """What holders do."""

    def worker(self) -> Worker:
        if len(self.workers) < WORKERS:
            narrow = self.draw.choice(((), NARROW[:1], NARROW))  # the last is the target
            self.workers.append(Worker(f"n.{self.name().partition(':')[2]}", narrow=narrow))
        return self.draw.choice(self.workers)

    def claim(self) -> None:
        worker, limit = self.worker(), self.draw.choice((2, 4, 8))
        asked = order.Asked(dict(FREE), worker.narrow, max(0, limit - len(worker.held())))
        offer_ms = OFFER_MS if self.draw.random() < 0.2 else 0
        self.wake_up(asked.classes())
        found = self.ask(worker, asked, offer_ms)
        if self.before is not None:
            order.check(self, asked, found, self.before, self.look())
        if self.draw.random() < 0.1:
            self.ask_again(worker, asked, offer_ms, found)

    def ask(self, worker: Worker, asked: order.Asked, offer_ms: int = 0) -> Claim:
        worker.request += 1
        found = self._send(worker, asked, offer_ms)
        for job in found.jobs:
            fields = {name.decode(): value.decode("latin1") for name, value in job.fields.items()}
            self.took(fields.get("lane", ""))
            if offer_ms:
                worker.offers[job.id] = (job.epoch, self.now + offer_ms)
            else:
                worker.table[job.id] = job.epoch
                self.started(job.id, fields)
        return found

    def _send(self, worker: Worker, asked: order.Asked, offer_ms: int) -> Claim:
        narrow = {klass: {"async": 1} for klass in asked.narrow}
        claim: Claim = self.do("claim", worker=worker.id, request=worker.request, lease_ms=LEASE_MS, limit=asked.limit,
                               free=asked.free, narrow=narrow, offer_ms=offer_ms)  # fmt: skip
        return claim

    def ask_again(self, worker: Worker, asked: order.Asked, offer_ms: int, first: Claim) -> None:
        """The answer got lost: the same number gives the same jobs, and no others."""
        again = self._send(worker, asked, offer_ms)
        assert sorted((job.id, job.epoch) for job in again.jobs) == sorted((job.id, job.epoch) for job in first.jobs)

    def started(self, id: str, fields: dict[str, Any]) -> None:
        if fields.get("once"):
            self.owners.started(id, fields["once"])

    def start(self) -> None:
        """What was offered begins, if it isn't too late."""
        offered = [worker for worker in self.workers if worker.offers]
        if not offered:
            return
        worker = self.draw.choice(offered)
        for id, (epoch, till) in list(worker.offers.items()):
            record = self.record(id)
            held = record is not None and record["state"] == "running" and record["epoch"] == str(epoch)
            (word,) = self.do("start", worker=worker.id, lease_ms=LEASE_MS, offers=[(id, epoch)])
            del worker.offers[id]
            assert (word == "ok") == (held and self.now < till), word
            if word == "ok":
                worker.table[id] = epoch
                self.started(id, record or {})

    def finish(self) -> None:
        holding = [worker for worker in self.workers if worker.held()]
        if not holding:
            return
        worker = self.draw.choice(holding)
        verb = self.draw.choice(("complete", "complete", "complete", "fail", "release", "snooze"))
        table = worker.held() if verb == "release" else worker.table
        held = [
            (id, table[id])
            for id in self.draw.sample(sorted(table), self.draw.randint(min(1, len(table)), min(3, len(table))))
        ]
        for id, _ in held:
            worker.table.pop(id, None)
            worker.offers.pop(id, None)
        again = self.draw.choice(("retry", "fail"))
        for _ in range(1 if self.draw.random() < 0.9 else 2):  # the answer may get lost
            if verb == "complete":
                self.do(verb, worker=worker.id, done=[Done(*each, b"") for each in held])
            elif verb == "fail":
                self.do(verb, worker=worker.id, failures=[Failure(*each, again, 500, "{}", "E") for each in held])
            elif verb == "release":
                self.do(verb, worker=worker.id, jobs=[Release(*each, "") for each in held])
            else:
                self.do(verb, worker=worker.id, grace_ms=1, jobs=[Snoozed(*each, "snooze", 300, "") for each in held])

    # --- crashes

    def kill(self) -> None:
        """A worker dies; its node buries it, with what stood in its table or with what Redis remembers alone."""
        if self.workers:
            worker = self.workers.pop(self.draw.randrange(len(self.workers)))
            told = self.draw.random() < 0.7
            jobs = [Buried(id, epoch, "lost") for id, epoch in worker.table.items()] if told else []
            self.do("bury", worker=worker.id, why="SIGKILL", jobs=jobs)
            if not told:
                self.silence()

    def lose(self) -> None:
        """A whole host is gone without a word."""
        if self.workers and self.draw.random() < 0.5:
            self.workers.pop(self.draw.randrange(len(self.workers)))
            self.silence()

    def silence(self) -> None:
        """So long passes that what the dead held is reaped; the living renew."""
        for _ in range(8):
            self.now += 2_000
            for worker in self.workers:
                held = [commands.Held(id, epoch, worker.id) for id, epoch in worker.table.items()]
                words = self.do("renew", lease_ms=LEASE_MS, held=held)
                worker.table = {
                    row.id: row.epoch for row, word in zip(held, words, strict=True) if word not in {"lost", "gone"}
                }
            self.do("reap", lease_ms=LEASE_MS)

    def reap(self) -> None:
        self.do("reap", lease_ms=LEASE_MS)

    def pass_time(self) -> None:
        self.now += self.draw.choice((1, 30, 200, 400))

    def promote(self) -> None:
        self.do("promote")

    def expire(self) -> None:
        self.do("expire")

    def sweep(self) -> None:
        idle = self.do("sweep_classes")
        if self.draw.random() < 0.5:
            self.do("sweep_classes", idle=idle.classes)
