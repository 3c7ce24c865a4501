"""Schedules under random histories: the real loops and scripts, with leaders that die between any two calls, answers
that are lost, calls that arrive twice, two nodes that both believe to lead, and a clock that is set back. However it
goes, each nominal time becomes one job, in order.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from taskq import commands, keys
from taskq.calendar import every, next_after, rule_text
from taskq.commands import Declared, Done
from taskq.errors import Unavailable
from taskq.node.relay import Relay
from taskq.node.schedules import Schedules
from taskq.schedules.template import Template, job_id
from tests.lua.room import T0

NODES = ("a", "b")
RULES = {
    "minutely": every("60s", missed="all"),
    "odd": every("97s", missed="all", jitter="20s"),
    "elsewhere": every("60s", missed="all"),
}
QUEUES = {"minutely": "default", "odd": "default", "elsewhere": "other"}
FATES = st.lists(
    st.sampled_from(["", "", "", "", "lost", "twice", "away", "dies before", "dies after"]), min_size=0, max_size=12
)


class Dead(BaseException):
    """The node is gone, in the middle of whatever it did."""


class Wire:
    """A node's way to the server: each call at the machine's time, with the fate that is next in line."""

    def __init__(self, machine):
        self.machine, self.fates = machine, []

    async def run(self, command, **_):
        fate = self.fates.pop(0) if self.fates else ""
        if fate == "away":
            raise Unavailable
        if fate == "dies before":
            raise Dead
        answer = self.machine.run(command)
        if fate == "twice":
            answer = self.machine.run(command)
        if fate == "lost":
            raise Unavailable
        if fate == "dies after":
            raise Dead
        return answer

    async def run_many(self, many, **_):
        return [await self.run(each) for each in many]


class Belief:
    """What a node believes of its leadership, true or not; it may have stood still since."""

    term = None


class Node:
    def __init__(self, machine, name):
        self.name, self.wire, self.belief, self.waiting = name, Wire(machine), Belief(), []
        queues: Any = self.wire
        self.relay = Relay(queues, machine.c.namespace, self.belief)
        self.schedules = Schedules(queues, machine.c, name, self.belief, relay=self.waiting.append)


class Firing(RuleBasedStateMachine):
    client: Any

    def __init__(self):
        super().__init__()
        self.c = keys.cluster(f"t{uuid.uuid4().hex[:8]}")
        self.now = T0 + 1234
        self.latest = self.now
        self.nodes = {name: Node(self, name) for name in NODES}
        self.ledger, self.by_hand, self.requests = [], set(), 0
        self.loop = asyncio.new_event_loop()

    def run(self, command):
        args = list(command.args)
        if "now" in command.script.args:
            args[command.script.args.index("now")] = self.now
        return command.read(self.client.eval(command.script.source, len(command.keys), *command.keys, *args))

    def step(self, coroutine):
        with suppress(Unavailable, Dead):
            self.loop.run_until_complete(coroutine)

    @initialize()
    def begin(self):
        self.declare()
        self.began = self.now

    @rule()
    def declare(self):
        template = Template("t", "async", 0, "", "", {"keep": 0}).pack()
        said = [Declared(name, rule_text(each), "allow", QUEUES[name], "t", template) for name, each in RULES.items()]
        self.run(commands.declare_schedules(self.c, said))

    @rule(name=st.sampled_from(NODES))
    def seek_to_lead(self, name):
        heard = self.run(commands.pulse(self.c, node=name, leads=True, ttl_ms=6_000))
        self.nodes[name].belief.term = heard.term if heard.leader == name else None

    @rule(name=st.sampled_from(NODES), fates=FATES)
    def look(self, name, fates):
        node = self.nodes[name]
        node.wire.fates = list(fates)
        self.step(node.schedules.step())
        self.relay_of(node)

    @rule(name=st.sampled_from(NODES), queue=st.sampled_from(["default", "other"]), fates=FATES)
    def relay(self, name, queue, fates):
        node = self.nodes[name]
        node.wire.fates = list(fates)
        node.waiting.append(queue)
        self.relay_of(node)

    def relay_of(self, node):
        while node.waiting:
            self.step(node.relay._relay(node.waiting.pop()))

    @rule(name=st.sampled_from(sorted(RULES)))
    def fire_by_hand(self, name):
        token = uuid.uuid4().hex
        for _ in range(2):
            word, nominal, queue = self.run(commands.run_schedule(self.c, name, token=token))
            assert word == "ok"
            self.by_hand.add(job_id(queue, name, "manual", nominal))

    @rule()
    def work(self):
        """Everything runs, and no record of it is left."""
        for name in ("default", "other"):
            q = keys.queue(self.c.namespace, name)
            self.requests += 1
            claim = commands.claim(
                q, worker="n.1", request=self.requests, lease_ms=8_000, limit=250, free={"async": 250}
            )
            jobs = self.run(claim).jobs
            done = [Done(job.id, job.epoch, b"") for job in jobs]
            if done:
                assert self.run(commands.complete(q, worker="n.1", done=done)) == ["ok"] * len(done)
            self.ledger += [job.id for job in jobs]

    @rule(ms=st.sampled_from([500, 7_000, 60_000, 120_000]))
    def time_passes(self, ms):
        self.now += ms
        self.latest = max(self.latest, self.now)

    @rule()
    def clock_is_set_back(self):
        self.now -= 20_000

    def teardown(self):
        """All is well again; then everything that was due has been done once, and nothing else."""
        self.now = max(self.now, self.latest) + 21_000
        self.declare()
        node = self.nodes["a"]
        node.wire.fates = []
        for _ in range(8):
            self.now += 7_000
            self.seek_to_lead("a")
            self.look("a", [])
        self.work()
        self.loop.close()
        for name, each in RULES.items():
            opening = job_id(QUEUES[name], name, "due", 0)[:-1]
            ran = [int(id.rpartition("-")[2]) for id in self.ledger if id.startswith(opening)]
            expected, at = [], self.began
            while (at := next_after(each, at)) <= self.now:
                expected.append(at)
            assert ran == sorted(set(ran)), f"{name}: twice, or out of order: {ran}"
            assert ran in (expected, expected[:-1]), f"{name}: {ran} and not {expected}"  # the last may be waiting
        assert sorted(id for id in self.ledger if ":m-" in id) == sorted(self.by_hand)
        for queue in ("default", "other"):
            assert self.run(commands.outbox(self.c, queue)) == []
        for key in self.client.scan_iter(f"{self.c.namespace}:*"):
            self.client.delete(key)


def histories(raw, examples, steps):
    class Here(Firing):
        client = raw

    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.mark.timeout(300)
def test_each_nominal_time_fires_once(raw):
    histories(raw, 60, 40)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_each_nominal_time_fires_once_in_many_histories(raw):
    histories(raw, 1000, 60)
