"""LOST-11 and RETRY-01: a job that kills its worker is given up after its attempts; the healthy ones are all done."""

import pytest

from taskq import JobFailed


@pytest.mark.parametrize("lasts, count", [(0, 500), (0.3, 150)], ids=["quick neighbours", "slow neighbours"])
def test_a_job_that_kills_its_worker(fleet, shop, look, lasts, count):
    node = fleet.start("-w", "2")
    calls = [shop.nap.call(lasts) for _ in range(count)]
    calls.insert(10, shop.poison.call())
    jobs = shop.app.enqueue_many(calls)
    poison = jobs.pop(10)
    with pytest.raises(JobFailed, match=r"worker died: .*\(SIGKILL\)"):
        poison.result(timeout=40)
    look.until(jobs, "completed", 40)
    assert len(look.ledger.starts(poison.id)) == 3
    assert [each.type for each in look.record(poison).errors] == ["JobCrashed"] * 3
    node.until_ready()
