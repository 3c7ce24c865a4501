"""A job whose node is gone: what may still be asked of it, and what new nodes do about those that run."""

from tests.waiting import wait_until

LEASE = {"TASKQ_LEASE": "4s"}


def test_an_orphan_that_is_cancelled_is_not_run_again(fleet, shop, ledger, look):
    """CANCEL-11: the cancel wins, whoever finds the orphan."""
    node = fleet.start(**LEASE)
    job = shop.nap.enqueue(60)
    wait_until(lambda: ledger.starts(job.id))
    node.kill()
    assert job.cancel() == "requested"
    fleet.start(**LEASE)
    look.until([job], "cancelled", 15)
    assert len(ledger.starts(job.id)) == 1


def test_new_nodes_take_nothing_from_those_that_run(fleet, shop, ledger, look):
    """DUP-09: starting restores nothing but what has expired."""
    fleet.start("-w", "2", **LEASE)
    jobs = shop.app.enqueue_many([shop.nap.call(7) for _ in range(10)])  # longer than a lease
    wait_until(lambda: len(ledger.starts()) == 10)
    for _ in range(2):
        fleet.start(**LEASE)
    look.until(jobs, "completed", 20)
    assert not ledger.more_than_once()
