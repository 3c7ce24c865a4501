"""What the leader does for an executor or a target that is gone or takes nothing now: its offers go back, the jobs that
wait for it alone go where any worker finds them, or fail if they asked for that. A leader before it is refused.
"""

from __future__ import annotations

from typing import Any

from taskq.errors import LeadershipLost
from tests.lua.keyspace import Dump
from tests.simulation import invariants
from tests.simulation.turns.holding import Holding
from tests.simulation.turns.lanes import Record, class_of, is_offer
from tests.simulation.turns.world import TARGETED


class Leading(Holding):
    """Rebalancing, and lost targets. `term`: the highest in which anybody has led here."""

    term = 2

    def led(self, operation: str, *args: Any, **options: Any) -> Any:
        """What the leader says, of this term or a new one; one of the term before says it first, and in vain."""
        self.term += self.draw.choice((0, 0, 1))
        before = self.look()
        if int(before.get("meta", {}).get("term", 0)) == self.term:  # type: ignore[union-attr]
            try:
                self.do(operation, *args, term=self.term - 1, **options)
            except LeadershipLost:
                assert self.look() == before
            else:
                raise AssertionError(f"{operation} of term {self.term - 1} was accepted after one of {self.term}")
        return self.do(operation, *args, term=self.term, **options)

    def withdraw(self) -> None:
        """All that one was offered and hasn't started goes back, in small steps; what it runs it keeps."""
        offered = [worker for worker in self.workers if worker.offers] or self.workers
        if not offered:
            return
        worker, why = self.draw.choice(offered), self.draw.choice(("gone", "busy"))
        records = invariants.records(self.look())
        offers = {id for id, record in records.items() if is_offer(record) and record["worker"] == worker.id}
        offset: int | None = 0
        given_back = 0
        while offset is not None:
            step = self.led("withdraw", worker.id, why=why, offset=offset, limit=self.draw.randint(1, 5))
            given_back, offset = given_back + step.given_back, step.next
        worker.offers.clear()
        assert given_back == len(offers)
        after = invariants.records(self.look())
        assert {after[id]["state"] for id in offers} <= {"available", "failed"}
        assert {id for id in records if records[id]["state"] == "running"} - offers == running(after)

    def untarget(self) -> None:
        """Those that wait for a target are freed of it, in small steps, and stay what they are otherwise."""
        klass, why = self.draw.choice(TARGETED), self.draw.choice(("lost", "busy"))
        before = waiting(self.look(), klass)
        cared = {id for id, record in before.items() if record.get("on_target_lost") == "fail"}
        moved = failed = 0
        limit = looked = self.draw.randint(1, 5)
        while looked == limit:
            step = self.led("untarget", klass, why=why, limit=limit)
            moved, failed, looked = moved + step.moved, failed + step.failed, step.looked
        assert (moved, failed) == (len(before) - len(cared), len(cared) if why == "lost" else 0)
        assert waiting(self.look(), klass).keys() == (cared if why == "busy" else set())
        records = invariants.records(self.look())
        for id in before.keys() - cared:
            assert records[id] == freed(before[id]), id
        for id in cared if why == "lost" else ():
            assert id not in records or records[id]["reason"] == "target lost: web"


def running(records: dict[str, Record]) -> set[str]:
    return {id for id, record in records.items() if record["state"] == "running"}


def waiting(found: Dump, klass: str) -> dict[str, Record]:
    """The jobs that are available in a class."""
    records = invariants.records(found)
    return {id: each for id, each in records.items() if each["state"] == "available" and class_of(each) == klass}


def freed(record: Record) -> Record:
    """A job that has lost its target: nothing else is another."""
    klass = class_of(record).removesuffix("target=web").rstrip(";")
    return {name: value for name, value in record.items() if name != "entry"} | {"class": klass}
