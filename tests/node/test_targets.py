"""The leader frees the jobs of a target that is gone, drains or is full for half a minute; nobody else does."""

import json
import time

import pytest

from taskq import commands, keys
from taskq.commands import NewJob
from taskq.node.leader.targets import EVERY_S, GAP_S, PATIENCE_S, Targets, amiss


class Leader:
    """A leader of its own clock, and the nodes that it sees."""

    def __init__(self, ground):
        self.ground, self.c, self.q = ground, keys.cluster(ground.namespace), ground.q
        self.term, self.now = 5, 1_000.0
        self.targets = Targets(ground.queues(), self.c, term=lambda: self.term, clock=lambda: self.now)

    async def node(self, id, *, state="active", silent_ms=0, **stats):
        fields = {"state": state, "hostname": "web", "queues": "[]", "stats": json.dumps(stats)}
        at = int(time.time() * 1000) - silent_ms
        await self.ground.do(
            commands.register_node(
                self.c, node=id, ttl_ms=600_000, fields=fields, known=commands.Registered(0, 0), now=at
            )
        )

    async def add(self, name, target, **fields):
        await self.ground.do(commands.register_queue(self.c, "default"))
        needs = f"target={target}"
        job = NewJob(f"default:{name}", "", "t", "async", 0, "", "", fields, needs=needs)
        await self.ground.do(commands.enqueue(self.q, [job]))

    async def claim(self, worker, call, **options):
        """A claim of an executor that serves what is for it."""
        klass = f"async;target={worker}"
        claim = commands.claim(
            self.q, worker=worker, request=1, lease_ms=8000, limit=9, free={"async": 9, "thread": 9},
            narrow={klass: {"async": 1}}, call=call, **options,
        )  # fmt: skip
        return [job.id.partition(":")[2] for job in (await self.ground.do(claim)).jobs]

    async def steps(self, for_s, each_s=EVERY_S):
        """Steps that many seconds, one of them now."""
        end = self.now + for_s
        while True:
            assert await self.targets.step() == EVERY_S
            if self.now + each_s > end:
                return
            self.now += each_s

    async def of(self, name):
        fields = await self.ground.fields(f"default:{name}")
        return fields[b"state"].decode(), fields.get(b"class", b"async").decode()


@pytest.fixture
async def leader(ground):
    return Leader(ground)


FREE, FAILED = ("available", "async"), ("failed", "async;target=n1")
BOUND = ("available", "async;target=n1")


async def test_a_target_that_is_gone_for_half_a_minute_is_lost(leader):
    await leader.node("n2")
    await leader.add("any", "n1")
    await leader.add("fail", "n1", on_target_lost="fail")
    await leader.add("other", "n2")
    await leader.add("host", "web")
    await leader.steps(PATIENCE_S - EVERY_S)
    assert (await leader.of("any"), await leader.of("fail")) == (BOUND, BOUND)
    leader.now += EVERY_S
    await leader.steps(0)
    assert (await leader.of("any"), await leader.of("fail")) == (FREE, FAILED)
    assert await leader.of("other") == ("available", "async;target=n2")
    assert await leader.of("host") == ("available", "async;target=web")


@pytest.mark.parametrize("how", [{"state": "draining"}, {"slots": 2, "busy": 2}])
async def test_one_that_takes_nothing_for_so_long_keeps_those_that_would_fail(leader, how):
    await leader.node("n1", **how)
    await leader.add("any", "n1")
    await leader.add("fail", "n1", on_target_lost="fail")
    await leader.steps(PATIENCE_S)
    assert (await leader.of("any"), await leader.of("fail")) == (FREE, BOUND)


async def test_a_target_that_comes_back_in_time_keeps_its_jobs(leader):
    await leader.add("a", "n1")
    await leader.steps(PATIENCE_S - EVERY_S)
    await leader.node("n1", slots=2, busy=1)
    leader.now += EVERY_S
    await leader.steps(2 * PATIENCE_S)
    assert await leader.of("a") == BOUND
    await leader.node("n1", silent_ms=31_000)
    leader.now += EVERY_S
    await leader.steps(PATIENCE_S - EVERY_S)
    assert await leader.of("a") == BOUND
    leader.now += EVERY_S
    await leader.steps(0)
    assert await leader.of("a") == FREE


async def test_drained_first_and_then_lost_it_is_lost_for_half_a_minute_before_jobs_fail(leader):
    await leader.node("n1", state="draining")
    await leader.add("fail", "n1", on_target_lost="fail")
    await leader.steps(PATIENCE_S)
    await leader.node("n1", silent_ms=31_000)
    leader.now += EVERY_S
    await leader.steps(PATIENCE_S - EVERY_S)
    assert await leader.of("fail") == BOUND
    leader.now += EVERY_S
    await leader.steps(0)
    assert await leader.of("fail") == FAILED


async def test_what_was_not_watched_does_not_count(leader):
    await leader.add("a", "n1")
    await leader.steps(PATIENCE_S - EVERY_S)
    leader.now += GAP_S + 1
    await leader.steps(PATIENCE_S - EVERY_S)
    assert await leader.of("a") == BOUND
    leader.term = None
    leader.now += EVERY_S
    await leader.steps(PATIENCE_S)
    leader.term = 6
    leader.now += EVERY_S
    await leader.steps(PATIENCE_S - EVERY_S)
    assert await leader.of("a") == BOUND


