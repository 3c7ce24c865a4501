"""LOST-07 behind sentinels: what is killed or stopped loses nothing, as on one server."""

from __future__ import annotations

import pytest

from tests.cluster.losses import a_job_that_kills_its_worker, a_worker_killed, every_node_killed, stopped_in_a_claim

pytestmark = pytest.mark.timeout(180)


def test_every_node_killed_and_new_ones_started(shop):
    every_node_killed(shop, ["default"])


@pytest.mark.parametrize("rounds", [1, pytest.param(30, marks=[pytest.mark.long, pytest.mark.timeout(1200)])])
def test_sigterm_at_any_moment_of_a_claim_leaves_no_orphan(shop, rounds):
    stopped_in_a_claim(shop, ["default"], rounds)


def test_a_killed_workers_jobs_run_on_the_other_at_once(shop):
    a_worker_killed(shop, ["default"])


def test_a_job_that_kills_its_worker(shop):
    a_job_that_kills_its_worker(shop, ["default"])
