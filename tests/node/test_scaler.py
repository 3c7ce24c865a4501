"""The leader scales: what it reads, what it decides, whom it tells, against the real server."""

import asyncio
import itertools
import json
import math
import time

import pytest

from taskq import commands, keys
from taskq.commands import Done, Registered
from taskq.node.leader.scaler import AGAIN, Scaler, scaled_of


class Cluster:
    def __init__(self, ground):
        self.ground, self.c = ground, keys.cluster(ground.namespace)
        self.term, self.after = None, ""
        self.scaler = Scaler(ground.queues(), self.c, ground.namespace, "n", term=lambda: self.term)

    async def lead(self):
        self.term = (await self.pulse()).term

    async def pulse(self, leads=True):
        heard = await self.ground.do(
            commands.pulse(self.c, node="n", leads=leads, ttl_ms=60_000, after=self.after or "0-0")
        )
        self.after = heard.after
        return heard

    async def node(self, name, slots, *, most=20, total=100, state="active"):
        queues = {"default": {"least": 2, "most": most, "slots": slots, "busy": 0}}
        fields = {"state": state, "stats": json.dumps({"scaling": {"total": total, "queues": queues}})}
        await self.enter(name, fields)

    async def crew(self, name, now, *, least=1, most=8, cores=0.0, plain=("default",), **scaling):
        workers = {"least": least, "most": most, "now": now, "each": 5, "cores": cores, "queues": list(plain)}
        await self.enter(name, {"state": "active", "stats": json.dumps({"scaling": scaling | {"workers": workers}})})

    async def enter(self, name, fields):
        known = Registered(0, 0)
        await self.ground.do(commands.register_node(self.c, node=name, ttl_ms=60_000, fields=fields, known=known))

    async def orders(self):
        orders = (await self.pulse()).orders
        return {order.to: json.loads(order.more) for order in orders if order.verb == "scale"}

    async def told(self):
        orders = (await self.pulse()).orders
        return {order.to: json.loads(order.more)["queues"]["default"] for order in orders if order.verb == "scale"}


@pytest.fixture
async def cluster(ground):
    return Cluster(ground)


@pytest.fixture
def ticking(monkeypatch):
    """The queue is read five seconds later each time, by a clock of the test's."""
    real, clock = commands.demand, itertools.count(int(time.time() * 1000), 5_000)
    monkeypatch.setattr("taskq.node.leader.scaler.commands.demand", lambda q: real(q, now=next(clock)))


def said(lines, event):
    """The numbers of each line of this event."""
    return [
        {k: v for k, v in line.items() if k not in ("event", "log_level")} for line in lines if line["event"] == event
    ]


async def test_who_does_not_lead_says_nothing(cluster):
    await cluster.node("a", 2)
    await cluster.scaler.step()
    assert await cluster.told() == {}


async def test_a_backlog_is_divided_over_the_nodes(cluster, ground, lines):
    await cluster.lead()
    await cluster.node("a", 2)
    await cluster.node("b", 2)
    await cluster.node("c", 2, state="draining")
    await ground.enqueue(300)  # a second each, in half a minute
    await cluster.scaler.step()
    assert await cluster.told() == {"a": 5, "b": 5}
    assert said(lines, "slots are scaled") == [
        {"queue": "default", "slots": 10, "before": 4, "arrivals_s": 0.0, "run_s": 1.0, "waiting": 300}
    ]
    await cluster.scaler.step()
    assert await cluster.told() == {}
    assert len(said(lines, "slots are scaled")) == 1, "only a change is said"


async def test_a_decision_is_said_with_the_numbers_that_made_it(cluster, ground, lines, ticking):
    await cluster.lead()
    await cluster.node("a", 2)
    await cluster.scaler.step()
    await ground.enqueue(200)
    child = ground.child()
    claimed = await ground.claim(child, 50)
    await asyncio.sleep(0.1)
    done = [Done(job.id, job.epoch, b"") for job in claimed]
    await ground.do(commands.complete(ground.q, worker=child.worker, done=done))
    await cluster.scaler.step()
    mean_s = (await ground.do(commands.demand(ground.q))).run_ms / 50 / 1000
    rate = 0.4 * 200 / 5  # what came within five seconds, smoothed
    assert mean_s >= 0.1
    slots = min(20, math.ceil((rate + 150 / 30) * mean_s))
    assert await cluster.told() == {"a": slots}
    assert said(lines, "slots are scaled") == [
        {"queue": "default", "slots": slots, "before": 2, "arrivals_s": rate, "run_s": round(mean_s, 3), "waiting": 150}
    ]


async def test_nodes_that_are_alike_have_alike_slots_up_and_down_again(cluster, ground, ticking):
    """Over many steps, each of which sees what the one before has made of the nodes."""
    await cluster.lead()
    has, wanted, child = {"a": 2, "b": 2}, [], ground.child()

    async def step():
        for name, slots in has.items():
            await cluster.node(name, slots)
        await cluster.scaler.step()
        has.update(await cluster.told())
        wanted.append(sum(has.values()))
        assert abs(has["a"] - has["b"]) <= 1

    for more in (300, 60, 0, 90, 0, 0):
        await ground.enqueue(more)
        await step()
    assert wanted == sorted(wanted)
    assert (wanted[0], wanted[-1] > 20) == (10, True)
    for _ in range(5):
        await ground.claim(child, 100, fill=False)  # nobody waits, and nothing more comes
    for _ in range(40):
        await step()
    assert has == {"a": 2, "b": 2}
    assert wanted[6:] == sorted(wanted[6:], reverse=True)


