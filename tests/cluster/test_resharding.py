"""Slots are moved to other shards, key by key, while jobs of their queues are added, run and end."""

from __future__ import annotations

import logging
import random
import threading
import time

import pytest

from taskq import scripts
from taskq.connection.cluster import slot_of
from tests.cluster.conftest import QUEUES
from tests.waiting import wait_until

SERVED = ",".join(QUEUES)
log = logging.getLogger(__name__)


class Producer:
    """Adds jobs to all queues until told to stop: short ones, late ones, some that run through a whole move."""

    def __init__(self, shop):
        self.shop = shop
        self.jobs = []
        self.slowest_s = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _run(self):
        tasks = self.shop.shop
        while not self._over.is_set():
            queue = random.choice(QUEUES)
            began = time.monotonic()
            if random.random() < 0.3:
                calls = [tasks.nap.using(queue=random.choice(QUEUES)).call(random.uniform(0, 0.5)) for _ in range(20)]
                self.jobs += self.shop.enqueue_many(calls)
            else:
                delay = random.choice([0, 0, 0.3])
                self.jobs.append(self.shop.enqueue(tasks.nap, random.choice([0, 0.05, 2]), queue=queue, delay=delay))
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
            self._over.wait(0.01)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("moves", [12, pytest.param(150, marks=pytest.mark.long)])
def test_slots_move_under_load(shop, shards, moves):
    """Nothing is lost, nothing runs twice, no attempt is counted for it, and callers notice a pause at most."""
    node = shop.fleet.start("-q", SERVED, "-w", "2", "-c", "30")
    before = shop.fleet.pids()
    took = []
    with Producer(shop) as producer:
        for _ in range(moves):
            q = shop.q(random.choice(QUEUES))
            to = random.choice([each for each in shards.all if each is not shards.of(q.prefix)])
            began = time.monotonic()
            with shards.moving(slot_of(q.prefix), to) as steps:
                for _ in steps:
                    time.sleep(random.choice([0, 0.01, 0.05]))  # an operator's tool takes its time between keys
            took.append(time.monotonic() - began)
            shop.conserve([q.name])
    shop.until(producer.jobs, timeout=30)
    log.info(
        "%d jobs through %d moves of %.2f s at most; slowest call %.2f s",
        len(producer.jobs), moves, max(took), producer.slowest_s,
    )  # fmt: skip
    assert len(producer.jobs) > 50
    shop.ran_once(producer.jobs)
    records = shop.app.client.jobs([job.id for job in producer.jobs])
    assert {record.attempt for record in records} == {1}
    assert shop.fleet.pids() == before
    for word in ("refused", "NOSCRIPT", "MOVED", "lost"):
        assert word not in node.text(), node.text()


@pytest.mark.timeout(120)
def test_a_move_that_takes_longer_than_a_lease(shop, shards, ledger):
    """The queue stands still, like any queue whose server is away: what runs there goes on, and isn't run again."""
    shop.fleet.start("-q", SERVED, "-w", "2", TASKQ_LEASE="4s")
    q = shop.q("q0")
    jobs = [shop.enqueue(shop.shop.nap, seconds, queue="q0") for seconds in (1, 3, 7)]
    shop.until(jobs, "running")
    with shards.moving(slot_of(q.prefix), shards.other_than(shards.of(q.prefix))) as steps:
        next(steps)
        until = time.monotonic() + 5
        others = []
        while time.monotonic() < until:  # other queues don't notice
            others.append(shop.enqueue(shop.shop.nap, 0, queue=random.choice(QUEUES[1:])))
            assert others[-1].join(timeout=2) == "completed"
    shop.until(jobs, timeout=15)
    shop.ran_once([*jobs, *others])
    assert {job.refresh().attempt for job in jobs} == {1}


#: Every script but those of the registry (`{_}`, whose slot stays), of fsck, and of a worker that dies or parts.
VERBS = (
    "cancel", "claim", "clear", "complete", "counts", "enqueue", "expire", "fail", "fetch", "pause", "peek", "promote",
    "prune", "purge", "reap", "release", "renew", "resume", "retry", "snooze", "wait",
)  # fmt: skip


@pytest.mark.timeout(400)
def test_a_fresh_shard_takes_over(own_shop, own):
    """CONN-07: a shard that joined later has never seen a script; each that is called there runs there."""
    shop, tasks = own_shop, own_shop.shop
    node = shop.fleet.start("-q", SERVED, "-w", "2", "-c", "10", "--grace", "1")
    through = shop.enqueue_many(tasks.stay.using(queue=queue).call("moved") for queue in QUEUES)
    shop.until(through, "running", 60)
    fresh = own.add()
    moved = ["q0", "q1", "q2"]
    for queue in moved:
        own.move(slot_of(shop.q(queue).prefix), fresh)
        assert own.of(shop.q(queue).prefix) is fresh
    shop.conserve(moved)
    shop.ledger.tell("moved")
    jobs = [shop.enqueue(tasks.quick, queue=queue, delay=0.3) for queue in moved]
    jobs += shop.enqueue_many(tasks.work.using(queue=queue).call(0.05) for queue in moved)
    slow = [shop.enqueue(tasks.too_slow, queue=queue) for queue in moved]
    assert [job.join(timeout=60) for job in jobs] == ["completed"] * len(jobs)
    long = [shop.enqueue(tasks.nap, 600, queue=queue) for queue in moved]
    shop.until(long, "running", 60)
    assert {job.cancel() for job in long} == {"requested"}
    shop.until(long, "cancelled", 60)
    shop.until(slow, "failed", 60)
    shop.until(through, timeout=60)
    shop.ran_once([*through, *jobs[len(moved) :]])
    for queue, job in zip(moved, slow, strict=True):
        line = shop.app.queue(queue)
        line.pause()
        job.retry()
        assert [each["id"] for each in line.jobs("available")["data"]] == [job.id]
        # No claim touches what is due or expires in a paused queue: the node's own loops do.
        due, over = (shop.enqueue(tasks.quick, queue=queue, **when) for when in ({"delay": 0.1}, {"expires": 0.1}))
        shop.until([due], "available", 60)
        shop.until([over], "cancelled", 60)
        assert line.purge() == 2
        line.resume()
        nobodys = shop.enqueue(shop.app.by_name("nobody.knows"), queue=queue)
        shop.until([nobodys], "scheduled", 60)  # it was handed back
        assert line.clear() >= 1
    shop.accepted.clear()  # what was cleared is gone
    left = [shop.enqueue(tasks.nap, 600, queue=queue) for queue in moved]
    shop.until(left, "running", 60)
    wait_until(lambda: fresh.client.script_exists(scripts.load("prune").sha) == [True], timeout=60)  # now and then
    node.terminate()
    assert node.wait(60) == 0
    assert set(shop.states(left).values()) == {"available"}, "not released"
    assert node.text().count("Redis is away") == 0
    known = fresh.client.script_exists(*(scripts.load(name).sha for name in VERBS))
    assert [name for name, there in zip(VERBS, known, strict=True) if not there] == []
