"""Rows 247–255 and the cases beside them: how many jobs an outage leaves, and that a schedule outlives its jobs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from taskq import commands, keys
from taskq.calendar import every, rule_text
from taskq.commands import Declared, Done, Failure
from taskq.errors import Unavailable
from taskq.node.leader.schedules import Schedules
from taskq.node.timetable import read
from taskq.node.worker.load import greeting
from taskq.schedules.relaying import drive, relay
from taskq.schedules.template import Template
from taskq.units import instant_ms
from tests.lua.room import new

HOUR = 3_600_000


class Leader:
    """Looks once a call, at the room's time, and judges as the node's loop does."""

    def __init__(self, room, namespace):
        self.room, self.c = room, keys.cluster(namespace)
        self.loop = Schedules(None, self.c, "n", None, relay=None)

    def do(self, operation, *args, **options):
        return self.room.run(operation(self.c, *args, now=self.room.now, **options))

    def put(self, rule, needs=""):
        template = Template("t", "async", 0, "", "", {}, needs=needs).pack()
        self.do(commands.put_schedule, Declared("s", rule_text(rule), rule.overlap, "default", "t", template))

    def at_room_time(self, command):
        command.args[command.script.args.index("now")] = self.room.now
        return self.room.run(command)

    def look(self):
        """The runs that were told."""
        term = self.do(commands.pulse, node="n", leads=True, ttl_ms=6_000).term
        for each in self.do(commands.due_schedules, node="n", term=term).schedules:
            assert self.at_room_time(self.loop._judged(each, term, self.room.now).command) == "ok"
        return drive(relay(self.c.namespace, "default", term=term), self.at_room_time)


@pytest.fixture
def leader(room, namespace):
    return Leader(room, namespace)


@pytest.mark.parametrize("missed, jobs", [("skip", 1), ("latest", 1), ("all", 100)])
def test_after_an_outage_the_rule_says_how_many_jobs_there_are(leader, room, missed, jobs):
    """Six hours of a schedule of each minute; with `skip` only the minute that is on time."""
    leader.put(every("1m", missed=missed))
    leader.look()
    room.now += 6 * HOUR
    runs = leader.look()
    assert len(runs) == jobs
    assert len(room.claim(limit=200)) == jobs
    room.now += 60_000
    assert len(leader.look()) == 1


@pytest.mark.parametrize("missed", ["skip", "latest"])
def test_late_by_more_than_a_moment_is_late(leader, room, missed):
    leader.put(every("1m", missed=missed))
    leader.look()
    room.now += 6 * HOUR + 30_000
    assert len(leader.look()) == (missed == "latest")


@pytest.mark.parametrize("fate", ["purged", "deleted", "lost", "failed"])
def test_whatever_becomes_of_its_jobs_the_next_time_fires(leader, room, fate):
    leader.put(every("1m", overlap="skip"))
    leader.look()
    room.now += 60_000
    (run,) = leader.look()
    if fate == "purged":
        room.do(commands.purge)
    elif fate == "deleted":
        room.client.delete(room.q.job(run.job))
    elif fate == "lost":
        room.claim()
        room.watched()
        room.do(commands.cancel, [run.job])
    else:
        (job,) = room.claim()
        room.do(commands.fail, worker="n.1", failures=[Failure(job.id, job.epoch, "fail", 0, "{}", "x")])
    room.now += 60_000
    (later,) = leader.look()
    assert later.job is not None
    assert later.nominal > run.nominal
    room.do(commands.purge)
    for job in room.claim():
        room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"")])


def test_a_firing_that_its_queue_did_not_take_has_a_run_too(leader, room):
    """Row 254: it says why there is no job."""
    leader.put(every("1m", overlap="skip"))
    leader.look()
    room.now += 60_000
    leader.look()
    room.now += 60_000
    (run,) = leader.look()
    assert (run.job, run.state) == (None, "skipped")
    assert "has not ended" in run.error
    found = leader.do(commands.schedules, name="s", runs=9).schedules[0]
    assert [each.word for each in found.runs] == ["skipped", "fired"]


def test_a_firing_that_its_queue_refuses_is_told_each_time(leader, room):
    """Row 254: it has been failing, and why. Its queue has as many classes of needs as it may."""
    for at in range(1, 257):
        room.do(commands.enqueue, [new(f"n{at}", needs=f"takes.cpu={at}")])
    leader.put(every("1m"), needs="takes.cpu=5000")
    leader.look()
    for _ in range(2):
        room.now += 60_000
        (run,) = leader.look()
        assert (run.job, run.state) == (None, "refused")
        assert "as many classes" in run.error
    found = leader.do(commands.schedules, name="s", runs=9).schedules[0]
    assert [each.word for each in found.runs] == ["refused", "refused"]


@pytest.mark.parametrize("by", ["api", "code"])
@pytest.mark.parametrize(
    "rule",
    [
        {"cron": "* * * * *"},
        {"cron": "30 * * * * *", "tz": "Asia/Kolkata"},
        {"cron": "@daily", "jitter": "1h"},
        {"cron": "@every 90s"},
        {"every": 30, "jitter": 5},
        {"every": "1h", "start": datetime(2030, 1, 1, tzinfo=UTC), "end": datetime(2031, 1, 1, tzinfo=UTC)},
        {"every": "1h", "max_runs": 1, "missed": "all", "overlap": "queue-one"},
    ],
    ids=str,
)
def test_each_kind_of_schedule_fires_however_it_was_made(leader, room, app, rule, by):
    """SCHED-19: nothing is stored that no leader ever looks at. What code declares it declares again each minute."""
    room.now, rows, runs = instant_ms("2030-06-01T23:59:00Z"), [], []
    if by == "api":
        app.schedules.put("s", app.by_name("t", queue="default").call(), **rule)
    else:
        (kind, value), *options = rule.items()
        getattr(app, kind)(value, name="s", **dict(options))(app.task(name="t")(lambda: None))
        rows = [read(told) for told in greeting(app, []).schedules]
    for _ in range(70):
        if rows:
            leader.do(commands.declare_schedules, rows)
        if runs := leader.look():
            break
        room.now += 60_000
    run = runs[-1]
    assert (run.schedule, run.state) == ("s", "fired")
    room.now += HOUR
    assert [job.id for job in room.claim()] == [each.job for each in runs]


def test_what_could_not_be_told_is_told_by_the_next_relay(leader, room):
    leader.put(every("1m"))
    leader.look()
    room.now += 60_000

    def unheard(command):
        answer = leader.at_room_time(command)
        if command.script.name == "receive":
            raise Unavailable
        return answer

    term = leader.do(commands.pulse, node="n", leads=True, ttl_ms=6_000).term
    (each,) = leader.do(commands.due_schedules, node="n", term=term).schedules
    now = room.now
    proof = {"node": "n", "term": term, "name": "s", "revision": each.revision}
    leader.do(commands.fire, **proof, after=now, next=now + 60_000, look=now + 60_000, times=[now])
    with pytest.raises(Unavailable):
        drive(relay(leader.c.namespace, "default", term=term), unheard)
    (run,) = leader.look()
    assert run.state == "fired"
    assert [job.id for job in room.claim()] == [run.job]


@pytest.mark.parametrize("due_at", ["-1", "0", "+1", "1970", "9999"])
def test_a_job_whose_time_has_gone_by_is_picked_up_at_once(room, due_at):
    """SCHED-23: the past at once, the far future kept."""
    times = {
        "-1": room.now - 1000,
        "0": room.now,
        "+1": room.now + 1,
        "1970": 1,
        "9999": instant_ms(datetime(9999, 1, 1, tzinfo=UTC)),
    }
    at = times[due_at]
    (word,) = room.do(commands.enqueue, [new("a", due=str(at))])
    assert word == ("scheduled" if at > room.now else "available")
    if due_at == "+1":
        room.now += 1
        room.do(commands.promote)
    assert [job.id for job in room.claim()] == ([] if due_at == "9999" else ["default:a"])
