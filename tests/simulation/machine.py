"""Random histories of one queue: clients, workers, nodes, crashes, lost replies, repeats, outages; compared each step.

Every call goes to the real scripts and to the model, with the same injected time; then the replies and the whole
keyspaces must be equal. What a worker knows is kept here: its table, its unanswered calls, the marker it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from taskq import commands
from taskq.commands import Buried, Command, Done, Failure, Held, NewJob, Release, Snoozed
from taskq.errors import TaskQError
from taskq.keys import QueueKeys
from tests.lua.keyspace import Dump, Keyspace, changes
from tests.simulation import invariants
from tests.simulation.expected import comparable, keyspace
from tests.simulation.model import ENDS, WAITS, Model

T0 = 1_800_000_000_000
LEASE_MS = 8_000
GRACE_MS = 60_000
SLOTS = {"async": 2, "thread": 1}

TIMES = st.sampled_from([0, 1, 500, 5_000, 70_000])
LIMITS = st.sampled_from([1, 2, 250])
SOME_STATES = st.lists(st.sampled_from(WAITS), min_size=1, unique=True)
FIELDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "max_attempts": st.sampled_from([1, 2, 5]),
        "keep": st.sampled_from([0, 1, 20_000]),
        "keep_result": st.sampled_from([0, 5_000, 10**9]),
        "on_lease_lost": st.just("fail"),
    },
)


@dataclass
class Worker:
    """One worker as it sees itself."""

    id: str
    node: int
    table: dict[str, tuple[int, str]] = field(default_factory=dict)
    request: int = 0
    offer: dict[str, Any] | None = None
    unanswered: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    awake: set[str] = field(default_factory=set)

    def free(self) -> dict[str, int]:
        used = [klass for _, klass in self.table.values()]
        return {klass: max(0, n - used.count(klass)) for klass, n in SLOTS.items()}

    def waits_for(self) -> set[str]:
        """The classes whose marker it took, or whose claim is under way."""
        return self.awake | set(self.offer["free"] if self.offer else ())


class Simulation(RuleBasedStateMachine):
    """Made once a history; `run`, `q`, `client` and `calls` are set on a subclass."""

    run: Callable[[Command[Any]], Any]
    q: QueueKeys
    client: Any
    calls: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.client.flushall()
        self.model = Model(T0)
        self.keyspace = Keyspace(self.client, self.q)
        self.found: Dump = {}
        self.before: Dump = {}
        self.workers: list[Worker] = []
        self.dead: list[Worker] = []
        self.sent: list[tuple[list[NewJob], str]] = []
        self.epochs: dict[str, dict[int, str]] = {}
        self.unwoken: set[str] = set()
        self.names = 0
        self.broken = False

    # --- one call, to both

    def call(self, operation: str, *args: Any, **options: Any) -> Any:
        self.broken = True
        command = getattr(commands, operation)(self.q, *args, **({} if operation == "wait" else {"now": self.model.now}), **options)
        try:
            reply = type(self).run(command)
        except TaskQError as error:
            reply = type(error).__name__
        wanted = getattr(self.model, operation)(*args, **options)
        if operation == "claim":
            self.check_timer(reply)
            assert (reply.word, {job[:3] for job in reply.jobs}) == wanted
        elif operation == "promote":
            assert reply == wanted[0]
        elif operation != "wait":
            assert reply == wanted, (reply, wanted)
        self.before, self.found = self.found, self.keyspace.dump()
        told = self.keyspace.events()
        assert not (differ := changes(keyspace(self.model), comparable(self.found))), differ
        invariants.every_move_is_told(self.before, self.found, told)
        invariants.nothing_vanishes(self.before, self.found, told)
        invariants.epochs_grow(self.before, self.found)
        self.calls[operation] += 1
        self.broken = False
        return reply

    def check_timer(self, claim: commands.Claim) -> None:
        """A worker hears when the next job is due, the others up to 50 ms later."""
        due = [job.at for state in ("scheduled", "retryable") for job in self.model.of(state)]
        if claim.word == "ok" and due:
            assert claim.next_ms is not None
            assert max(0, min(due) - self.model.now) <= claim.next_ms <= max(0, min(due) - self.model.now) + 50
        else:
            assert claim.next_ms is None

    def pick(self, data: st.DataObject, among: list[Any]) -> Any:
        return data.draw(st.sampled_from(among))

    def ids(self, data: st.DataObject) -> list[str]:
        known = [*sorted(self.model.jobs), "default:nobody"]
        return data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))

    # --- clients

    @rule(data=st.data(), n=st.integers(1, 3), exists=st.sampled_from(["existing", "existing", "raise"]))
    def enqueue(self, data: st.DataObject, n: int, exists: str) -> None:
        jobs = [self.new_job(data) for _ in range(n)]
        self.sent.append((jobs, exists))
        self.call("enqueue", jobs, exists=exists)

    def new_job(self, data: st.DataObject) -> NewJob:
        self.names += 1
        own = data.draw(st.sampled_from(["", "", "a", "b"]))
        due, expires = (data.draw(TIMES.map(lambda ms: ["", f"+{ms}", str(self.model.now - 5)][ms % 3])) for _ in "12")
        return NewJob(
            f"default:{own or self.names}",
            f"token{self.names}" if own else "",
            data.draw(st.sampled_from(["t", "u"])),
            data.draw(st.sampled_from(["async", "thread", ""])),
            data.draw(st.sampled_from([0, 0, -512, 511])),
            due,
            expires,
            data.draw(FIELDS),
        )

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        jobs, exists = self.pick(data, self.sent[-3:])
        self.call("enqueue", jobs, exists=exists)

    @rule(data=st.data(), running=st.booleans(), force=st.booleans(), partial=st.booleans())
    def cancel(self, data: st.DataObject, running: bool, force: bool, partial: bool) -> None:
        self.call("cancel", self.ids(data), running=running, force=force, partial=partial)

    @rule(data=st.data(), partial=st.booleans())
    def retry(self, data: st.DataObject, partial: bool) -> None:
        self.call("retry", self.ids(data), partial=partial)

    @rule(states=SOME_STATES, limit=LIMITS)
    def purge(self, states: list[str], limit: int) -> None:
        self.call("purge", states=states, limit=limit)

    @rule(states=st.lists(st.sampled_from(ENDS), min_size=1, unique=True), older=TIMES, limit=LIMITS)
    def clear(self, states: list[str], older: int, limit: int) -> None:
        self.call("clear", states=states, older_than_ms=older, limit=limit)

    @rule(data=st.data())
    def wait(self, data: st.DataObject) -> None:
        self.call("wait", self.ids(data)[0])

    @rule()
    def pause(self) -> None:
        self.call("pause")

    @rule()
    def resume(self) -> None:
        self.call("resume")

    @rule(thread=st.booleans(), keep=st.sampled_from([0, 20_000, 10**8]), most=st.sampled_from([0, 2, 10_000]))
    def declare(self, thread: bool, keep: int, most: int) -> None:
        retention = {"keep_completed": keep, "keep_failed": keep, "max_completed": most, "max_failed": most}
        self.call("declare", kinds={"u": "thread" if thread else "async"}, retention=retention)

    # --- workers

    @precondition(lambda self: len(self.workers) < 4)
    @rule(node=st.integers(1, 2))
    def start(self, node: int) -> None:
        self.names += 1
        self.workers.append(Worker(f"n{node}.{self.names}", node))

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def sleep(self, data: st.DataObject) -> None:
        """An idle worker takes a marker, if there is one."""
        worker = self.pick(data, self.workers)
        for klass in sorted(klass for klass, n in worker.free().items() if n and klass in self.model.markers):
            assert self.client.zpopmin(self.q.wake(klass))
            del self.model.markers[klass]
            worker.awake.add(klass)
        self.found = self.keyspace.dump()

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), lost=st.sampled_from(["", "", "", "reply", "request"]), limit=st.sampled_from([1, 250]))
    def claim(self, data: st.DataObject, lost: str, limit: int) -> None:
        worker = self.pick(data, self.workers)
        if worker.offer is None:
            worker.request += 1
            limit = min(limit, sum(worker.free().values()))
            worker.offer = {"request": worker.request, "limit": limit, "free": worker.free()}
        if lost != "request":
            self.answered_claim(worker, self.call("claim", worker=worker.id, lease_ms=LEASE_MS, **worker.offer), lost)

    def answered_claim(self, worker: Worker, claim: commands.Claim, lost: str) -> None:
        for job in claim.jobs:
            assert self.epochs.setdefault(job.id, {}).setdefault(job.epoch, worker.id) == worker.id, "two holders"
        if lost:
            return
        worker.offer, awake, worker.awake = None, worker.awake, set()
        for job in claim.jobs:
            worker.table[job.id] = (job.epoch, job.fields.get(b"class", b"async").decode())
        if claim.word == "gone":
            self.call("wake", sorted(awake))
            self.workers.remove(worker)

    @precondition(lambda self: any(worker.table for worker in self.workers))
    @rule(data=st.data(), lost=st.sampled_from(["", "", "", "reply", "request"]), delay=TIMES,
          verb=st.sampled_from(["complete", "complete", "fail", "release", "snooze"]))  # fmt: skip
    def finish(self, data: st.DataObject, verb: str, delay: int, lost: str) -> None:
        worker = self.pick(data, [worker for worker in self.workers if worker.table])
        ids = data.draw(st.lists(st.sampled_from(sorted(worker.table)), min_size=1, unique=True))
        held = [(id, worker.table[id][0]) for id in ids]
        rows: dict[str, Any] = {"worker": worker.id}
        if verb == "complete":
            rows["done"] = [Done(*one, data.draw(st.sampled_from([b"", b"r"]))) for one in held]
        elif verb == "fail":
            again = data.draw(st.sampled_from(["retry", "retry", "fail"]))
            rows["failures"] = [Failure(*one, again, delay, '{"type": "E"}', "E") for one in held]
        elif verb == "release":
            klass = data.draw(st.sampled_from(["", "", "thread"]))
            rows["jobs"] = [Release(*one, klass) for one in held]
        else:
            kind = data.draw(st.sampled_from(["snooze", "unknown"]))
            rows |= {"grace_ms": GRACE_MS, "jobs": [Snoozed(*one, kind, delay, "unknown") for one in held]}
        worker.unanswered.append((verb, rows))
        if lost != "request":
            self.answered_finish(worker, lost)

    @precondition(lambda self: any(worker.unanswered for worker in self.workers))
    @rule(data=st.data(), keep=st.booleans())
    def finish_again(self, data: st.DataObject, keep: bool) -> None:
        worker = self.pick(data, [worker for worker in self.workers if worker.unanswered])
        self.answered_finish(worker, "reply" if keep else "")

    def answered_finish(self, worker: Worker, lost: str) -> None:
        verb, rows = worker.unanswered[-1]
        words = self.call(verb, **rows)
        if set(words) <= {"lost", "gone"}:
            assert not changes(self.before, self.found), "a refused call changed something"
        if not lost:
            worker.unanswered.pop()
            for row in next(value for value in rows.values() if isinstance(value, list)):
                if worker.table.get(row.id, (0,))[0] == row.epoch:
                    del worker.table[row.id]

    @precondition(lambda self: self.model.of("running"))
    @rule(data=st.data(), verb=st.sampled_from(["complete", "fail", "release", "snooze", "renew", "bury"]),
          stale=st.booleans())  # fmt: skip
    def intrude(self, data: st.DataObject, verb: str, stale: bool) -> None:
        """Somebody without the right: an old epoch, or another worker."""
        job = self.pick(data, self.model.of("running"))
        epoch, worker = (job["epoch"] - 1, job["worker"]) if stale else (job["epoch"], "n9.9")
        if verb == "renew":
            assert self.call("renew", lease_ms=LEASE_MS, held=[Held(job.id, epoch, worker)]) == ["lost"]
        elif verb == "bury":
            assert self.call("bury", worker="n9.9", why="x", jobs=[Buried(job.id, epoch, "lost")]) == []
        else:
            rows: dict[str, dict[str, Any]] = {
                "complete": {"done": [Done(job.id, epoch, b"x")]},
                "fail": {"failures": [Failure(job.id, epoch, "fail", 0, "{}", "x")]},
                "release": {"jobs": [Release(job.id, epoch, "thread")]},
                "snooze": {"grace_ms": 0, "jobs": [Snoozed(job.id, epoch, "unknown", 0, "x")]},
            }
            (word,) = self.call(verb, worker=worker, **rows[verb])
            assert word == "lost" or job["ended"] == f"{epoch} {verb}"
            assert not changes(self.before, self.found), "an intruder changed something"

    # --- nodes

    @rule(node=st.integers(1, 2))
    def renew(self, node: int) -> None:
        rows = [
            (worker, Held(id, epoch, worker.id))
            for worker in self.workers
            if worker.node == node
            for id, (epoch, _) in sorted(worker.table.items())
        ]
        if rows:
            words = self.call("renew", lease_ms=LEASE_MS, held=[held for _, held in rows])
            for (worker, held), word in zip(rows, words, strict=True):
                if word == "lost":
                    del worker.table[held.id]

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def kill_worker(self, data: st.DataObject) -> None:
        worker = self.pick(data, self.workers)
        self.workers.remove(worker)
        self.dead.append(worker)

    @precondition(lambda self: self.dead)
    @rule(data=st.data(), lost=st.booleans())
    def bury(self, data: st.DataObject, lost: bool) -> None:
        worker = self.pick(data, self.dead)
        verbs = st.sampled_from(["lost", "lost", "refund", "timeout"])
        jobs = [Buried(id, epoch, data.draw(verbs), 500) for id, (epoch, _) in sorted(worker.table.items())]
        self.call("bury", worker=worker.id, why="SIGKILL", jobs=jobs)
        if not lost:
            self.dead.remove(worker)

    @precondition(lambda self: self.workers or self.dead)
    @rule(node=st.integers(1, 2))
    def lose_host(self, node: int) -> None:
        """Nobody buries these; what they held is reaped, and a marker they took is made up for by plain claims."""
        for worker in [worker for worker in (*self.workers, *self.dead) if worker.node == node]:
            self.unwoken |= worker.waits_for()
            (self.workers if worker in self.workers else self.dead).remove(worker)

    @rule(limit=LIMITS)
    def reap(self, limit: int) -> None:
        self.call("reap", lease_ms=LEASE_MS, limit=limit)

    @rule(limit=LIMITS)
    def promote(self, limit: int) -> None:
        self.call("promote", limit=limit)

    @rule(limit=LIMITS)
    def expire(self, limit: int) -> None:
        self.call("expire", limit=limit)

    @rule(limit=LIMITS)
    def prune(self, limit: int) -> None:
        self.call("prune", limit=limit)

    @rule(ms=st.sampled_from([1, 300, 2_000, 2_000, 20_000, 400_000]))
    def pass_time(self, ms: int) -> None:
        """A long time is an outage: nobody called."""
        self.model.now += ms

    # --- what always holds

    @invariant()
    def one_structure_per_job(self) -> None:
        invariants.one_structure_per_job(self.found)

    @invariant()
    def running_is_leased(self) -> None:
        invariants.running_is_leased(self.found)

    @invariant()
    def attempts_stay_below_the_maximum(self) -> None:
        invariants.attempts_stay_below_the_maximum(self.found)

    @invariant()
    def short_lived_keys_go_by_themselves(self) -> None:
        invariants.short_lived_keys_go_by_themselves(self.found, self.keyspace.ttls)

    @invariant()
    def what_waits_is_told(self) -> None:
        self.unwoken -= set(self.model.markers)
        awake = {klass for worker in (*self.workers, *self.dead) for klass in worker.waits_for()}
        invariants.what_waits_is_told(self.found, awake | self.unwoken)

    # --- the end of a history

    def teardown(self) -> None:
        """Everybody dies unburied; one new worker must get all that is left, and retention leaves nothing behind."""
        if self.broken:
            return
        self.workers, self.dead = [], []
        self.call("resume")
        for request in range(1, 200):
            if not any(job.state not in ENDS for job in self.model.jobs.values()):
                break
            self.model.now += 2_000
            self.call("reap", lease_ms=LEASE_MS, limit=250)
            claim = self.call("claim", worker="end.1", request=request, lease_ms=LEASE_MS, limit=250, free={"async": 99, "thread": 99})
            if claim.jobs:
                self.call("complete", worker="end.1", done=[Done(job.id, job.epoch, b"") for job in claim.jobs])
        assert {job.state for job in self.model.jobs.values()} <= set(ENDS), "jobs were left behind"
        self.model.now += 2_000_000_000
        while self.call("prune", limit=250):
            pass
        left = {name for name in self.found if not invariants.SHORT_LIVED.fullmatch(name)}
        assert left <= {"classes", "kinds", "meta", "stats", "wake:async", "wake:thread"}, left
