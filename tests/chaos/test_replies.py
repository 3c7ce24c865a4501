"""Replies that don't arrive whole: whoever waits for one sends again, and is answered as the first time."""

from __future__ import annotations

import dataclasses
import itertools
import os
import signal
import threading
import time
from collections import Counter

import pytest

from taskq import commands, connection, keys, scripts
from taskq.calendar import every, rule_text
from taskq.commands import Declared, Reported
from taskq.schedules.template import Template
from tests.chaos.conserve import Snapshot
from tests.waiting import wait_until

# Only `taskq fsck` calls these, and whoever calls that may call it again.
FSCK = {
    "members",
    "mend_gates",
    "mend_jobs",
    "mend_keys",
    "mend_lanes",
    "scan",
    "survey_gates",
    "survey_jobs",
    "survey_keys",
    "survey_lanes",
}
TWICE = 2


@pytest.fixture
def url(proxy):
    """Nodes and producers alike."""
    return proxy.url


class Scene:
    """What a queue's people do, each act so that it calls some script: at once, or within seconds."""

    def __init__(self, fleet, shop, look, raw, trial):
        self.fleet, self.shop, self.look, self.raw, self.trial = fleet, shop, look, raw, trial
        self.queue = shop.app.queue("default")
        self.c = keys.cluster(shop.app.settings.namespace)

    def nothing(self):
        """The loops do it by themselves."""

    def start_a_node(self):
        self.fleet.begin("-w", "1", "--grace", "0", TASKQ_LEASE="4s")

    def end_a_node(self):
        node = self.fleet.nodes[-1].until_ready()
        # More than the other node's two workers take at a time.
        jobs = self.shop.app.enqueue_many([self.shop.nap.call(1) for _ in range(300)])
        wait_until(lambda: {node.workers()[0]} & {each.pid for each in self.look.ledger.starts()})
        self.trial.struck.update(node.workers())  # it gives back what it runs
        node.terminate()
        node.wait()
        self.look.until(jobs, "completed", 20)

    def kill_a_worker(self):
        self.run_long()
        pid = self.look.ledger.starts()[-1].pid
        node = next(each for each in self.fleet.living() if pid in each.workers())
        before = node.text().count("worker ready")
        self.trial.struck.add(pid)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: node.text().count("worker ready") > before, what="its replacement")

    def enqueue(self):
        self.shop.nap.enqueue(0).result(timeout=20)

    def enqueue_by_name(self):
        self.shop.app.by_name("shop.nap").enqueue(0).result(timeout=20)

    def run_long(self):
        job = self.shop.nap.enqueue(3)
        wait_until(lambda: self.look.ledger.starts(job.id))

    def fail(self):
        self.shop.brittle.enqueue().result(timeout=20)

    def snooze(self):
        self.shop.patient.enqueue(time.monotonic() + 1).result(timeout=20)

    def look_up(self):
        self.shop.nap.enqueue(0).refresh()

    def wake(self):
        self.look.run(commands.wake(self.look.q, ["async"]))

    def cancel(self):
        job = self.shop.nap.using(delay=3600).enqueue(0)
        assert job.cancel() == "removed"

    def retry(self):
        job = self.shop.nap.using(delay=3600).enqueue(0)
        job.cancel()
        job.retry().result(timeout=20)

    def purge(self):
        jobs = self.shop.app.enqueue_many([self.shop.nap.using(delay=3600).call(0) for _ in range(300)])
        self.queue.purge(states=["scheduled"])
        self.look.until(jobs, "cancelled")

    def clear(self):
        gone = {id.decode() for id in self.raw.zrange(self.look.q.fixed("cancelled"), 0, -1)}
        self.look.accepted.difference_update(gone)
        self.queue.clear(states=["cancelled"])
        assert not self.raw.zcard(self.look.q.fixed("cancelled"))

    def pause(self):
        self.queue.pause()
        self.queue.resume()

    def come_due(self):
        """Where no worker could claim it, and so none looks: the node's part."""
        job = self.shop.nap.using(delay=0.1, expires=2, labels={"of": "nobody"}).enqueue(0)
        self.look.until([job], "available", 20)
        self.look.until([job], "cancelled", 20)

    def operate(self):
        self.queue.limit("crm", concurrency=5)
        assert [each["name"] for each in self.queue.limits()] == ["crm"]
        assert self.queue.weights(acme=3) == {"acme": 3}
        job = self.shop.nap.using(delay=3600).enqueue(0)
        job.reprioritise(5)
        assert job.why().gate == "due"
        job.cancel()

    def hold_nothing(self):
        """What executors and the leader's slow duties ask; of jobs that nobody has, so twice is nothing too."""
        q, run = self.look.q, self.look.run
        assert run(commands.start(q, worker="x.1", lease_ms=8000, offers=[("default:x", 7)])) == ["gone"]
        assert run(commands.report(q, worker="x.1", reports=[Reported("default:x", 7, b"")])) == ["gone"]
        run(commands.leases(q))
        run(commands.classes(q))
        run(commands.sweep_classes(q))
        run(commands.untarget(q, "async;target=nowhere", why="lost", term=1))
        run(commands.withdraw(q, "nobody", why="gone", term=1))

    def admit(self):
        slot = self.queue.reserve("k", max_concurrency=10**6)
        assert slot
        self.queue.bind(slot.token, self.shop.nap.call(0)).result(timeout=20)
        self.queue.release_reservation(self.queue.reserve("other", max_concurrency=10**6).token)
        assert self.queue.finalize("k") is False
        assert self.queue.reservations()["total"] == self.queue.cleanup_reservations(older_than=0) == 0

    def read(self):
        self.queue.counts()
        self.queue.jobs("completed")
        self.look.run(commands.entered(self.look.q, "completed"))
        assert self.shop.app.inspector.queues()[0]["queue"] == "default"
        assert self.shop.app.inspector.nodes()
        assert self.shop.app.inspector.leader()["node"]

    def lock(self):
        app = self.shop.app
        with app.lock("l") as lock:
            lock.extend()
            (held,) = app.inspector.locks()["data"]
            assert held["fence"] == lock.fence
        assert app.inspector.locks()["data"] == []

    def schedule(self):
        """By hand. Run once, it fires once."""
        schedules = self.shop.app.schedules
        schedules.put("yearly", self.shop.quick, cron="@yearly")
        schedules.pause("yearly")
        assert schedules.get("yearly").paused
        schedules.resume("yearly")
        assert not schedules.get("yearly").paused
        run = schedules.run("yearly")
        assert self.shop.app.job(run.job).join(timeout=20) == "completed"
        assert [each.job for each in schedules.get("yearly").runs] == [run.job]
        schedules.remove("yearly")
        assert schedules.count() == 0

    def fire(self):
        schedules = self.shop.app.schedules
        schedules.put("secondly", self.shop.quick, every=1, missed="all")
        wait_until(lambda: len(schedules.get("secondly").runs) > 3)
        nominals = [run.nominal for run in schedules.get("secondly").runs]
        assert nominals == sorted(set(nominals), reverse=True)
        assert {(a - b).total_seconds() for a, b in itertools.pairwise(nominals)} == {1}
        schedules.remove("secondly")

    def declare_schedules(self):
        template = Template(self.shop.quick.name, "async", 0, "", "", {"payload": b""}).pack()
        one = Declared("of-code", rule_text(every("1d")), "allow", "default", self.shop.quick.name, template)
        self.look.run(commands.declare_schedules(self.c, [one]))
        assert self.shop.app.schedules.count() == 1

    def ask_for_demand(self):
        self.look.run(commands.demand(self.look.q))

    def order(self):
        """The leader is drained, so that it resigns; then it is let go on."""
        app = self.shop.app
        leads = wait_until(lambda: app.inspector.leader()["node"])
        app.nodes.drain(leads)
        wait_until(lambda: app.inspector.leader()["node"] not in {None, leads})
        app.nodes.resume(leads)
        wait_until(lambda: app.nodes.get(leads)["state"] == "active")


