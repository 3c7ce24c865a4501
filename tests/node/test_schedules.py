"""The leader's loop fires what is due, relays it at once, and does nothing while it isn't sure to lead."""

from __future__ import annotations

import pytest

from taskq import commands, keys
from taskq.calendar import every, rule_text
from taskq.calendar.times import fires_at, next_after
from taskq.commands import Declared, DueSchedule
from taskq.node.channel import Hello
from taskq.node.leader.lead import Leader
from taskq.node.leader.relay import Relay
from taskq.node.leader.schedules import IDLE_S, Schedules
from taskq.node.queues import Queues
from taskq.node.timetable import Timetable, parts
from taskq.schedules import Run
from taskq.schedules.template import Template
from tests.waiting import await_until

TEMPLATE = Template("t", "async", 0, "", "", {"payload": b""}).pack()


class Stage:
    """A node that leads."""

    def __init__(self, ground, server=None):
        self.ground, self.c = ground, keys.cluster(ground.namespace)
        self.queues = Queues(server or ground.server, ground.namespace)
        self.leader = Leader(ground.queues(), self.c, "n")
        self.told: list[Run] = []
        self.relay = Relay(self.queues, ground.namespace, self.leader, tell=self.told.append)
        self.schedules = Schedules(ground.queues(), self.c, "n", self.leader, relay=self.relay.begin)

    async def do(self, operation, *args, **options):
        return await self.ground.do(operation(self.c, *args, **options))

    async def put(self, name="s", rule=None, **options):
        text = options.pop("text", None) or rule_text(rule or every("1s"))
        await self.do(commands.put_schedule, Declared(name, text, "allow", "default", "t", TEMPLATE))

    async def turn(self):
        delay_s = await self.schedules.step()
        await self.relay.settle()
        return delay_s

    async def states(self):
        return (await self.ground.do(commands.counts(self.ground.q))).available


@pytest.fixture
async def stage(ground):
    return Stage(ground)


async def test_while_it_does_not_lead_it_asks_nothing(stage, nobody, ground):
    stage.schedules._queues = Queues(nobody, ground.namespace)
    assert await stage.schedules.step() == IDLE_S


async def test_a_due_time_becomes_a_job_and_observers_hear_of_it(stage):
    await stage.leader.step()
    await stage.put()
    assert 0 <= await stage.turn() <= 1

    async def ran():
        await stage.turn()
        return await stage.states() >= 2

    await await_until(ran)
    found = (await stage.do(commands.schedules, name="s", runs=9)).schedules[0]
    assert {run.word for run in found.runs} == {"fired"}
    assert [run.job for run in stage.told] == [run.rest for run in reversed(found.runs)]
    assert all(run.term == stage.leader.term for run in stage.told)


async def test_it_sleeps_until_the_next_time_and_no_longer_than_a_second(stage):
    await stage.leader.step()
    assert 0.9 < await stage.turn() <= 1
    await stage.put(rule=every("1h"))
    assert 0 <= await stage.turn() <= 1


async def test_a_rule_that_it_cannot_read_stops_no_other(stage, lines):
    await stage.leader.step()
    await stage.put("odd", text='{"cron":"of another version"}')
    await stage.put()

    async def ran():
        await stage.turn()
        return await stage.states() >= 1

    await await_until(ran)
    assert [line["schedule"] for line in lines if "can't read" in line["event"]] == ["odd"]


async def test_what_another_leader_left_behind_is_relayed(stage):
    await stage.put()
    await stage.do(commands.run_schedule, "s", token="a")
    await stage.leader.step()
    await stage.turn()
    assert await stage.states() == 1
    assert stage.told[0].manual


async def test_a_queue_that_stands_there_for_nothing_is_asked_for_once(stage, raw):
    """The messages are gone, and its place among the outboxes stayed: a key that was evicted, or deleted by hand."""
    await stage.put()
    await stage.do(commands.run_schedule, "s", token="a")
    raw.delete(stage.c.outbox("default"))
    await stage.leader.step()
    await stage.turn()
    found = await stage.do(commands.due_schedules, node="n", term=stage.leader.term)
    assert not found.queues


async def test_a_message_that_cannot_be_read_is_refused_and_the_others_go_on(stage, raw):
    await stage.put(rule=every("1h"))
    await stage.do(commands.run_schedule, "s", token="a")
    box = stage.c.outbox("default")
    good = raw.xrange(box)[0][1]
    for broken in ({b"template": b"junk"}, {b"template": b"\x91\x02"}, {b"nominal": b"x"}, {b"schedule": b"\xff"}):
        raw.xadd(box, {**good, b"nominal": b"5", **broken})
    raw.xadd(box, {"what": "ever"})
    await stage.do(commands.run_schedule, "s", token="b")
    await stage.leader.step()
    await stage.turn()
    assert await stage.states() == 2
    assert not raw.exists(box)


