"""Timeouts, soft and hard, are attempts that failed: never a shutdown, never for ever, never at others' cost."""

import pytest

from taskq import JobTimeout
from tests.waiting import wait_until


def test_a_timeout_is_not_taken_for_a_shutdown(fleet, shop, ledger, look):
    """CANCEL-09: exactly three attempts, each for its timeout."""
    fleet.start()
    job = shop.too_slow.enqueue()
    with pytest.raises(JobTimeout):
        job.result(timeout=20)
    assert [each.type for each in look.record(job).errors] == ["JobTimeout"] * 3
    assert (len(ledger.starts(job.id)), len(ledger.ends(job.id))) == (3, 0)


def test_a_thread_that_cannot_be_stopped_costs_its_worker_and_nobody_else(fleet, shop, ledger, look):
    """Hard timeout: the worker is replaced, and what ran beside it keeps its attempt."""
    node = fleet.start("-w", "1")
    (old,) = node.workers()
    neighbours = shop.app.enqueue_many([shop.nap.call(1.5) for _ in range(5)])
    wait_until(lambda: len(ledger.starts()) == 5)
    deaf = shop.deaf.enqueue(30)
    with pytest.raises(JobTimeout):
        deaf.result(timeout=20)
    look.until(neighbours, "completed", 10)
    assert [each.type for each in look.record(deaf).errors] == ["JobTimeout", "JobTimeout"]
    assert len(ledger.starts(deaf.id)) == 2
    for job in neighbours:
        assert (look.record(job).attempt, look.record(job).errors) == (1, ())
    wait_until(node.workers)
    assert old not in node.workers()


def test_code_that_no_exception_reaches_costs_its_worker_and_nobody_else(fleet, shop, ledger, look):
    """CANCEL-07: it holds the GIL in C. The worker is killed at the hard timeout, and the queue keeps moving."""
    node = fleet.start("-w", "2")
    jobs = [shop.seize_for_too_long.enqueue(60)]
    wait_until(lambda: ledger.starts(jobs[0].id))
    (held,) = {each.pid for each in ledger.starts()}
    others = shop.app.enqueue_many([shop.nap.call(0.1) for _ in range(20)])
    look.until(others, "completed", 20)
    with pytest.raises(JobTimeout):
        jobs[0].result(timeout=30)
    assert [each.type for each in look.record(jobs[0]).errors] == ["JobTimeout"]
    assert (len(ledger.starts(jobs[0].id)), len(ledger.ends(jobs[0].id))) == (1, 0)
    wait_until(lambda: len(node.workers()) == 2 and held not in node.workers(), what="another worker in its place")