async def test_a_new_leader_goes_on_with_the_slots_that_nodes_show(cluster):
    await cluster.lead()
    await cluster.node("a", 9)
    await cluster.scaler.step()
    assert await cluster.told() in ({}, {"a": 9})  # nothing waits, but nothing is taken away in a hurry


async def test_a_node_that_does_not_show_what_it_was_told_is_told_again(cluster, ground):
    await cluster.lead()
    await cluster.node("a", 2)
    await ground.enqueue(300)
    for _ in range(AGAIN + 1):
        await cluster.scaler.step()
    await cluster.told()
    await cluster.scaler.step()
    assert await cluster.told() == {"a": 10}


async def test_an_old_leader_is_refused(cluster, ground):
    await cluster.lead()
    await cluster.node("a", 2)
    await ground.enqueue(300)
    cluster.term -= 1
    await cluster.scaler.step()
    assert await cluster.told() == {}


@pytest.mark.parametrize(
    "stats", [None, "", "[]", "{", '{"scaling": 1}', '{"scaling": {"total": 1, "queues": {"q": {}}}}',
              '{"scaling": {"total": -1, "queues": {"q": {"least": 1, "most": 2, "slots": 1}}}}',
              '{"scaling": {"total": 9, "queues": {"Q!": {"least": 1, "most": 2, "slots": 1}}}}',
              '{"scaling": {"total": 9, "queues": {"q": {"least": 3, "most": 2, "slots": 1}}}}'],
)  # fmt: skip
def test_a_record_that_is_damaged_is_left_out(stats):
    assert scaled_of({"stats": stats} if stats is not None else {}) is None


# --- workers


async def test_workers_are_scaled_by_what_their_queues_need(cluster, ground):
    await cluster.lead()
    await cluster.crew("a", 1)
    await cluster.crew("b", 1)
    await ground.enqueue(300)  # ten slots
    await cluster.scaler.step()
    assert await cluster.orders() == {"a": {"within": 1}, "b": {"within": 1}}, "five slots each"
    await ground.enqueue(600)
    await cluster.scaler.step()
    told = await cluster.orders()
    assert {name for order in told.values() for name in order} == {"within"}
    assert all(3 <= order["within"] <= 8 for order in told.values())


async def test_what_a_queues_range_gives_a_node_needs_workers_too(cluster, ground):
    await cluster.lead()
    queues = {"default": {"least": 2, "most": 20, "slots": 2, "busy": 0}}
    await cluster.crew("a", 1, plain=(), total=40, queues=queues)
    await ground.enqueue(300)
    await cluster.scaler.step()
    assert await cluster.orders() == {"a": {"queues": {"default": 10}, "within": 2}}


async def test_workers_whose_cores_are_full_are_given_others(cluster, lines):
    await cluster.lead()
    await cluster.crew("a", 2, cores=1.96)
    await cluster.scaler.step()
    assert await cluster.orders() == {"a": {"within": 3}}
    assert said(lines, "workers are scaled") == [
        {"node": "a", "workers": 3, "before": 2, "need": 2.45, "slots_each": 5, "cores": 1.96}
    ]


async def test_nodes_that_are_alike_have_alike_workers_up_and_down_again(cluster, ground, ticking):
    await cluster.lead()
    has, wanted, child = {"a": 1, "b": 1}, [], ground.child()

    async def step():
        for name, workers in has.items():
            await cluster.crew(name, workers)
        await cluster.scaler.step()
        has.update({name: order["within"] for name, order in (await cluster.orders()).items()})
        wanted.append(sum(has.values()))
        assert abs(has["a"] - has["b"]) <= 1

    for more in (600, 100, 0, 100, 0):
        await ground.enqueue(more)
        await step()
    assert wanted == sorted(wanted)
    assert (wanted[0], wanted[-1] > 4) == (4, True), "twenty slots, five each"
    for _ in range(8):
        await ground.claim(child, 100, fill=False)
    for _ in range(40):
        await step()
    assert has == {"a": 1, "b": 1}
    assert wanted[5:] == sorted(wanted[5:], reverse=True)


async def test_a_node_with_the_workers_it_needs_is_told_nothing_new(cluster):
    await cluster.lead()
    await cluster.crew("a", 2, least=2)
    for _ in range(AGAIN + 2):
        await cluster.scaler.step()
    assert await cluster.orders() in ({}, {"a": {"within": 2}})
    await cluster.scaler.step()
    assert await cluster.orders() == {}


@pytest.mark.parametrize(
    "wrong",
    [{"least": 0}, {"most": 0}, {"each": 0}, {"now": "2"}, {"cores": "many"}, {"queues": ["Q!"]}, {"queues": 1}],
)
def test_a_crew_that_cannot_be_is_left_out(wrong):
    right = {"least": 1, "most": 8, "now": 1, "each": 5, "cores": 0.5, "queues": ["q"]}
    assert scaled_of({"stats": json.dumps({"scaling": {"workers": right}})}).shown == {"within": 1}
    assert scaled_of({"stats": json.dumps({"scaling": {"workers": right | wrong}})}) is None


# --- what the script answers


async def test_the_demand_of_a_queue(ground):
    child = ground.child()
    await ground.enqueue(5)
    await ground.enqueue(2, due="+3600000")
    first, _ = await ground.claim(child, 2)
    await ground.do(commands.complete(ground.q, worker=child.worker, done=[Done(first.id, first.epoch, b"")]))
    found = await ground.do(commands.demand(ground.q))
    assert (found.waiting, found.running, found.arrived, found.completed) == (3, 1, 5, 1)
    assert 0 <= found.run_ms < 60_000
    await ground.do(commands.pause(ground.q))
    assert (await ground.do(commands.demand(ground.q))).waiting == 0