async def test_queues_have_their_turns(leader, monkeypatch):
    monkeypatch.setattr("taskq.node.leader.targets.AT_ONCE", 1)
    for name in ("a", "b", "z"):
        await leader.ground.do(commands.register_queue(leader.c, name))
    await leader.add("x", "n1")
    await leader.steps(PATIENCE_S + 8 * EVERY_S)
    assert await leader.of("x") == FREE


async def test_an_executor_that_claims_is_no_lost_target(leader):
    await leader.add("a", "ext")
    await leader.add("b", "gone", on_target_lost="fail")
    await leader.claim("other", "c")
    assert await leader.claim("ext", "c", offer_ms=1) == ["a"]
    await leader.ground.do(commands.withdraw(leader.q, "ext", why="busy", term=5))
    await leader.steps(2 * PATIENCE_S)
    assert await leader.of("a") == ("available", "async;target=ext")
    assert await leader.of("b") == ("failed", "async;target=gone")


async def test_one_that_claims_no_more_is_lost_after_half_a_minute(leader):
    await leader.add("a", "ext")
    await leader.claim("ext", "c", offer_ms=1)
    await leader.ground.do(commands.withdraw(leader.q, "ext", why="busy", term=5))
    await leader.steps(PATIENCE_S)
    leader.ground.raw.zadd(leader.q.fixed("executors"), {"ext": 1})
    leader.now += EVERY_S
    await leader.steps(PATIENCE_S - 2 * EVERY_S)
    assert await leader.of("a") == ("available", "async;target=ext")
    leader.now += EVERY_S
    await leader.steps(0)
    assert await leader.of("a") == FREE


@pytest.mark.parametrize("how", [{"state": "draining"}, {"silent_ms": 31_000}])
async def test_offers_to_a_node_that_is_dead_or_drains_go_back_at_once(leader, how):
    await leader.node("n1", **how)
    await leader.node("n2")
    await leader.add("a", "n1")
    await leader.add("b", "n2")
    assert await leader.claim("n1", "c", offer_ms=60_000) == ["a"]
    assert await leader.claim("n2", "c", offer_ms=60_000) == ["b"]
    await leader.steps(0)
    assert (await leader.of("a"))[0] == "available"
    assert (await leader.of("b"))[0] == "running"


async def test_offers_to_a_full_node_go_back_after_half_a_minute(leader):
    await leader.node("n1", slots=2, busy=2)
    await leader.add("a", "n1")
    await leader.claim("n1", "c", offer_ms=3_600_000)
    await leader.steps(PATIENCE_S - EVERY_S)
    assert (await leader.of("a"))[0] == "running"
    leader.now += EVERY_S
    await leader.steps(0)
    assert (await leader.of("a"))[0] == "available"


async def test_what_a_dead_node_started_and_offers_of_others_are_left_alone(leader):
    await leader.node("n1", state="draining")
    await leader.add("a", "n1")
    await leader.add("b", "ext")
    await leader.claim("n1", "c")
    await leader.claim("ext", "c", offer_ms=60_000)
    await leader.steps(2 * PATIENCE_S)
    assert [(await leader.of(name))[0] for name in "ab"] == ["running"] * 2


async def test_once_a_later_leader_wrote_to_a_queue_an_earlier_one_does_nothing_there(leader):
    await leader.node("n2", state="draining")
    await leader.add("fail", "n1", on_target_lost="fail")
    await leader.add("offered", "n2")
    await leader.claim("n2", "c", offer_ms=60_000)
    await leader.ground.do(commands.receive(leader.q, [], term=6))
    await leader.steps(2 * PATIENCE_S)
    assert (await leader.of("fail"), (await leader.of("offered"))[0]) == (BOUND, "running")
    leader.term = 7
    await leader.steps(0)
    assert (await leader.of("fail"), (await leader.of("offered"))[0]) == (FAILED, "available")


def test_slots_are_those_of_the_executor_kind():
    kinds = {"async": {"slots": 5, "busy": 5}, "thread": {"slots": 5, "busy": 0}}
    node = {"id": "n1", "hostname": "web", "state": "active", "stats": {"slots": 10, "busy": 5, "executors": kinds}}
    assert amiss("n1", [node], "async") == "busy"
    assert amiss("n1", [node], "thread") is None


def test_a_host_is_busy_when_all_its_nodes_are():
    full = {"id": "n1", "hostname": "web", "state": "active", "stats": {"slots": 1, "busy": 1}}
    idle = {"id": "n2", "hostname": "web", "state": "active", "stats": {"slots": 1, "busy": 0}}
    unready = {"id": "n3", "hostname": "web", "state": "active", "stats": {"slots": 0, "busy": 0}}
    assert amiss("web", [full]) == "busy"
    assert amiss("web", [full, idle]) is None
    assert amiss("web", [unready]) is None
    assert amiss("n1", [full, idle]) == "busy"
    assert amiss("n9", [full, idle]) == "lost"
