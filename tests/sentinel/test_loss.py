"""What a failover loses: what the old primary had not replicated, and nothing that `wait_replicas` was told is safe."""

from __future__ import annotations

import asyncio
import signal
import threading
import time

import pytest

from taskq import JobNotFound, NotReplicated, ServerFull, TaskQ, TaskQError, Unavailable
from tests.sentinel.site import Site
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(180)


def begun(ledger, jobs):
    """Whether the code of all these jobs has begun."""
    return {job.id for job in jobs} <= {each.job for each in ledger.starts()}


@pytest.fixture
def loose(site):
    """A site whose primary takes writes without a replica, so that something can be lost."""
    site.clients[0].config_set("min-replicas-to-write", 0)
    return site


@pytest.fixture(scope="module")
def calm(tmp_path_factory, server_binary):
    """One for the tests without a failover."""
    site = Site(tmp_path_factory.mktemp("calm"), server_binary, least_replicas=0)
    try:
        yield site.start()
    finally:
        site.close()


@pytest.fixture
def cut(calm):
    """Its replicas can be cut off, and are mended with the test."""
    yield calm
    calm.mend_replicas()
    calm.until_whole()


class Sure(threading.Thread):
    """Adds jobs with `wait_replicas`: what it was told is safe, and what it was told is not."""

    def __init__(self, site, namespace):
        super().__init__()
        self.safe, self.unsafe = [], []
        self._app = TaskQ(site.url, namespace=namespace, wait_replicas=2, deadline="500ms")
        self._over = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join()
        self._app.close()

    def run(self):
        task = self._app.by_name("shop.nap", queue="default")
        while not self._over.is_set():
            try:
                self.safe.append(task.enqueue(0))
            except NotReplicated as error:
                self.unsafe += error.job_ids
            except Unavailable:
                pass
            self._over.wait(0.05)


def test_what_was_not_replicated(shop, loose, ledger):
    """CONN-13, LOCK-09: replicas that are seconds behind. Jobs vanish and jobs that ended come back, as the docs say.

    No job sticks, epochs only grow, what was added before is there, and whatever `wait_replicas` said is safe.
    """
    site = loose
    node = shop.fleet.start("-w", "2", "-c", "20")
    with Sure(site, shop.namespace) as sure:
        running = shop.enqueue_many(shop.shop.nap.call(seconds) for seconds in (2, 2, 7, 7))
        due = [shop.enqueue(shop.shop.nap, 0, queue="default", delay=1) for _ in range(3)]
        late = shop.enqueue(shop.shop.nap, 0, queue="default", delay=8)
        shop.until(running, "running")
        wait_until(lambda: len(sure.safe) > 5)
        site.clients[0].execute_command("WAIT", 2, 5000)
        site.cut_replicas()
        before = set(shop.accepted)
        unheard = shop.enqueue_many(shop.shop.nap.call(0) for _ in range(20))
        held = [shop.enqueue(shop.shop.nap, 60, queue="default") for _ in range(2)]
        assert late.cancel() == "removed"
        wait_until(lambda: begun(ledger, [*unheard, *held, *due]), 15)
        wait_until(lambda: set(shop.states([*running[:2], *due]).values()) == {"completed"}, 15)
        wait_until(lambda: sure.unsafe)
        shop.accepted = before  # the others were accepted by a server that no replica has heard since
        site.servers[0].kill()
        site.mend_replicas()
        site.until_switched()
        safe = len(sure.safe)
        site.servers[0].start()
        wait_until(lambda: len(sure.safe) > safe, 40, what="two replicas again")
    shop.until([*running, *due, late], timeout=40)
    # Gone with the old primary, and their workers were told.
    assert set(shop.states([*unheard, *held]).values()) == {"gone"}
    for job in held:
        with pytest.raises(JobNotFound):
            job.refresh()
        wait_until(lambda job=job: job.id in node.text(), what="a line about the lease that was lost")
    assert "gone" not in shop.states(sure.safe).values()
    # Ended, and the new primary had not heard of it: they ran again, or their end was said again.
    again = set(ledger.more_than_once())
    assert again <= {job.id for job in [*running[:2], *due, *sure.safe]} | set(sure.unsafe)
    assert {job.id for job in due} <= again, "their claims were not replicated either"
    epochs = [(each.job, each.epoch) for each in ledger.starts()]
    assert len(epochs) == len(set(epochs)), "an epoch was given twice"
    for job in due:
        first, second = ledger.starts(job.id)
        assert second.epoch > first.epoch
        assert shop.app.client.job(job.id).epoch == second.epoch
    # No slot is kept by what is gone: both workers are free for more than is left of them.
    fresh = shop.enqueue_many(shop.shop.nap.call(1) for _ in range(40))
    shop.until(fresh, timeout=20)


