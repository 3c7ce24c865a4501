"""Code that blocks the worker's loop, or holds its GIL, for three leases: it runs once, because the node renews."""

import pytest

from tests.waiting import wait_until


@pytest.mark.timeout(120)
def test_what_blocks_for_three_leases_runs_once(fleet, shop, ledger, look):
    """DUP-06, with the default lease of 8 s. Two workers are held, a third and another node are idle all the while."""
    fleet.start("-w", "3")
    fleet.start()
    held = []
    for task in (shop.seize, shop.block):
        held.append(task.enqueue(25))
        wait_until(lambda: len(ledger.starts()) == len(held))
    assert len({each.pid for each in ledger.starts()}) == 2
    shop.nap.enqueue(0).result(timeout=10)
    look.until(held, "completed", 40)
    for job in held:
        assert (len(ledger.starts(job.id)), len(ledger.ends(job.id))) == (1, 1)
        assert (look.record(job).attempt, look.record(job).errors) == (1, ())
    assert "lease expired" not in fleet.text()
    assert "worker died" not in fleet.text()
