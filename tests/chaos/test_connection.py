"""Connections are cut and the script cache is emptied, under load: everything goes on by itself."""

import random
import threading
import time

import pytest

from tests.chaos.effort import measured
from tests.waiting import wait_until

CUTS = ("normal", "pubsub")


@pytest.fixture
def cut(raw):
    """`cut()`: CLIENT KILL for everybody, subscribers too."""

    def cut(kinds=CUTS):
        for kind in kinds:
            raw.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")

    return cut


def canaries(shop, ledger, node):
    """A job on every worker, at once: each has room for one."""
    before = len(ledger.starts())
    jobs = shop.app.enqueue_many([shop.nap.call(0.4) for _ in node.workers()])
    wait_until(lambda: len(ledger.starts()) == before + len(jobs), 5, what="a canary on each worker")
    assert {each.pid for each in ledger.starts()[before:]} == set(node.workers())
    for job in jobs:
        job.join(timeout=5)


def test_an_idle_fleet_consumes_again_after_cuts(fleet, shop, ledger, cut):
    """CONN-01: also several cuts within two seconds, the worst case."""
    node = fleet.start("-w", "2", "-c", "1")
    before = fleet.pids()
    canaries(shop, ledger, node)
    for cuts in (1, 3, 3):
        for _ in range(cuts):
            cut()
            time.sleep(0.4)
        canaries(shop, ledger, node)
    assert fleet.pids() == before


def test_a_busy_fleet_and_its_callers_survive_cuts(fleet, shop, ledger, look, cut):
    """No job is lost or run twice, and a caller that waits for a result has it."""
    fleet.start("-w", "2")
    before = fleet.pids()
    awaited = shop.nap.enqueue(2.5)
    answer = []
    caller = threading.Thread(target=lambda: answer.append(awaited.join(timeout=20)))
    caller.start()
    jobs = []
    for _ in range(10):
        jobs += shop.app.enqueue_many([shop.nap.call(0.05) for _ in range(100)])
        cut()
        look.conserve()
        time.sleep(0.1)
    look.until(jobs, "completed", 20)
    caller.join(20)
    assert answer == ["completed"]
    assert not ledger.more_than_once()
    assert {look.record(job).attempt for job in jobs} == {1}
    assert fleet.pids() == before


@pytest.mark.timeout(120)
@pytest.mark.fault("CLIENT KILL of everybody every second")
def test_everybody_is_cut_every_second(fleet, shop, ledger, cut, trial):
    """Nodes, workers, producers, those who wait for a result: for 10 s."""
    fleet.start("-w", "2")
    fleet.start("-w", "1", TASKQ_LEASE="4s")
    before = fleet.pids()
    answers, jobs, until = [], [], time.monotonic() + 10

    def wait():
        while time.monotonic() < until:
            answers.append(shop.nap.enqueue(0.05).join(timeout=20))

    callers = [threading.Thread(target=wait) for _ in range(3)]
    for caller in callers:
        caller.start()
    while time.monotonic() < until:
        calls = [task.call(random.uniform(0, 2)) for task in (shop.nap, shop.work) for _ in range(15)]
        jobs += shop.app.enqueue_many([*calls, shop.brittle.call()])
        cut()
        trial.look.conserve()
        time.sleep(1)
    trial.over()
    trial.look.until(jobs, "completed", 30)
    for caller in callers:
        caller.join(30)
    assert set(answers) == {"completed"}
    assert not ledger.more_than_once()
    assert fleet.pids() == before


@pytest.mark.fault("The script cache is emptied all the time")
def test_the_script_cache_is_emptied_under_load(fleet, shop, ledger, raw, trial):
    """CONN-06: no call fails for it, neither ours nor the workers'."""
    fleet.start("-w", "2")
    over = threading.Event()

    def flush():
        while not over.is_set():
            raw.script_flush()
            over.wait(0.02)

    flusher = threading.Thread(target=flush)
    flusher.start()
    jobs = []
    for _ in range(10):
        jobs += [shop.nap.enqueue(0) for _ in range(25)]
        jobs += shop.app.enqueue_many([shop.nap.using(delay=0.3).call(0) for _ in range(25)])
    trial.look.until(jobs, "completed", 20)
    over.set()
    flusher.join()
    assert not ledger.more_than_once()
    assert len(ledger.starts()) == len(jobs)
    trial.over()
    for word in ("refused", "NOSCRIPT", "error"):
        assert word not in fleet.text(), fleet.text()


@pytest.mark.timeout(120)
@pytest.mark.fault("FLUSHALL under load")
def test_an_emptied_server_is_as_good_as_a_new_one(fleet, shop, raw, trial):
    """CONN-09: it takes what was accepted; what comes after it runs, and nobody trips over what was in hand."""
    look = trial.look
    fleet.start("-w", "2")
    before = fleet.pids()
    over, turn, fresh = threading.Event(), threading.Lock(), []

    def produce():
        while not over.wait(0.02):
            with turn:
                fresh.append(shop.nap.using(delay=random.choice([None, 0.5])).enqueue(0.1))

    lost = shop.app.enqueue_many([shop.nap.call(0.5) for _ in range(250)])
    producer = threading.Thread(target=produce)
    producer.start()
    look.until(lost[:10], "running")
    with turn:
        raw.flushall()
        look.accepted.clear()
        fresh.clear()
    trial.over()
    time.sleep(1)
    over.set()
    producer.join()
    look.until([*fresh, shop.work.enqueue(0.1)], "completed", 15)
    with measured(fleet, raw) as effort:
        time.sleep(4)
    assert effort.processor < 0.5, "a loop spins"
    assert effort.calls < 30, "a loop spins"
    assert effort.lines < 3, fleet.text()
    assert fleet.pids() == before