async def test_a_queue_that_cannot_be_reached_is_tried_again_later(stage, ground, nobody, raw, lines):
    await stage.put()
    await stage.do(commands.run_schedule, "s", token="a")
    await stage.leader.step()
    real, stage.queues._server = stage.queues._server, nobody
    await stage.turn()
    assert await stage.states() == 0
    assert "firings wait for their queue" in [line["event"] for line in lines]
    stage.queues._server = real
    stage.relay.begin("default")
    await stage.relay.settle()
    assert await stage.states() == 1
    assert "firings reach their queue again" in [line["event"] for line in lines]


async def test_a_relay_ends_with_its_term(stage, raw):
    await stage.put()
    await stage.do(commands.run_schedule, "s", token="a")
    await stage.leader.step()
    raw.hset(stage.ground.q.fixed("meta"), "term", stage.leader.term + 1)  # a later leader was here
    await stage.turn()
    assert await stage.states() == 0
    await stage.leader.resign()
    stage.relay.begin("default")
    await stage.relay.settle()
    assert await stage.states() == 0


# --- declaring


def hello(*names, rule=None):
    rows = [[name, rule_text(rule or every("1s")), "allow", "default", "t", "kQ=="] for name in names]
    return Hello({}, ["default"], schedules=rows)


async def test_a_node_declares_what_its_hello_says_once_a_minute(stage, raw):
    latest = hello("a", "b")
    timetable = Timetable(stage.queues, stage.c, hello=lambda: latest)
    await timetable.step()
    assert (await stage.do(commands.schedules)).total == 2
    for key in raw.scan_iter(stage.c.prefix + "schedule*"):
        raw.delete(key)
    await timetable.step()
    assert (await stage.do(commands.schedules)).total == 0  # it was said just now
    timetable._at -= 61
    await timetable.step()
    assert (await stage.do(commands.schedules)).total == 2
    raw.flushdb()
    timetable.soon()  # the registry saw that its record was lost
    await timetable.step()
    assert (await stage.do(commands.schedules)).total == 2


async def test_a_worker_started_again_with_the_same_code_says_nothing_new(stage, raw):
    old, new = hello("a"), hello("a", rule=every("2s"))
    latest = old
    first = Timetable(stage.queues, stage.c, hello=lambda: latest)
    await first.step()
    declared = raw.time()
    await await_until(lambda: raw.time() > (declared[0], declared[1] + 1000))  # of one millisecond none is the newer
    await Timetable(stage.queues, stage.c, hello=lambda: new).step()
    latest = hello("a")
    first._at = float("-inf")
    await first.step()
    (found,) = (await stage.do(commands.schedules)).schedules
    assert found.fields["rule"].decode() == rule_text(every("2s"))


def test_what_is_much_is_declared_in_parts():
    one = Declared("s", "{}", "allow", "q", "t", b"x" * 60_000)
    assert [len(part) for part in parts([one] * 10)] == [4, 4, 2]
    assert [len(part) for part in parts([one._replace(template=b"")] * 600)] == [250, 250, 100]


def test_a_time_that_its_jitter_puts_off_fires_though_it_was_looked_at_before(ground):
    """As after a resume: between its time by the calendar and the one by its jitter."""
    rule = every("1h", jitter="30m")
    schedules = Schedules(ground.queues(), keys.cluster(ground.namespace), "n", None, relay=None)
    nominal_ms = next_after(rule, 1_800_000_000_000)
    at_ms = fires_at(rule, "s", nominal_ms)
    assert nominal_ms < at_ms

    def judged(after_ms, now_ms):
        """Up to when all is settled then, and when it is looked at again; None: it fires now."""
        each = DueSchedule("s", rule_text(rule), "default", after_ms, 0, 1)
        firing = schedules._judged(each, 7, now_ms)
        args = dict(zip(firing.command.script.args, firing.command.args, strict=False))
        return None if firing.fires else (int(args["after"]), firing.look_ms)

    after_ms, look_ms = judged(nominal_ms - 1, at_ms - 1)
    assert (after_ms, look_ms) == (nominal_ms - 1, at_ms)
    assert judged(after_ms, look_ms) is None
