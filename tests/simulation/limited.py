"""A queue whose jobs have keys: random calls to the real scripts, and what must hold after any of them.

No model says which job comes next, for any that may run is right. What is checked is what the living jobs imply: who
holds a slot, where each waiting job stands, which lanes are parked under what, and that no lane is out of the claims'
way while its gate is open.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from taskq import commands
from taskq.commands import Buried, Command, Done, Failure, NewJob, Release, Snoozed
from taskq.keys import QueueKeys
from tests.lua.keyspace import Dump, Keyspace
from tests.simulation import invariants

T0 = 1_800_000_000_000
LEASE_MS = 8_000
PERIOD_MS = 1_000
GROUPS = ("-", "-", "acme", "beta", "gamma")
#: Gate name → what it may be limited to.
LIMITS = {
    "one": ("c=1",),
    "few": ("c=2", "c=3", "c=1"),
    "rate": ("r=3/1000/1", "r=3/1000/2"),
    "both": ("c=2 r=10/1000/2",),
    "tenant": ("c=1", "c=2"),
}
FREE = {"async": 3, "thread": 1}


@dataclass
class Worker:
    """One worker, as it sees itself."""

    id: str
    request: int = 0
    table: dict[str, int] = field(default_factory=dict)


class Limited:
    """One history.

    Args:
        run: calls a command.
        client: looks at the keyspace, and sets the numbers of limits.
        q: the queue.
        draw: where all chance comes from.
    """

    def __init__(self, run: Callable[[Command[Any]], Any], client: Any, q: QueueKeys, draw: random.Random) -> None:
        client.flushall()
        self.run, self.client, self.q, self.draw = run, client, q, draw
        self.now, self.names = T0, 0
        self.keyspace = Keyspace(client, q)
        self.workers: list[Worker] = []
        self.limits = {name: draw.choice(texts) for name, texts in LIMITS.items()}
        client.hset(q.fixed("limits"), mapping=self.limits)
        self.starts: dict[str, deque[int]] = {}
        self.calls: Counter[str] = Counter()
        self.lowered: dict[str, int] = {}

    def do(self, operation: str, *args: Any, **options: Any) -> Any:
        self.calls[operation] += 1
        reply = self.run(getattr(commands, operation)(self.q, *args, now=self.now, **options))
        for name in ("rate", "both", "few"):
            self.client.persist(self.q.rate(name))  # its TTL is of the server's time, not of ours
        return reply

    # --- what happens

    def step(self) -> None:
        acts = [(self.enqueue, 8), (self.claim, 10), (self.finish, 14), (self.cancel, 2), (self.pass_time, 4)]
        acts += [(self.kill, 2), (self.lose, 1), (self.change, 1), (self.promote, 1), (self.expire, 1), (self.again, 1)]
        chosen, weights = zip(*acts, strict=True)
        self.draw.choices(chosen, weights)[0]()

    def lane(self) -> str:
        group = self.draw.choice(GROUPS)
        gates = set()
        for name in self.draw.sample(sorted(LIMITS), self.draw.choice((0, 0, 1, 1, 2))):
            gates.add(f"tenant={self.draw.choice('xyz')}" if name == "tenant" else name)
        if self.draw.random() < 0.15:
            gates.add(f"!account={self.draw.choice('12')}")
        return f"{group}:{','.join(sorted(gates))}" if gates or group != "-" else ""

    def enqueue(self) -> None:
        jobs = []
        for _ in range(self.draw.randint(1, 4)):
            self.names += 1
            lane = self.lane()
            fields = {"lock_wait": "5000"} if "!" in lane and self.draw.random() < 0.5 else {}
            due = self.draw.choice(("", "", "", "+700"))
            kind, priority = self.draw.choice(("async", "async", "thread")), self.draw.choice((0, 0, 5))
            expires = self.draw.choice(("", "", "+9000"))
            jobs.append(NewJob(f"default:{self.names}", "", "t", kind, priority, due, expires, fields, lane))
        self.do("enqueue", jobs)

    def claim(self) -> None:
        if len(self.workers) < 3:
            self.names += 1
            self.workers.append(Worker(f"n.{self.names}"))
        worker = self.draw.choice(self.workers)
        worker.request += 1
        limit = max(0, self.draw.choice((1, 3, 50)) - len(worker.table))
        found = self.do("claim", worker=worker.id, request=worker.request, lease_ms=LEASE_MS, limit=limit, free=FREE)
        for job in found.jobs:
            worker.table[job.id] = job.epoch
            self.started(job.fields.get(b"lane", b"").decode())

    def started(self, lane: str) -> None:
        for gate in gates_of(lane):
            self.starts.setdefault(gate, deque()).append(self.now)

    def finish(self) -> None:
        holding = [worker for worker in self.workers if worker.table]
        if not holding:
            return
        worker = self.draw.choice(holding)
        ids = self.draw.sample(sorted(worker.table), self.draw.randint(1, len(worker.table)))
        held = [(id, worker.table.pop(id)) for id in ids]
        verb = self.draw.choice(("complete", "complete", "complete", "fail", "release", "snooze"))
        if verb == "complete":
            self.do(verb, worker=worker.id, done=[Done(*each, b"") for each in held])
        elif verb == "fail":
            again = self.draw.choice(("retry", "fail"))
            self.do(verb, worker=worker.id, failures=[Failure(*each, again, 500, "{}", "E") for each in held])
        elif verb == "release":
            self.do(verb, worker=worker.id, jobs=[Release(*each, "") for each in held])
        else:
            self.do(verb, worker=worker.id, grace_ms=1, jobs=[Snoozed(*each, "snooze", 300, "") for each in held])

    def cancel(self) -> None:
        ids = [f"default:{self.draw.randint(1, self.names)}" for _ in range(3)] if self.names else []
        self.do("cancel", ids, partial=True)

    def again(self) -> None:
        ids = [f"default:{self.draw.randint(1, self.names)}" for _ in range(2)] if self.names else []
        self.do("retry", ids, partial=True)

    def kill(self) -> None:
        """A worker dies; its node buries it, with what stood in its table or with what Redis remembers alone."""
        if self.workers:
            worker = self.workers.pop(self.draw.randrange(len(self.workers)))
            told = self.draw.random() < 0.7
            jobs = [Buried(id, epoch, "lost") for id, epoch in worker.table.items()] if told else []
            self.do("bury", worker=worker.id, why="SIGKILL", jobs=jobs)
            if not told:
                self.reap()

    def lose(self) -> None:
        """A whole host is gone without a word."""
        if self.workers and self.draw.random() < 0.5:
            self.workers.pop(self.draw.randrange(len(self.workers)))
            self.reap()

    def reap(self) -> None:
        for _ in range(8):
            self.now += 2_000
            for worker in self.workers:
                held = [commands.Held(id, epoch, worker.id) for id, epoch in worker.table.items()]
                words = self.do("renew", lease_ms=LEASE_MS, held=held)
                worker.table = {
                    row.id: row.epoch for row, word in zip(held, words, strict=True) if word not in {"lost", "gone"}
                }
            self.do("reap", lease_ms=LEASE_MS)

    def pass_time(self) -> None:
        self.now += self.draw.choice((1, 30, 200, 400))

    def promote(self) -> None:
        self.do("promote")

    def expire(self) -> None:
        self.do("expire")

    def change(self) -> None:
        """Other numbers while it runs. Lower ones stop nobody."""
        name = self.draw.choice(sorted(LIMITS))
        text = self.draw.choice(LIMITS[name])
        before, self.limits[name] = self.limits[name], text
        if before != text:
            for gate in list(self.starts):
                if gate.partition("=")[0] == name:
                    del self.starts[gate]  # a rate of other numbers is counted anew
        words = dict(word.split("=", 1) for word in text.split())
        cursor = self.do("limit", name, words).cursor
        while cursor != "0":
            cursor = self.do("limit", name, {}, cursor=cursor).cursor

    # --- what holds

    def most(self, gate: str) -> int | None:
        if gate.startswith("!"):
            return 1
        words = dict(word.split("=", 1) for word in self.limits.get(gate.partition("=")[0], "").split())
        return int(words["c"]) if "c" in words else None

    def check(self) -> None:
        found = self.keyspace.dump()
        invariants.one_structure_per_job(found)
        invariants.running_is_leased(found)
        invariants.attempts_stay_below_the_maximum(found)
        records = invariants.records(found)
        self._slots_are_those_of_running_jobs(found, records)
        self._lanes_hold_their_jobs_and_are_led_to_or_parked(found, records)
        self._an_open_gate_is_not_waited_for(found)
        self._rates_are_kept()

    def _slots_are_those_of_running_jobs(self, found: Dump, records: dict[str, dict[str, Any]]) -> None:
        implied: dict[str, set[str]] = {}
        for id, record in records.items():
            if record["state"] == "running":
                for gate in gates_of(record.get("lane", "")):
                    implied.setdefault(f"slots:{gate}", set()).add(id)
        assert implied == {name: set(value) for name, value in found.items() if name.startswith("slots:")}
        for name, ids in implied.items():
            most = self.most(name.removeprefix("slots:"))
            if most is not None and len(ids) > most:
                assert len(ids) <= self.lowered.get(name, 0), f"{name}: {len(ids)} of {most}"
            self.lowered[name] = len(ids)
        for name in self.lowered.keys() - implied.keys():
            self.lowered[name] = 0

    def _lanes_hold_their_jobs_and_are_led_to_or_parked(self, found: Dump, records: dict[str, dict[str, Any]]) -> None:
        waiting: dict[str, set[str]] = {}
        for id, record in records.items():
            if record["state"] == "available":
                waiting.setdefault(lane_of(record), set()).add(id)
        standing: dict[str, set[str]] = {}
        for name, value in found.items():
            kind, _, lane = name.partition(":")
            if kind in {"front", "body"} and value:
                standing.setdefault(lane, set()).update(value)
        assert standing == waiting
        led, parked = sorted(members(found, "lanes:")), sorted(members(found, "parked:"))
        assert sorted(led + parked) == sorted(waiting), (led, parked, sorted(waiting))
        keyed = sum(len(ids) for lane, ids in waiting.items() if lane.count(":") > 1)
        assert int(found.get("meta", {}).get("keyed", 0)) == keyed  # type: ignore[union-attr]
        levels = {(lane.split(":")[0], lane.split(":")[1]) for lane in led}
        assert levels == {(name.removeprefix("levels:"), level) for name in found if name.startswith("levels:")
                          for level in found[name]}  # fmt: skip
        under = {gate_of(name) for name in found if name.startswith("parked:")}
        assert under == set(found.get("gates", ())) - {"queue"}
        assert {f"parks:{gate}" for gate in under} == {name for name in found if name.startswith("parks:")}

    def _an_open_gate_is_not_waited_for(self, found: Dump) -> None:
        """Of the lanes under a gate as many are led to as it would let through."""
        led = list(members(found, "lanes:"))
        for name, lanes in found.items():
            if name.startswith("parked:"):
                gate, klass = gate_of(name), name.rpartition(":")[2]
                most = self.most(gate)
                if most is None:
                    continue
                free = max(0, most - len(found.get(f"slots:{gate}", ())))
                words = self.limits.get(gate.partition("=")[0], "")
                if "r=" in words:
                    continue  # opened by time: the end of the history shows that it is
                ready = sum(gate in gates_of(lane.split(":", 2)[2]) for lane in led
                            if lane.count(":") > 1 and lane.split(":")[0] == klass)  # fmt: skip
                assert ready >= min(free, len(lanes)), f"{name}: {free} free, {len(lanes)} parked, {ready} led to"

    def _rates_are_kept(self) -> None:
        for gate, times in self.starts.items():
            words = dict(word.split("=", 1) for word in self.limits.get(gate.partition("=")[0], "").split())
            if "r" not in words:
                continue
            limit, period, burst = map(int, words["r"].split("/"))
            while times and times[0] < self.now - 20 * period:
                times.popleft()
            for first in range(len(times)):
                span = times[-1] - times[first]
                allowed = burst + span * limit / period + 1
                assert len(times) - first <= allowed, f"{gate}: {len(times) - first} in {span} ms"

    # --- the end

    def end(self) -> None:
        """Everybody is dead: one new worker finds all that is left, and nothing stays behind."""
        for worker in self.workers:
            self.do("bury", worker=worker.id, why="end", jobs=[])
        self.workers = []
        self.reap()
        idle = 0  # claims in a row that gave nothing though a claim is led to something: its markers say so
        for request in range(1, 2_000):
            claim = self.do("claim", worker="end.1", request=request, lease_ms=LEASE_MS, limit=250,
                            free={"async": 99, "thread": 99})  # fmt: skip
            for job in claim.jobs:
                self.started(job.fields.get(b"lane", b"").decode())
            self.check()
            if claim.jobs:
                self.do("complete", worker="end.1", done=[Done(job.id, job.epoch, b"") for job in claim.jobs])
                self.check()
            elif any(self.client.exists(self.q.levels(klass)) for klass in FREE):
                assert all(self.client.exists(self.q.wake(klass)) for klass in FREE
                           if self.client.exists(self.q.levels(klass)))  # fmt: skip
                assert (idle := idle + 1) < 10, "claims go round and give nothing"
                continue
            elif claim.next_ms is None:
                break
            else:
                self.now += max(1, claim.next_ms)
            idle = 0
        found = self.keyspace.dump()
        left = Counter(record["state"] for record in invariants.records(found).values())
        assert not left.keys() & {"available", "running", "scheduled", "retryable"}, (left, found)
        stays = ("job", "completed", "failed", "cancelled", "prune", "meta", "classes", "stats", "wake", "limits",
                 "rate", "claimed", "empty", "body", "tags")  # fmt: skip
        assert {name.partition(":")[0] for name in found} <= set(stays)
        self.client.flushall()


def gates_of(lane: str) -> Iterator[str]:
    """The gates of a lane's keys that have slots."""
    return (gate.partition("#")[0] for gate in lane.partition(":")[2].split(",") if gate)


def lane_of(record: dict[str, Any]) -> str:
    level = f"{record.get('class', 'async')}:{record.get('priority', '0')}"
    return f"{level}:{record['lane']}" if "lane" in record else level


def members(found: Dump, prefix: str) -> Iterator[str]:
    return (member for name, value in found.items() if name.startswith(prefix) for member in value)


def gate_of(parked: str) -> str:
    return parked.removeprefix("parked:").rpartition(":")[0]
