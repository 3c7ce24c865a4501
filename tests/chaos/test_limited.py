"""Limits and locks under kills: no slot goes with the worker that held it, and none is there twice."""

import os
import signal
import time

import pytest

from taskq import Concurrency, Lock, Rate
from tests.waiting import wait_until


@pytest.fixture
def running(raw, q):
    """`running(gate)`: how many hold a slot."""
    return lambda gate: raw.zcard(q.slots(gate))


@pytest.mark.timeout(180)
def test_slots_do_not_go_with_the_workers_that_held_them(fleet, shop, look, running):
    """STUCK-05: kills, failures, timeouts and cancels; then the key has all its slots, and a set that is empty."""
    node = fleet.start("-w", "2")
    wait_until(shop.app.inspector.queues, 20)
    shop.app.queue("default").limit("crm", concurrency=2)
    limit = [Concurrency(2, name="crm")]
    nap = shop.nap.using(limits=limit, max_attempts=20)
    jobs = [nap.enqueue(0.3) for _ in range(30)]
    odd = [nap.enqueue(30) for _ in range(3)]
    odd += [shop.nap.using(limits=limit, timeout=0.2, max_attempts=1).enqueue(30) for _ in range(3)]
    for _ in range(4):
        wait_until(lambda: running("crm") and node.workers(), 20)
        time.sleep(1)
        assert running("crm") <= 2
        os.kill(node.workers()[0], signal.SIGKILL)
    for job in odd[:3]:
        job.cancel()
    look.until(jobs, "completed", 60)
    look.until(odd[:3], "cancelled", 30)
    look.until(odd[3:], "failed", 30)
    assert running("crm") == 0
    more = [nap.enqueue(2) for _ in range(4)]
    wait_until(lambda: running("crm") == 2, 20, what="the key has its slots again")
    look.until(more, "completed", 20)
    assert running("crm") == 0


@pytest.mark.timeout(180)
def test_a_lock_of_a_worker_that_stood_still_is_freed_once(fleet, shop, look, raw, running):
    """LOCK-17: it is reaped, goes on, and says its own end too: the lock still lets one through, and no more."""
    node = fleet.start("-w", "2", TASKQ_LEASE="4s")
    locked = shop.nap.using(lock=Lock("account"), max_attempts=20)
    jobs = [locked.enqueue(1) for _ in range(6)]
    for _ in range(3):
        wait_until(lambda: running("!account"), 20)
        (held,) = raw.zrange(look.q.slots("!account"), 0, 0)
        starts = wait_until(lambda held=held: look.ledger.starts(held.decode()))
        victim = starts[-1].pid
        os.kill(victim, signal.SIGSTOP)
        try:
            wait_until(
                lambda held=held: raw.zscore(look.q.slots("!account"), held) is None, 20, what="its lease is over"
            )
        finally:
            os.kill(victim, signal.SIGCONT)
        assert running("!account") <= 1
    look.until(jobs, "completed", 60)
    assert running("!account") == 0
    assert node.process.poll() is None


@pytest.mark.timeout(180)
def test_a_rate_never_stops_for_good(fleet, shop, look, raw, q):
    """STUCK-11: bursts around the limit, failures and releases; what it lets through stays what it says."""
    fleet.start("-w", "2")
    wait_until(shop.app.inspector.queues, 20)
    shop.app.queue("default").limit("api", rate="20/s", burst=5)
    rated = shop.quick.using(limits=[Rate("20/s", name="api", burst=5)])
    jobs = []
    began = time.monotonic()
    for size in (1, 40, 3, 60, 16):
        jobs += [rated.enqueue() for _ in range(size)]
        time.sleep(0.5)
    look.until(jobs, "completed", 60)
    took = time.monotonic() - began
    assert took > (len(jobs) - 5 - 1) / 20 - 0.5, "quicker than its limit"
    starts = sorted(look.record(job).epoch for job in jobs)
    for n, first in enumerate(starts):
        within = sum(first <= each < first + 1000 for each in starts[n:])
        assert within <= 20 + 5 + 1
    assert raw.ttl(q.rate("api")) != -1
