"""A network that loses replies, swallows everything, or cuts: between the nodes and the server, never the callers."""

import random
import threading
import time

import pytest

from taskq import TaskQ, Unavailable
from tests.fleet import READY_S
from tests.waiting import wait_until


@pytest.mark.fault("All replies are lost for a while")
def test_lost_replies_lose_no_job_and_run_none_twice(fleet, shop, look, proxy, trial):
    """Claims and finishes whose answer never came are sent again, and are answered as the first time."""
    fleet.start("-w", "2", "-c", "20", TASKQ_URL=proxy.url)
    jobs = []
    for _ in range(4):
        jobs += shop.app.enqueue_many([shop.nap.call(0.1) for _ in range(100)])
        proxy.mode = "deaf"
        time.sleep(0.5)
        look.conserve()
        proxy.cut()
        proxy.mode = "pass"
        time.sleep(0.5)
    trial.over()
    look.until(jobs, "completed", 30)
    assert not look.ledger.more_than_once()
    assert {look.record(job).attempt for job in jobs} == {1}


def test_cuts_while_a_node_starts(fleet, shop, look, proxy):
    """CONN-01: its first questions, its workers' first claims; for a while nothing that begins comes to its end."""
    proxy.mode = "snap"
    node = fleet.begin("-w", "2", TASKQ_URL=proxy.url, TASKQ_DEADLINE="15s")
    wait_until(lambda: "worker started" in node.text(), READY_S)
    over = time.monotonic() + 4
    while time.monotonic() < over:
        proxy.mode = "pass" if proxy.mode == "snap" else "snap"
        proxy.cut()
        time.sleep(random.uniform(0, 0.3))
    proxy.mode = "pass"
    node.until_ready()
    jobs = shop.app.enqueue_many([shop.nap.call(0.1) for _ in range(100)])
    look.until(jobs, "completed", 15)
    assert not look.ledger.more_than_once()


@pytest.mark.timeout(120)
@pytest.mark.fault("Connections become black holes")
def test_half_open_connections_are_given_up(fleet, shop, proxy, namespace, trial):
    """CONN-19: the peer vanished without a word, for less than a lease: for the node, its workers and a producer.

    Nothing is run twice, each call of the producer returns or raises within its deadline (5 s), and all goes on.
    """
    look = trial.look
    fleet.start("-w", "2", TASKQ_URL=proxy.url)
    before = fleet.pids()
    producer = TaskQ(proxy.url, namespace=namespace)
    nap = producer.by_name("shop.nap")
    through = shop.app.enqueue_many([shop.nap.call(9), shop.nap.call(2)])
    waiting = nap.enqueue(8)
    look.accepted.add(waiting.id)
    ended = []
    waiter = threading.Thread(target=lambda: ended.append(waiting.join(timeout=30)))
    waiter.start()
    look.until(through, "running")
    proxy.mode = "hole"
    asked = time.monotonic()
    with pytest.raises(Unavailable):
        nap.using(id="in-the-hole").enqueue(0)
    assert time.monotonic() - asked < 10
    time.sleep(max(0, asked + 6 - time.monotonic()))
    proxy.mode = "pass"
    trial.over()
    through += [nap.enqueue(0), shop.nap.enqueue(0)]
    look.accepted.update(job.id for job in through)
    look.until(through, "completed", 20)
    waiter.join(30)
    assert ended == ["completed"]
    assert not look.ledger.more_than_once()
    assert fleet.pids() == before
    producer.close()


@pytest.mark.long
@pytest.mark.fault("A slow network")
def test_a_slow_network_is_only_slow(fleet, shop, look, proxy, trial):
    """Each answer takes a fifth of a second, for a node, its workers and their jobs."""
    proxy.delay_s = 0.2
    fleet.start("-w", "2", TASKQ_URL=proxy.url)
    before = fleet.pids()
    jobs = shop.app.enqueue_many([shop.nap.call(0.1) for _ in range(300)] + [shop.brittle.call() for _ in range(20)])
    look.until(jobs, "completed", 40)
    proxy.delay_s = 0
    trial.over()
    assert not look.ledger.more_than_once()
    assert fleet.pids() == before
