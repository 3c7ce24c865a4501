"""Cancels, and leases that are lost, reach the code that runs: what the records say is what really happens."""

from __future__ import annotations

from taskq import commands
from tests.waiting import wait_until

LEASE = {"TASKQ_LEASE": "4s"}


def test_a_cancelled_job_is_stopped_and_its_neighbours_are_not(fleet, shop, ledger, look):
    """CANCEL-03: the body doesn't reach its end once the record says that it is cancelled."""
    fleet.start("-c", "5", **LEASE)
    job, *others = shop.app.enqueue_many([shop.nap.call(4) for _ in range(4)])
    wait_until(lambda: len(ledger.starts()) == 4)
    assert job.cancel() == "requested"
    look.until([job], "cancelled", 15)
    look.until(others, "completed", 20)
    assert ledger.ends(job.id) == []
    assert not ledger.more_than_once()


def test_whoever_has_lost_a_job_stops_and_says_nothing(fleet, shop, ledger, look, raw):
    """CANCEL-03: its lease was given to another by a sweep; what is stopped writes no word of its own."""
    fleet.start("-c", "1", **LEASE)
    job = shop.nap.enqueue(6)
    wait_until(lambda: ledger.starts(job.id))

    def taken():
        raw.zadd(look.q.fixed("leases"), {job.id: 1}, xx=True)
        return look.run(commands.reap(look.q, lease_ms=4_000)).moved

    wait_until(taken, step_s=0.1)  # nobody is taken anything in the first seconds of a queue
    look.until([job], "completed", 30)
    starts, ends = ledger.starts(job.id), ledger.ends(job.id)
    assert len(starts) == 2
    assert [each.epoch for each in ends] == [starts[-1].epoch]


def test_a_job_that_waits_behind_others_never_starts(fleet, shop, ledger, look):
    """CANCEL-05: nothing is fetched ahead, so a cancelled job can't stand in a worker's memory."""
    fleet.start("-c", "1")
    jobs = shop.app.enqueue_many([shop.nap.call(0.4) for _ in range(10)])
    wait_until(ledger.starts)
    assert jobs[4].cancel() == "removed"
    look.until([*jobs[:4], *jobs[5:]], "completed", 30)
    assert ledger.starts(jobs[4].id) == []
