"""A node believes that it leads only while the server must agree."""

import asyncio

import pytest

from taskq import commands, keys
from taskq.connection import run_async
from taskq.errors import LeadershipLost, Unavailable
from taskq.node.leader.lead import EVERY_S, MARGIN_S, TTL_MS, Leader
from taskq.node.queues import Queues


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make(ground, clock):
    def make(node, **options):
        return Leader(ground.queues(), keys.cluster(ground.namespace), node, clock=clock, **options)

    return make


def now_ms(raw):
    seconds, micros = raw.time()
    return seconds * 1000 + micros // 1000


async def test_one_of_two_leads(make):
    a, b = make("a"), make("b")
    assert await a.step() == EVERY_S
    await b.step()
    assert a.term is not None
    assert a.leading() == a.term
    assert b.term is None
    with pytest.raises(LeadershipLost):
        b.leading()


async def test_no_answer_is_no_leadership(make, clock):
    a = make("a")
    await a.step()
    clock.now_s += TTL_MS / 1000 - MARGIN_S - 0.001
    assert a.term is not None
    clock.now_s += 0.002
    assert a.term is None


async def test_trust_counts_from_the_question_not_from_the_answer(make, clock, ground, monkeypatch):
    a = make("a")
    answer = ground.queues().run

    async def slow(self, command, **options):
        found = await answer(command, **options)
        clock.now_s += 3
        return found

    monkeypatch.setattr(Queues, "run", slow)
    await a.step()
    clock.now_s += TTL_MS / 1000 - MARGIN_S - 3 - 0.001
    assert a.term is not None
    clock.now_s += 0.002
    assert a.term is None


async def test_who_ends_resigns_and_takes_no_part(make):
    ends = False
    a, b = make("a", would_lead=lambda: not ends), make("b")
    await a.step()
    term = a.term
    ends = True
    await a.step()
    await b.step()
    assert a.term is None
    assert b.term > term


async def test_a_leader_that_was_replaced_hears_of_it(make, ground, raw, lines):
    a, b = make("a"), make("b")
    await a.step()
    raw.hset(keys.cluster(ground.namespace).fixed("leader"), "until", 1)
    await b.step()
    await a.step()
    assert a.term is None
    assert b.term is not None
    assert "this node leads no more" in [line["event"] for line in lines]


async def test_a_node_asks_again_when_anothers_time_is_over(make, ground, raw):
    """And so it leads within one TTL after the last word of one that died, not up to a second later."""
    a, b = make("a"), make("b")
    await a.step()
    assert await b.step() == EVERY_S
    raw.hset(keys.cluster(ground.namespace).fixed("leader"), "until", now_ms(raw) + 300)
    wait_s = await b.step()
    assert b.term is None
    assert 0 < wait_s <= 0.3
    await asyncio.sleep(wait_s)
    await b.step()
    assert b.term is not None


async def test_orders_reach_the_node_that_is_meant(make, ground):
    heard = []
    a = make("a", obey=heard.append)
    await a.step()
    c = keys.cluster(ground.namespace)
    for verb, to in (("drain", "a"), ("drain", "b"), ("resume", "*")):
        await run_async(ground.server, commands.order(c, verb, to))
    await a.step()
    await a.step()
    assert [(order.verb, order.to) for order in heard] == [("drain", "a"), ("resume", "*")]


async def test_an_outage_ends_leadership_by_itself(make, nobody, ground, clock):
    a = make("a")
    await a.step()
    a._queues = Queues(nobody, ground.namespace)
    with pytest.raises(Unavailable):
        await a.step()
    assert a.term is not None
    clock.now_s += TTL_MS / 1000
    with pytest.raises(Unavailable):
        await a.step()
    assert a.term is None
    with pytest.raises(LeadershipLost):
        a.leading()


async def test_who_ends_during_an_outage_leads_no_more(make, nobody, ground):
    a = make("a")
    await a.step()
    a._queues = Queues(nobody, ground.namespace)
    await a.resign()
    assert a.term is None


async def test_a_leader_that_renews_leads_on_without_a_gap(make, clock):
    """Its time would be over thrice."""
    a = make("a")
    await a.step()
    term = a.term
    for _ in range(18):
        clock.now_s += 1
        assert a.leading() == term, "until the next question, too"
        await a.step()
    assert a.leading() == term
