"""Nodes whose clocks are hours apart: the server's is the only one that counts."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.chaos.conftest import FOLDER
from tests.chaos.turnover import Cluster, each_once
from tests.fleet import ROOT
from tests.waiting import wait_until

HOUR_S = 3600


def clock(hours):
    """The environment of a node that lives so many hours away, with its workers."""
    path = os.pathsep.join([str(FOLDER / "wrongclock"), str(ROOT)])
    return {"TASKQ_TEST_CLOCK_S": str(hours * HOUR_S), "PYTHONPATH": path, "TASKQ_LEASE": "4s"}


@pytest.mark.timeout(300)
def test_a_schedule_of_leaders_whose_clocks_are_hours_apart(fleet, shop, ledger, raw, look):
    """SCHED-21: each leads in turn, and no time fires twice or is left out."""
    cluster = Cluster(shop.app, shop.quick, fleet, ledger, registry=raw, run=look.run, queue="default")
    nodes = [fleet.begin("-c", "5", **clock(hours)) for hours in (-5, 0, 7)]
    for node in nodes:
        node.until_ready()
    cluster.put()
    led = set()
    while len(led) < len(nodes):
        leader = wait_until(cluster.leader, 30)
        led.add(leader)
        seen = len(cluster.nominals())
        wait_until(lambda seen=seen: len(cluster.nominals()) > seen + 2, 30)
        if len(led) < len(nodes):
            leader.terminate()
            leader.wait()
    cluster.settle()
    each_once(cluster)
    assert ["clock and Redis's differ" in node.text() for node in nodes] == [True, False, True]


@pytest.mark.timeout(120)
@pytest.mark.fault("Clocks hours apart")
def test_clocks_that_are_hours_apart(fleet, shop, ledger, trial):
    """What runs keeps its lease, what is due is due, a dead node's jobs are taken over in time: nothing is early."""
    look = trial.look
    early, late = fleet.start("-w", "2", "-c", "20", **clock(-5)), fleet.start("-w", "2", "-c", "20", **clock(7))
    says = [datetime.fromisoformat(re.search(r"^\d{4}-\S+", each.text(), re.MULTILINE)[0]) for each in fleet.nodes]
    apart = [(each.replace(tzinfo=each.tzinfo or UTC) - datetime.now(UTC)).total_seconds() / HOUR_S for each in says]
    assert [round(each) for each in apart] == [-5, 7], "the clocks aren't wrong"
    at = datetime.now(UTC) + timedelta(seconds=3)
    jobs = shop.app.enqueue_many([shop.nap.call(6) for _ in range(60)])
    jobs += shop.app.enqueue_many([shop.brittle.call() for _ in range(20)])
    due = shop.app.enqueue_many([shop.nap.using(at=at).call(0.1) for _ in range(30)])
    soon = shop.app.enqueue_many([shop.nap.using(expires="30s").call(0.1) for _ in range(10)])
    wait_until(lambda: {each.pid for each in ledger.starts()} >= {*early.workers(), *late.workers()})
    trial.struck.update(late.workers())
    late.kill()
    trial.over()
    look.until([*jobs, *due, *soon], "completed", 40)
    assert min(each.epoch for job in due for each in ledger.starts(job.id)) >= at.timestamp() * 1000
    for record in map(look.record, jobs):  # none was taken from a worker that lives: each try has its own reason
        reasons = [error["type"] for error in record.errors]
        assert record.attempt == len(reasons) + 1
        assert reasons.count("JobCrashed") <= 1
        assert reasons.count("RuntimeError") <= 1
        crashed_at = [error["worker"] for error in record.errors if error["type"] == "JobCrashed"]
        assert all(f"-{late.process.pid}-" in worker for worker in crashed_at)
