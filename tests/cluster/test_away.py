"""A shard is away: its queues wait, the others run; when it is back everything goes on, and nothing is run twice."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from taskq import TaskQ, Unavailable
from tests.cluster.conftest import QUEUES
from tests.waiting import wait_until

SERVED = ",".join(QUEUES)
pytestmark = pytest.mark.timeout(300)
log = logging.getLogger(__name__)


def parted(shop, shards):
    """A shard that serves some of the queues and not the registry, its queues, and the others."""
    victim = next(
        shard
        for shard in shards.all
        if shard is not shards.of(shop.q("_").prefix)
        and any(shards.of(shop.q(name).prefix) is shard for name in QUEUES)
    )
    hit = [queue for queue in QUEUES if shards.of(shop.q(queue).prefix) is victim]
    return victim, hit, [queue for queue in QUEUES if queue not in hit]


class Others:
    """Jobs of the other queues, one after the other: how soon each began, while the shard was away."""

    def __init__(self, shop, queues):
        self.shop, self.queues, self.jobs, self.began = shop, queues, [], []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.failure = None

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _run(self):
        try:
            while not self._over.is_set():
                for queue in self.queues:
                    self.began.append(time.monotonic())
                    self.jobs.append(self.shop.enqueue(self.shop.shop.nap, 0.01, queue=queue))
                    self.jobs[-1].join(timeout=5)
        except Exception as error:  # noqa: BLE001 (the test looks at it)
            self.failure = error

    def late_s(self):
        """From the call of enqueue to the first line of the job's code, for each."""
        starts = {each.job: each.at for each in self.shop.ledger.starts()}
        return [starts[job.id] - began for job, began in zip(self.jobs, self.began, strict=True)]


def swallow(victim, away_s):
    victim.stop()
    time.sleep(away_s)
    victim.go_on()


def crash(victim, away_s):
    victim.server.kill()
    time.sleep(away_s)
    victim.start()


def move(victim, away_s):
    victim.server.kill()
    time.sleep(away_s)
    victim.start_elsewhere()


@pytest.mark.parametrize(
    "fault, away_s",
    [
        (swallow, 6),
        (crash, 6),
        (move, 6),
        *(pytest.param(each, 20, marks=pytest.mark.long) for each in (swallow, crash, move)),
    ],
)
def test_a_shard_is_away(own_shop, own, fault, away_s):
    """It swallows everything, or dies and comes back with its append-only file, there or at another address."""
    shop = own_shop
    victim, hit, rest = parted(shop, own)
    node = shop.fleet.start("-q", SERVED, "-w", "2", "-c", "10", TASKQ_LEASE="4s")
    before = shop.fleet.pids()
    warm = [shop.enqueue(shop.shop.nap, 0, queue=queue) for queue in QUEUES]
    through = shop.enqueue_many(
        shop.shop.nap.using(queue=queue).call(seconds) for queue in QUEUES for seconds in (away_s / 2, away_s + 3)
    )
    shop.until(warm)
    shop.until(through, "running")
    due = [shop.enqueue(shop.shop.nap, 0, queue=queue, delay=away_s / 2) for queue in hit]
    with Others(shop, rest) as others:
        fault(victim, away_s)
        back = time.monotonic()
    assert others.failure is None, others.failure
    shop.until(due, timeout=15)
    fresh = [shop.enqueue(shop.shop.nap, 0, queue=queue) for queue in hit]
    shop.until(fresh, timeout=10)
    went_on_s = time.monotonic() - back
    shop.until([*through, *others.jobs], timeout=20)
    log.info(
        "%s for %d s: %d jobs of the others, %.2f s late at most; its own went on after %.1f s",
        fault.__name__, away_s, len(others.jobs), max(others.late_s()), went_on_s,
    )  # fmt: skip
    assert len(others.jobs) > away_s
    assert max(others.late_s()) < 2.5
    every = [*warm, *through, *due, *fresh, *others.jobs]
    shop.ran_once(every)
    assert {record.attempt for record in shop.app.client.jobs([job.id for job in every])} == {1}
    assert shop.fleet.pids() == before, "a process was restarted"
    assert node.text().count("Redis is away") <= 3 * len(hit) + 3, "an outage fills the log"


