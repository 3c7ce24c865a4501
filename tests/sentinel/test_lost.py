"""LOST-07 behind sentinels: what is killed or stopped loses nothing, as on one server."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.cluster.losses import every_node_killed, stopped_in_a_claim
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(180)


def test_every_node_killed_and_new_ones_started(shop):
    every_node_killed(shop, ["default"])


@pytest.mark.parametrize("rounds", [1, pytest.param(30, marks=[pytest.mark.long, pytest.mark.timeout(1200)])])
def test_sigterm_at_any_moment_of_a_claim_leaves_no_orphan(shop, rounds):
    stopped_in_a_claim(shop, ["default"], rounds)


def test_a_killed_workers_jobs_run_on_the_other_at_once(shop, ledger):
    """And under a second, for a worker whose node lives."""
    shop.fleet.start("-w", "2", "-c", "20")
    jobs = shop.enqueue_many(shop.shop.nap.call(2) for _ in range(12))
    wait_until(lambda: len(ledger.starts()) == len(jobs))
    victim = ledger.starts()[0].pid
    hit = {each.job for each in ledger.starts() if each.pid == victim}
    killed = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    shop.until(jobs)
    assert max(each.at - killed for each in ledger.starts() if each.job in hit and each.pid != victim) < 2
    assert set(ledger.more_than_once()) == hit