def test_wait_replicas_says_what_is_not_safe_yet(cut, namespace):
    """The job is there and runs; the same call may be sent again, and isn't told more than is true."""
    site = cut
    app = TaskQ(site.url, namespace=namespace, wait_replicas=1, deadline="1s")
    task = app.by_name("t", queue="default")
    assert task.enqueue().created
    site.cut_replicas()
    began = time.monotonic()
    with pytest.raises(NotReplicated, match="default:one: added, and run like any other, but only 0 of 1") as raised:
        task.using(id="one").enqueue()
    assert 0.6 < time.monotonic() - began < 2
    assert raised.value.job_ids == ["default:one"]
    assert isinstance(raised.value, Unavailable)
    assert app.job("default:one").refresh().state == "available"
    # Another connection wrote nothing, and WAIT tells only of what its own wrote: it must not be taken in.
    other = TaskQ(site.url, namespace=namespace, wait_replicas=1, deadline="1s")
    with pytest.raises(NotReplicated):
        other.by_name("t", queue="default").using(id="one").enqueue()
    with pytest.raises(NotReplicated) as raised:
        app.enqueue_many(task.using(id=f"many-{n}").call() for n in range(100))
    assert len(raised.value.job_ids) == 100
    TaskQ(site.url, namespace=namespace).by_name("t", queue="default").enqueue()  # nobody else waits
    site.mend_replicas()
    assert not task.using(id="one").enqueue().created
    assert not other.by_name("t", queue="default").using(id="one").enqueue().created
    assert [job.created for job in app.enqueue_many(task.using(id=f"many-{n}").call() for n in range(100))] == [
        False
    ] * 100
    assert app.inspector.counts("default").available == 103
    app.close()
    other.close()


async def test_wait_replicas_for_coroutines(cut, namespace):
    site = cut
    app = TaskQ(site.url, namespace=namespace, wait_replicas=2, deadline="1s")
    task = app.by_name("t", queue="default")
    assert len(await app.aenqueue_many(task.call() for _ in range(600))) == 600
    await asyncio.to_thread(site.cut_replicas)
    with pytest.raises(NotReplicated):
        await task.using(id="one").aenqueue()
    with pytest.raises(NotReplicated):
        await app.aenqueue_many(task.using(id=f"many-{n}").call() for n in range(100))
    site.mend_replicas()
    assert not (await task.using(id="one").aenqueue()).created
    await app.aclose()


def test_a_repeat_at_maxmemory_is_answered(cut, namespace):
    """It writes, so that WAIT has something to tell; yet it adds nothing, and a full server doesn't refuse it."""
    app = TaskQ(cut.url, namespace=namespace, wait_replicas=1, deadline="1s")
    task = app.by_name("t", queue="default")
    task.using(id="one").enqueue()
    cut.clients[0].config_set("maxmemory", 1)
    try:
        with pytest.raises(ServerFull):
            task.enqueue()
        assert not task.using(id="one").enqueue().created
    finally:
        cut.clients[0].config_set("maxmemory", 0)
    app.close()


@pytest.mark.parametrize("rounds", [1, pytest.param(6, marks=pytest.mark.long)])
def test_with_wait_replicas_nothing_acknowledged_is_lost(site, namespace, rounds):
    """CONN-13: a primary dies under load; each job that an enqueue was told is safe is there afterwards.

    Both replicas are waited for: sentinels go by what the replicas told them up to five seconds before.
    """
    answered, over = [], threading.Event()

    def produce():
        app = TaskQ(site.url, namespace=namespace, wait_replicas=2)
        task = app.by_name("t", queue="default")
        while not over.is_set():
            try:
                answered.append(task.enqueue())
                answered.extend(app.enqueue_many(task.call() for _ in range(20)))
            except TaskQError:
                continue
        app.close()

    threads = [threading.Thread(target=produce) for _ in range(3)]
    for each in threads:
        each.start()
    for _ in range(rounds):
        struck = site.primary()
        count = len(answered)
        wait_until(lambda count=count: len(answered) > count + 500, 20)
        site.servers[struck].kill()
        wait_until(lambda struck=struck: site.primary() not in {-1, struck}, 30, what="another primary")
        site.servers[struck].start()
        site.until_whole()
        count = len(answered)
        wait_until(lambda count=count: len(answered) > count + 200, 20)
    over.set()
    for each in threads:
        each.join(20)
    app = TaskQ(site.url, namespace=namespace)
    found = app.client.jobs([job.id for job in answered])
    missing = [job.id for job, record in zip(answered, found, strict=True) if record is None]
    assert not missing, f"{len(missing)} of {len(answered)} acknowledged jobs are gone"
    app.close()


def test_sentinels_are_away_but_the_primary_is_not(site, namespace):
    """Whoever knows the primary goes on; one sentinel is enough for the others."""
    app = TaskQ(site.url, namespace=namespace, deadline="2s")
    task = app.by_name("t", queue="default")
    task.enqueue()
    for process in site.processes[:2]:
        process.send_signal(signal.SIGSTOP)
    late = TaskQ(site.url, namespace=namespace, deadline="5s")
    began = time.monotonic()
    late.by_name("t", queue="default").enqueue()
    assert time.monotonic() - began < 4
    site.processes[2].send_signal(signal.SIGSTOP)
    for _ in range(3):
        task.enqueue()
        time.sleep(0.5)
    late.close()
    app.close()


def test_a_name_that_no_sentinel_knows(calm, namespace):
    app = TaskQ(calm.url.replace("/main/", "/mian/"), namespace=namespace, deadline="500ms")
    with pytest.raises(Unavailable, match=r"mian at .*no such master"):
        app.ping()
    app.close()
