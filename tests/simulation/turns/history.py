"""One history: random steps, now and then the queue is claimed dry, and an end after which nothing is left."""

from __future__ import annotations

from collections import Counter

from taskq.commands import Done
from taskq.fsck import walk
from tests.lua.keyspace import Dump
from tests.lua.lead import lead
from tests.simulation import invariants
from tests.simulation.turns import implied, order, reserving
from tests.simulation.turns.leading import Leading
from tests.simulation.turns.world import LEASE_MS, NARROW, Worker

#: What may be left where every job has ended: what tells of them, and what has a TTL or a bound.
STAYS = {"job", "completed", "failed", "cancelled", "prune", "meta", "classes", "stats", "wake", "limits", "rate",
         "claimed", "empty", "body", "tags", "weights", "merged", "reservation", "unique", "executors"}  # fmt: skip


class History(Leading):
    """All that happens."""

    def step(self, *, watched: bool) -> None:
        """One thing happens. Where it is watched, what was before it is known to those who judge it."""
        acts = [(self.enqueue, 12), (self.claim, 14), (self.finish, 14), (self.cancel, 4), (self.pass_time, 4)]
        acts += [(self.kill, 2), (self.lose, 1), (self.change, 2), (self.promote, 1), (self.expire, 1), (self.again, 1)]
        acts += [(self.start, 4), (self.reap, 1), (self.sweep, 1), (self.reprioritise, 1), (self.weigh, 1)]
        acts += [(self.reserve, 3), (self.bind, 3), (self.bind_again, 1), (self.give_back, 1), (self.finalize, 1)]
        acts += [(self.cleanup, 1), (self.pause, 1), (self.purge, 1), (self.claim_dry, 1)]
        acts += [(self.withdraw, 2), (self.untarget, 2), (self.age, 1)]
        if self.is_paused:
            acts.append((self.pause, 20))
        chosen, weights = zip(*acts, strict=True)
        self.before = self.look() if watched else None
        self.draw.choices(chosen, weights)[0]()
        self.before = None

    def occupied(self, found: Dump) -> int:
        return reserving.occupied(self, found)

    def check(self) -> Dump:
        found = self.look()
        implied.check(self, found)
        return found

    def inspect(self) -> None:
        """What `taskq fsck` finds: nothing."""
        assert lead(self, walk(self.q, repair=False, lease_ms=LEASE_MS)).told == []

    def claim_dry(self) -> None:
        """One worker takes all that may run, at one moment; then of each job that waits a gate is shut."""
        worker, idle = Worker(f"dry.{self.name().partition(':')[2]}", narrow=NARROW), 0
        self.workers.append(worker)
        asked = order.Asked({"async": 999, "thread": 999}, narrow=NARROW, limit=250)
        while idle < 12:
            self.wake_up(asked.classes())
            idle = 0 if self.ask(worker, asked).jobs else idle + 1
            if idle and not any(self.client.exists(self.q.levels(klass)) for klass in asked.classes()):
                break
        found = self.check()
        if not self.is_paused:
            for id, record in invariants.records(found).items():
                if record["state"] == "available":
                    assert order.shut_by(self, record, found), f"{id} may run, and no claim gave it"

    def end(self, *, each: int = 1) -> None:
        """Everybody is dead, all that was paused is resumed: a new worker finds all that is left, and nothing stays."""
        for worker in self.workers:
            self.do("bury", worker=worker.id, why="end", jobs=[])
        self.workers = []
        self.silence()
        if self.is_paused:
            self.pause()
        for entry, words in list(self.said.told.items()):
            if "paused" in words or words.get("c") == "0":
                self.say(entry, {"paused": "", "c": ""})
        self._claim_all(each)
        self.now += 60_001
        for which in ("unbound", "bound"):
            self.do("sweep_reservations", which)
        found = self.look()
        left = Counter(record["state"] for record in invariants.records(found).values())
        assert not left.keys() & {"available", "running", "scheduled", "retryable"}, (left, found)
        left_names = {name.partition(":")[0] for name in found}
        marks = {entry for entry, words in self.said.told.items() if "until" in words}
        assert left_names <= STAYS | ({"gates"} if marks else set()), left_names - STAYS
        self.inspect()
        self.client.flushall()

    def _claim_all(self, each: int) -> None:
        worker = Worker("end.1", narrow=NARROW)
        asked = order.Asked({"async": 99, "thread": 99}, narrow=NARROW, limit=250)
        idle = 0  # claims in a row that gave nothing though a claim is led to something: its markers say so
        for n in range(4_000):
            claim = self.ask(worker, asked)
            if n % each == 0:
                self.check()
            if claim.jobs:
                self.do("complete", worker=worker.id, done=[Done(job.id, job.epoch, b"") for job in claim.jobs])
            elif with_work := [klass for klass in asked.classes() if self.client.exists(self.q.levels(klass))]:
                if claim.next_ms and implied.free_of(self, self.look()) < 1:
                    self.now += claim.next_ms
                    continue
                assert all(self.client.exists(self.q.wake(klass)) for klass in with_work)
                assert (idle := idle + 1) < 12, "claims go round and give nothing"
                continue
            elif claim.next_ms is None:
                return
            else:
                self.now += max(1, claim.next_ms)
            idle = 0
        raise AssertionError("it never ends")
