"""Jobs that may not run now: they stand in nobody's way, and the workers that can do nothing about it stay quiet."""

from __future__ import annotations

import time

import pytest

from taskq import Concurrency, Lock, Rate
from tests.chaos.effort import measured
from tests.waiting import wait_until

EACH = 1_000


@pytest.fixture
def shut(shop):
    """`shut(n)` enqueues n jobs before each kind of gate, when all are shut; gives them and what opens the gates."""
    queue = shop.app.queue("default")
    gates = {
        "rate": {"limits": [Rate("1/h", name="api")]},
        "limit": {"limits": [Concurrency(1, name="crm")]},
        "lock": {"lock": Lock("account")},
        "key": {"fair": "who"},
        "several": {"fair": "who", "lock": Lock("account"), "limits": [Concurrency(1, name="crm")]},
    }

    def fill(n):
        wait_until(shop.app.inspector.queues, 20)
        queue.limit("api", rate="1/h", burst=1)
        queue.limit("crm", concurrency=1)
        queue.pause(key="acme")
        first = [shop.turn.using(limits=gates["rate"]["limits"]).enqueue("first")]
        holder = shop.turn.using(lock=Lock("account"), limits=gates["limit"]["limits"]).enqueue("holder", 600)
        wait_until(lambda: first[0].refresh().state == "completed" and holder.refresh().state == "running", 20)
        jobs = {
            kind: shop.app.enqueue_many(shop.turn.using(**options).call("acme") for _ in range(n))
            for kind, options in gates.items()
        }

        def release():
            queue.limit("api", rate="1000/s", burst=1000)
            queue.limit("crm", concurrency=100)
            queue.resume(key="acme")
            holder.cancel()

        return jobs, release

    return fill


@pytest.mark.timeout(180)
def test_very_many_that_may_not_run_stand_before_one_that_may(fleet, shop, look, shut):
    """PERF-11: limited by rate and number, locked out, of a paused key, and all of these at once."""
    fleet.start("-c", "10")
    jobs, release = shut(EACH)
    behind = [shop.turn.enqueue("free") for _ in range(20)]
    look.until(behind, "completed", 10)
    begun = {each.job for each in look.ledger.starts()}
    assert not [job for each in jobs.values() for job in each if job.id in begun]
    assert {kind: each[-1].why().gate for kind, each in jobs.items()} == {
        "rate": "rate", "limit": "limit", "lock": "lock", "key": "paused", "several": "lock",
    }  # fmt: skip
    release()
    assert shop.app.queue("default").purge() > 0


@pytest.mark.timeout(120)
def test_a_worker_that_may_run_nothing_stays_quiet(fleet, shop, look, raw, shut):
    """PERF-13: its jobs are rate-limited, limited, locked out and paused; nobody asks until a gate opens."""
    fleet.start("-c", "10")
    jobs, release = shut(20)
    time.sleep(7)  # the loops that come every few seconds have had their first turn
    with measured(fleet, raw) as effort:
        time.sleep(12)
    assert effort.calls < 5
    assert effort.processor < 0.05
    release()
    look.until([job for each in jobs.values() for job in each], "completed", 30)