# In this order: `clear` takes what was cancelled, a node ends that was started.
ACTS = {
    Scene.start_a_node: ("beat", "declare", "register_queue", "register_node"),
    Scene.nothing: ("reap", "prune", "pulse", "mark_dead", "forget_nodes"),
    Scene.enqueue: ("enqueue", "claim", "complete", "wait"),
    Scene.enqueue_by_name: ("task_info",),
    Scene.fail: ("fail",),
    Scene.snooze: ("snooze",),
    Scene.come_due: ("promote", "expire"),
    Scene.run_long: ("renew",),
    Scene.look_up: ("fetch",),
    Scene.wake: ("wake",),
    Scene.cancel: ("cancel",),
    Scene.retry: ("retry",),
    Scene.purge: ("purge",),
    Scene.clear: ("clear",),
    Scene.pause: ("pause", "resume"),
    Scene.read: ("counts", "peek", "entered", "queues", "nodes", "leader"),
    Scene.operate: ("limit", "limits", "weigh", "reprioritise", "why"),
    Scene.hold_nothing: ("start", "report", "leases", "classes", "sweep_classes", "untarget", "withdraw"),
    Scene.admit: ("reserve", "bind", "release_reservation", "finalize", "reservations", "sweep_reservations"),
    Scene.lock: ("lock_acquire", "lock_extend", "locks", "lock_release"),
    Scene.schedule: (
        *(f"{verb}_schedule" for verb in ("put", "pause", "resume", "run", "remove")),
        *("schedules", "outbox", "receive", "relayed"),
    ),
    Scene.fire: ("due_schedules", "fire", "outbox", "receive", "relayed"),
    Scene.declare_schedules: ("declare_schedules",),
    Scene.ask_for_demand: ("demand",),
    Scene.order: ("order", "resign"),
    Scene.kill_a_worker: ("bury",),
    Scene.end_a_node: ("release", "depart"),
}


