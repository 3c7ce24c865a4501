"""Slots are moved to other shards, key by key, while jobs of their queues are added, run and end."""

from __future__ import annotations

import logging
import random
import threading
import time

import pytest

from taskq.connection.cluster import slot_of
from tests.cluster.conftest import QUEUES

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
