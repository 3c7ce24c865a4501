"""The state machine: a random history of one queue, each call made to the real scripts and to the model.

After a call the replies must be equal, then the whole keyspaces; then the invariants are checked. A history ends with
everybody dead: one new worker must find all that is left, and retention must leave nothing behind.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from taskq import commands
from taskq.commands import Command, Done
from taskq.errors import TaskQError
from taskq.keys import QueueKeys
from tests.lua.keyspace import Dump, Keyspace, changes
from tests.simulation import invariants
from tests.simulation.acts import ACTS, Worker
from tests.simulation.expected import comparable, keyspace
from tests.simulation.model import ENDS
from tests.simulation.workers import Model

T0 = 1_800_000_000_000
LEASE_MS = 8_000
# A seed for each step. Drawing every choice from hypothesis gave dull histories, and slow ones; what it is needed for
# is to leave out steps until only those remain that break something.
CHANCE = st.binary(min_size=8, max_size=8)
UNTIMED = {"wait"}  # operations that take no time


class Simulation(RuleBasedStateMachine):
    """One history. `run`, `q`, `client` and `calls` are set on a subclass, for all its histories."""

    run: Callable[[Command[Any]], Any]
    q: QueueKeys
    client: Any
    calls: Counter[str]
    model: Model
    turn: int

    def __init__(self) -> None:
        super().__init__()
        self.client.flushall()
        self.model = Model(T0)
        self.keyspace = Keyspace(self.client, self.q)
        self.before: Dump = {}
        self.found: Dump = {}
        self.workers: list[Worker] = []
        self.dead: list[Worker] = []
        self.sent: list[tuple[list[commands.NewJob], str]] = []
        self.holders: dict[tuple[str, int], str] = {}
        self.unwoken: set[str] = set()
        self.names = self.turn = 0
        self.broken = False

    # --- what happens

    @rule(chance=CHANCE)
    def step(self, chance: bytes) -> None:
        """Something happens."""
        self.turn += 1
        draw = random.Random(
            chance + bytes([self.turn % 256])
        )  # hypothesis likes to repeat itself; a history shouldn't
        possible = [act for act in ACTS if act.possible(self)]
        draw.choices(possible, [act.weight for act in possible])[0].do(self, draw)

    def call(self, operation: str, *args: Any, **options: Any) -> Any:
        """One call, to both."""
        self.broken = True
        now = {} if operation in UNTIMED else {"now": self.model.now}
        try:
            reply = type(self).run(getattr(commands, operation)(self.q, *args, **now, **options))
        except TaskQError as error:
            reply = type(error).__name__
        wanted = getattr(self.model, operation)(*args, **options)
        if operation == "claim":
            self._hears_of_the_next(options["worker"], reply)
            self._is_the_only_holder(options["worker"], reply)
            assert (reply.word, {job[:3] for job in reply.jobs}) == wanted
        elif operation != "wait":
            assert reply == wanted, (operation, args, options, reply, wanted)
        note(f"{self.model.now - T0:>9} {operation} {args or ''} {options or ''} -> {reply}")
        self.look()
        assert not (differ := changes(keyspace(self.model), comparable(self.found))), differ
        told = self.keyspace.events()
        invariants.every_move_is_told(self.before, self.found, told)
        invariants.nothing_vanishes(self.before, self.found, told)
        invariants.epochs_grow(self.before, self.found)
        self.calls[operation] += 1
        self.broken = False
        return reply

    def look(self) -> None:
        self.before, self.found = self.found, self.keyspace.dump()

    def unchanged(self) -> bool:
        """Whether the last call changed nothing at all."""
        return self.before == self.found

    def _hears_of_the_next(self, worker: str, claim: commands.Claim) -> None:
        """One worker hears exactly when the next job is due, the others up to 50 ms later.

        Of what its own node handed back, because nobody there knew the task, a worker may hear a second later.
        """
        due = [job for state in ("scheduled", "retryable") for job in self.model.of(state)]
        if not due or claim.word != "ok":
            assert claim.next_ms is None
            return
        at, node = min(job.at for job in due), worker.rpartition(".")[0]
        own = any(job["unknown_since"] and job["worker"].rpartition(".")[0] == node for job in due if job.at == at)
        assert claim.next_ms - max(0, at - self.model.now) in (0, 50, *((1000,) if own else ()))

    def _is_the_only_holder(self, worker: str, claim: commands.Claim) -> None:
        for job in claim.jobs:
            assert self.holders.setdefault((job.id, job.epoch), worker) == worker

    # --- what always holds

    @invariant()
    def holds(self) -> None:
        invariants.one_structure_per_job(self.found)
        invariants.running_is_leased(self.found)
        invariants.attempts_stay_below_the_maximum(self.found)
        invariants.short_lived_keys_go_by_themselves(self.found, self.keyspace.ttls)
        self.unwoken -= set(self.model.markers)
        awake = {klass for worker in (*self.workers, *self.dead) for klass in worker.waits_for()}
        invariants.what_waits_is_told(self.found, awake | self.unwoken)

    # --- the end

    def teardown(self) -> None:
        if self.broken:
            return
        self.workers, self.dead = [], []
        self.call("resume")
        for request in range(1, 100):
            if all(job.state in ENDS for job in self.model.jobs.values()):
                break
            self.model.now += 3_000
            self.call("reap", lease_ms=LEASE_MS, limit=250)
            offer = {"limit": 250, "free": {"async": 99, "thread": 99}}
            claim = self.call("claim", worker="end.1", request=request, lease_ms=LEASE_MS, **offer)
            if claim.jobs:
                self.call("complete", worker="end.1", done=[Done(job.id, job.epoch, b"") for job in claim.jobs])
            elif claim.next_ms:
                self.model.now += claim.next_ms
        assert {job.state for job in self.model.jobs.values()} <= set(ENDS), "jobs were left behind"
        self.model.now += 2_000_000_000
        while self.call("prune", limit=250):
            pass
        left = {name for name in self.found if not invariants.SHORT_LIVED.fullmatch(name)}
        assert left <= {"classes", "kinds", "meta", "stats", "wake:async", "wake:thread"}
