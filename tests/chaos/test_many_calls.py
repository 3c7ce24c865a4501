"""CONN-17: two hundred jobs on one loop that all call the server, more than it has connections for."""

import pytest


@pytest.mark.timeout(120)
def test_jobs_that_call_the_server_cost_no_lease(fleet, shop, look):
    """Renewals and finishes have connections of their own: nothing is late for the crowd, nothing is run twice."""
    node = fleet.start("-c", "200", TASKQ_LEASE="4s")
    before = fleet.pids()
    jobs = shop.app.enqueue_many([shop.ask.call(50) for _ in range(400)])
    look.until(jobs, "completed", 60)
    assert not look.ledger.more_than_once()
    assert {look.record(job).attempt for job in jobs} == {1}
    assert fleet.pids() == before
    assert "expired" not in node.text()
