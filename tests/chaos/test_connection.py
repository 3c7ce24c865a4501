"""Connections are cut and the script cache is emptied, under load: everything goes on by itself."""

import threading
import time

import pytest

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


def test_the_script_cache_is_emptied_under_load(fleet, shop, ledger, raw, look):
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
        jobs += [shop.quick.enqueue() for _ in range(25)]
        jobs += shop.app.enqueue_many([shop.quick.using(delay=0.3).call() for _ in range(25)])
    look.until(jobs, "completed", 20)
    over.set()
    flusher.join()
    assert not ledger.more_than_once()
    assert len(ledger.starts()) == len(jobs)
    for word in ("refused", "NOSCRIPT", "error"):
        assert word not in fleet.text(), fleet.text()


def test_an_emptied_server_is_as_good_as_a_new_one(fleet, shop, look, raw):
    """FLUSHALL takes what was accepted; what comes after it runs, and nobody trips over what was in hand."""
    fleet.start("-w", "2")
    before = fleet.pids()
    lost = shop.app.enqueue_many([shop.nap.call(0.5) for _ in range(250)])
    look.until(lost[:10], "running")
    look.accepted.clear()
    raw.flushall()
    fresh = [shop.nap.enqueue(0.1), shop.work.enqueue(0.1), shop.nap.using(delay=0.3).enqueue(0)]
    look.until(fresh, "completed", 15)
    assert fleet.pids() == before
