"""Jobs that are made, moved, cancelled, retried by hand; and what operators say meanwhile."""

from __future__ import annotations

from contextlib import suppress

from taskq.commands import NewJob
from taskq.errors import DuplicateJob, InvalidTransition, JobNotFound
from tests.simulation.turns.lanes import OVER
from tests.simulation.turns.owners import HOWS, KEYS
from tests.simulation.turns.said import Words, words_of
from tests.simulation.turns.world import GROUPS, LIMITS, NARROW, TASKS, World


class Making(World):
    """What callers and operators do."""

    def keys(self) -> str:
        """The keys of a lane."""
        group, gates = self.draw.choice(GROUPS), set()
        for name in self.draw.sample(sorted(LIMITS), self.draw.choice((0, 1, 1, 2, 2))):
            more = f"={self.draw.choice('xyz')}" if name == "tenant" else ""
            cost = "#2" if name == "rate" and self.draw.random() < 0.3 else ""
            gates.add(name + more + cost)
        if self.draw.random() < 0.15:
            gates.add(f"!account={self.draw.choice('12')}")
        return f"{group}:{','.join(sorted(gates))}" if gates or group != "-" else ""

    def once(self) -> str:
        if self.draw.random() < 0.75:
            return ""
        how = self.draw.choice(HOWS)
        conflict = self.draw.choice(("existing", "existing", "raise", "replace"))
        return f"{self.draw.choice(KEYS)} {how} {'replace' if how.startswith('debounce') else conflict}"

    def job(self) -> NewJob:
        keys = self.keys()
        fields: dict[str, str | int] = {"lock_wait": "5000"} if "!" in keys and self.draw.random() < 0.5 else {}
        if self.draw.random() < 0.2:
            fields["keep"] = 0
        due = self.draw.choice(("", "", "", "+700"))
        kind, priority = self.draw.choice(("async", "async", "thread")), self.draw.choice((0, 0, 5))
        needs = self.draw.choice(("", "", "", *NARROW)).partition(";")[2] if kind == "async" else ""
        if "target" in needs and self.draw.random() < 0.4:
            fields["on_target_lost"] = "fail"
        expires, task = self.draw.choice(("", "", "+9000")), self.draw.choice(TASKS)
        return NewJob(self.name(), "", task, kind, priority, due, expires, fields, keys, self.once(), needs)

    def enqueue(self) -> None:
        jobs = [self.job() for _ in range(self.draw.randint(1, 5))]
        expected = self.owners.expected(jobs, self.now)
        try:
            words = self.do("enqueue", jobs)
        except DuplicateJob:
            assert expected is None, "refused, and its keys are free"
        else:
            assert expected is not None, f"{words}, and a key is held by another"
            self.owners.answered(jobs, words, expected, self.now)

    def cancel(self) -> None:
        """Some jobs, or all of a lane: then it leaves without having taken what a gate has free."""
        lanes = sorted(self.client.scan_iter(self.q.front("*")))
        if lanes and self.draw.random() < 0.5:
            ids = [id.decode() for id in self.client.zrange(self.draw.choice(lanes), 0, -1)]
        else:
            ids = self.some_ids(2)
        self.do("cancel", ids[:250], partial=True)

    def again(self) -> None:
        """Retried by hand: its key is its own again, or it stays as it is."""
        for id in self.some_ids(2):
            record = self.record(id)
            (word,) = self.do("retry", [id], partial=True)
            once = record.get("once", "") if record else ""
            if (
                once
                and record
                and (record["state"] in OVER or record["state"] == "retryable")
                and "throttle" not in once
            ):
                if word == "available":
                    self.owners.take(once, id, self.now)
                else:
                    assert word.startswith("duplicate"), word
            else:
                assert not word.startswith("duplicate")

    def reprioritise(self) -> None:
        for id in self.some_ids(2):
            with suppress(JobNotFound, InvalidTransition):
                self.do("reprioritise", id, self.draw.choice((-1, 0, 5, 7)))

    def purge(self) -> None:
        if self.draw.random() < 0.05:
            self.do("purge")

    # --- what operators say

    def weigh(self) -> None:
        self.do("weigh", {self.draw.choice(GROUPS[2:]): self.draw.choice((None, 2, 3))})

    def age(self) -> None:
        """For half of the time lanes age, so fast that a level is nothing, or so that it counts."""
        self.say("queue", {"age": self.draw.choice(("2000", "100", "", ""))})

    def pause(self) -> None:
        """Not for long, or nothing would happen."""
        self.is_paused = not self.is_paused
        self.do("pause" if self.is_paused else "resume")

    def change(self) -> None:
        """Other numbers while it runs, pauses, blocks. Lower ones stop nobody."""
        entry = self.draw.choice([*LIMITS, "tenant=x", "*t", "*u", "@acme", "@beta", "queue"])
        told = self.said.told.get(entry, {})
        if told and self.draw.random() < 0.4:
            words: Words = dict.fromkeys(told, "")
        elif entry == "queue":
            words = self.draw.choice(({"c": "6"}, {"c": "2"}, {"r": "20/1000/5"}))
        elif entry[0] in "*@":
            words = self.draw.choice(({"paused": "1"}, {"until": "+600"}))
            words = {"c": "1"} if entry == "*t" and self.draw.random() < 0.5 else words
        elif entry == "tenant=x":
            words = self.draw.choice(({"c": "3"}, {"c": "none"}, {"until": "+700"}))
        else:
            words = self.draw.choice((words_of(self.draw.choice(LIMITS[entry])), {"until": "+700"}, {"c": "0"}))
        self.say(entry, words)

    def say(self, entry: str, words: Words) -> None:
        name = entry.partition("=")[0]
        for gate in [gate for gate in self.starts if gate.partition("=")[0] == name]:
            del self.starts[gate]  # a rate of other numbers is counted anew
        for key in self.client.scan_iter(self.q.slots(f"{'[*]' if name[0] == '*' else ''}{name.lstrip('*')}*")):
            self.held_when_lowered[key.decode().rpartition(":")[2]] = self.client.zcard(key)
        cursor = self.do("limit", entry, words).cursor
        self.said.say(entry, words, self.now)
        while cursor != "0":
            cursor = self.do("limit", entry, {}, cursor=cursor).cursor