@pytest.mark.parametrize("kind", ["killed", pytest.param("stopped", marks=pytest.mark.long)])
def test_a_shard_fails_over_to_its_replica(own_shop, own, kind):
    """As with sentinels: jobs and calls go on within 5 s of the promotion; what was replicated runs once."""
    shop = own_shop
    victim, hit, _ = parted(shop, own)
    replica = own.add_replica(victim)
    shop.fleet.start("-q", SERVED, "-w", "2", "-c", "10")
    through = shop.enqueue_many(shop.shop.nap.using(queue=queue).call(7) for queue in QUEUES)
    shop.until(through, "running")
    victim.client.execute_command("WAIT", 1, 5000)
    struck = time.monotonic()
    if kind == "killed":
        victim.server.kill()
    else:
        victim.stop()
    wait_until(lambda: replica.client.execute_command("ROLE")[0] == b"master", 30, what="a promotion")
    promoted = time.monotonic()
    fresh = []
    while not fresh:
        try:
            fresh.append(shop.enqueue(shop.shop.nap, 0, queue=hit[0]))
        except Unavailable:
            assert time.monotonic() - promoted < 5
    called_s = time.monotonic() - promoted
    assert fresh[0].join(timeout=5) == "completed"
    began_s = shop.ledger.starts(fresh[0].id)[0].at - promoted
    log.info(
        "%s: promoted after %.1f s; a call %.1f s later, its job %.1f s", kind, promoted - struck, called_s, began_s
    )
    assert began_s < 5
    shop.until(through, timeout=30)
    shop.ran_once([*through, *fresh])


def test_a_caller_of_the_shard_that_is_away(own_shop, own):
    """Unavailable at its deadline; calls to others don't wait for it, and a batch says what went in."""
    shop = own_shop
    victim, hit, rest = parted(shop, own)
    for queue in QUEUES:
        shop.enqueue(shop.shop.quick, queue=queue)
    hasty = TaskQ(own.url, namespace=shop.namespace, deadline="1s")
    tasks = {queue: hasty.by_name("shop.quick", queue=queue) for queue in QUEUES}
    for task in tasks.values():
        task.enqueue()
    victim.stop()
    try:
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises(Unavailable):
                tasks[hit[0]].enqueue()
            assert 0.7 < time.monotonic() - began < 2
            for queue in rest:
                began = time.monotonic()
                tasks[queue].enqueue()
                assert time.monotonic() - began < 0.7
    finally:
        victim.go_on()
    for queue in QUEUES:
        assert tasks[queue].enqueue().created
    hasty.close()


def test_a_job_that_needs_a_certain_worker_does_not_wait_for_the_registry(own_shop, own):
    """Whether one could ever run it can't be known meanwhile: that is found out once, not at each enqueue."""
    shop = own_shop
    victim = own.of(shop.q("_").prefix)
    queue = next(queue for queue in QUEUES if own.of(shop.q(queue).prefix) is not victim)
    app = TaskQ(own.url, namespace=shop.namespace, deadline="1s")

    @app.task(name="shop.quick", queue=queue)
    async def task(n: int) -> None: ...

    task.enqueue(-1)
    choosy = task.using(resources={"gpu": 1})
    victim.stop()
    try:
        choosy.enqueue(-1)
        began = time.monotonic()
        for n in range(10):
            choosy.enqueue(n)
        assert time.monotonic() - began < 5, "each waited for the registry"
        with pytest.raises(Unavailable):
            choosy.using(strict=True).enqueue(-1)
    finally:
        victim.go_on()
    assert app.queue(queue).counts().available == 12
    app.close()


@pytest.mark.parametrize("away_s", [6, pytest.param(65, marks=pytest.mark.long)])
def test_the_shard_of_the_registry_is_away(own_shop, own, away_s):
    """Nobody beats, nobody leads: no job is taken from its holder, and after it everybody is known as before."""
    shop = own_shop
    victim = own.of(shop.q("_").prefix)
    rest = [queue for queue in QUEUES if own.of(shop.q(queue).prefix) is not victim]
    for _ in range(2):
        shop.fleet.start("-q", ",".join(rest), "-c", "10", TASKQ_LEASE="4s")
    before = shop.fleet.pids()
    wait_until(lambda: shop.app.nodes.list()["total"] == 2)
    known = {node["id"]: node["created_at"] for node in shop.app.nodes.list()["data"]}
    warm = [shop.enqueue(shop.shop.nap, 0, queue=queue) for queue in rest]
    through = shop.enqueue_many(shop.shop.nap.using(queue=queue).call(away_s + 3) for queue in rest)
    shop.until(through, "running")
    with Others(shop, rest) as others:
        swallow(victim, away_s)
    assert others.failure is None, others.failure
    shop.until([*through, *others.jobs], timeout=20)
    every = [*warm, *through, *others.jobs]
    shop.ran_once(every)
    assert {record.attempt for record in shop.app.client.jobs([job.id for job in every])} == {1}

    def all_known():
        found = shop.app.nodes.list()["data"]
        return {node["id"]: node["created_at"] for node in found if node["state"] == "active"} == known

    wait_until(all_known, timeout=20)
    wait_until(lambda: shop.app.inspector.leader()["node"] in known, timeout=20)
    assert shop.fleet.pids() == before, "a process was restarted"