def test_every_script_has_its_act():
    named = {name for names in ACTS.values() for name in names}
    assert named == set(scripts.names()) - FSCK


async def test_a_pipeline_goes_on_where_it_broke(settings, proxy, look):
    """What was answered isn't asked again: else a connection that breaks often enough answers nothing at all."""
    settings = dataclasses.replace(settings, url=proxy.url)
    sync, loop = connection.connect(settings), connection.connect_async(settings)
    counts, heard = [commands.counts(look.q)] * 10, []

    def fate(what):
        heard.append(what)
        return "lost" if what == "counts" and heard.count("counts") == 6 else "pass"

    await connection.run_async(loop, counts[0])
    proxy.fate = fate
    assert len(connection.run_many(sync, counts)) == 10
    assert heard.count("counts") == 11
    heard.clear()
    assert len(await connection.run_many_async(loop, counts)) == 10
    assert heard.count("counts") == 11
    sync.close()
    await loop.aclose()


@pytest.mark.timeout(180)
@pytest.mark.fault("The reply of each script is cut in the middle")
def test_the_reply_of_each_script_is_cut_in_turn(fleet, shop, raw, proxy, trial):
    """The script has run, and half of its answer came: twice in a row for each, wherever it is called."""
    fleet.start("-w", "2", TASKQ_LEASE="4s")
    scene, left = Scene(fleet, shop, trial.look, raw, trial), Counter()
    lock = threading.Lock()

    def fate(what):
        with lock:
            if left[what] <= 0:
                return "pass"
            left[what] -= 1
            return "half"

    proxy.fate = fate
    for act, names in ACTS.items():
        for name in names:
            left[name] = TWICE
        act(scene)
        wait_until(lambda: not +left, 15, what=f"two cut replies of each of {names}")
        trial.look.conserve()
    trial.over()


@pytest.mark.fault("The reply of every fifth call is lost")
def test_the_reply_of_every_fifth_call_is_lost(fleet, shop, raw, proxy, trial):
    """DUP-08: as many records as ids, one start an attempt."""
    look = trial.look
    fleet.start("-w", "2")
    calls, lock = 0, threading.Lock()

    def fate(what):
        nonlocal calls
        if what not in scripts.names():
            return "pass"
        with lock:
            calls += 1
            return "pass" if calls % 5 else "lost"

    proxy.fate = fate
    jobs = [task.enqueue(*args) for _ in range(50) for task, args in ((shop.nap, (0.05,)), (shop.brittle, ()))]
    jobs += shop.app.enqueue_many([shop.work.call(0.05) for _ in range(100)])
    late = [shop.nap.using(delay=3600).enqueue(0) for _ in range(20)]
    for job in late:
        job.cancel()
        job.retry()
    look.until([*jobs, *late], "completed", 30)
    proxy.fate = None
    trial.over()
    assert calls > 200
    assert len(Snapshot(raw, look.q).jobs) == len(look.accepted)
    began = Counter((each.job, each.attempt) for what in ("start", "failed") for each in look.ledger.entries(what))
    assert set(began.values()) == {1}
