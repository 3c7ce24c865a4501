"""What a node does when it is told from afar: with real processes that only play workers."""

import asyncio
import sys
from pathlib import Path

import pytest

from taskq.commands import Order
from taskq.node.channel import Slots
from taskq.node.children.allotment import Allotment
from taskq.node.children.burial import Undertaker
from taskq.node.children.supervisor import Supervisor
from taskq.node.options import NodeOptions
from taskq.node.orders import Orders
from tests.waiting import await_until

COMMAND = (sys.executable, str(Path(__file__).with_name("stand_in.py")))


class Told:
    """A supervisor, and what it is told."""

    def __init__(self, supervisor):
        self.supervisor = supervisor
        self.shown = 0
        self.allotment = Allotment({"email": (2, 20)}, lambda: 100, others=lambda: True, children=list)
        self.orders = Orders(supervisor, self.allotment, self.show)

    def show(self):
        self.shown += 1

    def __call__(self, verb, more=""):
        self.orders.obey(Order(verb, "host", "somebody", more, 0))


@pytest.fixture
async def told(ground, settings, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    app = f"good:{settings.url},{settings.namespace},0"
    supervisor = Supervisor(app, "host", NodeOptions(workers=2), command=COMMAND)
    supervisor.undertaker.set_result(Undertaker(ground.server, ground.namespace))
    supervisor.begin()
    run = asyncio.create_task(supervisor.run())
    await await_until(lambda: [each.ready for each in supervisor.children] == [True] * 2, what="workers ready")
    yield Told(supervisor)
    supervisor.give_up("the test is over")
    await asyncio.wait_for(run, 10)


async def test_drain_and_resume_may_come_twice(told):
    sent = []
    for child in told.supervisor.children:
        child.send = lambda message: sent.append(message.op)
    for _ in range(2):
        told("drain")
        assert told.supervisor.resting
    for _ in range(2):
        told("resume")
        assert not told.supervisor.resting
    assert sent == ["rest", "rest", "begin", "begin"]
    assert told.shown == 4


async def test_a_worker_that_starts_while_the_node_drains_waits_for_its_end(told):
    told("drain")
    first = told.supervisor.children[0]
    first.kill("the test says so")
    await await_until(lambda: len(told.supervisor.children) == 2 and first not in told.supervisor.children)
    new = told.supervisor.children[-1]
    await await_until(lambda: new.hello is not None)
    await asyncio.sleep(0.1)
    assert new.holding
    assert not new.ready
    told("resume")
    await await_until(lambda: new.ready)


async def test_stop_is_a_drain_to_the_end(told):
    told("stop")
    assert told.supervisor.ending.is_set()
    told("stop")
    assert not told.supervisor._hurry.is_set(), "said twice it is no second signal"


async def test_what_it_does_not_know_is_told(told, lines):
    told("dance")
    assert [line["event"] for line in lines] == ["an order that this version doesn't know"]


# --- how much it runs at a time


async def test_more_workers_are_started_and_those_too_many_leave(told):
    told("scale", '{"workers": 4}')
    await await_until(lambda: [each.ready for each in told.supervisor.children] == [True] * 4)
    first = told.supervisor.children[0]
    for _ in range(2):
        told("scale", '{"workers": 1}')
    await await_until(lambda: told.supervisor.children == [first], what="three to leave")
    await asyncio.sleep(0.1)
    assert told.supervisor.children == [first], "nobody follows them"
    assert not told.supervisor.killed
    told("scale", '{"workers": 2}')
    await await_until(lambda: [each.ready for each in told.supervisor.children] == [True] * 2)


async def test_a_worker_that_died_meanwhile_is_one_of_those_too_many(told):
    one, other = told.supervisor.children
    one.kill("the test says so")
    other.kill("the test says so")
    told("scale", '{"workers": 1}')
    await await_until(lambda: one.over.is_set() and other.over.is_set())
    await await_until(lambda: [each.ready for each in told.supervisor.children] == [True])
    await asyncio.sleep(0.2)
    assert len(told.supervisor.children) == 1


async def test_slots_are_told_to_every_worker_and_to_those_that_follow(told):
    sent = []
    for child in told.supervisor.children:
        child.send = sent.append
    told("scale", '{"slots": 7}')
    told("scale", '{"slots": 7}')
    assert sent == [Slots(7), Slots(7)], "one for each worker"
    assert (told.supervisor.options.concurrency, told.supervisor.options.workers) == (7, 2)


async def test_within_a_range_the_leader_says_how_many_workers(told):
    told("scale", '{"within": 4}')
    assert told.supervisor.options.workers == 2, "their number stays"
    told("scale", '{"workers": [1, 3]}')
    assert (told.supervisor.options.workers, told.supervisor.options.worker_range) == (2, (1, 3))
    told("scale", '{"within": 9, "queues": {"email": 7}}')
    await await_until(lambda: [each.ready for each in told.supervisor.children] == [True] * 3)
    assert told.allotment.shown()["queues"]["email"]["slots"] == 7
    told("scale", '{"within": 1}')
    await await_until(lambda: len(told.supervisor.children) == 1)
    told("scale", '{"workers": 2}')
    told("scale", '{"within": 3}')
    assert (told.supervisor.options.workers, told.supervisor.options.worker_range) == (2, None)


WRONG = [
    '{"workers": 0}', '{"workers": "many"}', '{"workers": true}', '{"workers": [3, 1]}', '{"workers": [2]}',
    '{"workers": [0, 2]}', '{"workers": ["a", 2]}', '{"within": "many"}', '{"slots": -1}', "{", "[1]", "null", "",
    '{"x": 1}',
]  # fmt: skip


@pytest.mark.parametrize("more", WRONG)
async def test_what_cannot_be_changes_nothing(told, more):
    before, slots = told.supervisor.options, told.allotment.shown()
    told("scale", more)
    assert (told.supervisor.options, told.allotment.shown()) == (before, slots)
    assert len(told.supervisor.children) == 2


async def test_a_leaders_word_on_queues_is_taken_in_and_changes_no_worker(told):
    before = told.supervisor.options
    told.orders.obey(Order("scale", "*", "leader", '{"queues": {"email": 7}}', 1))
    assert told.allotment.shown()["queues"]["email"]["slots"] == 7
    assert told.supervisor.options == before
