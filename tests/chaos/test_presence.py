"""Nodes that are taken for dead while they live: the registry is right again soon, and no lease is lost by it."""

from __future__ import annotations

import os
import signal
import time

import pytest

from taskq import keys
from taskq.presence import LIVENESS_MS
from tests.waiting import wait_until

LEASE = {"TASKQ_LEASE": "4s"}


def one(shop, id):
    return shop.app.nodes.get(id)


def two(fleet, shop):
    """Two nodes; the ids of the one that leads and of the other."""
    for _ in range(2):
        fleet.start(**LEASE)
    wait_until(lambda: shop.app.nodes.list()["total"] == 2)
    leader = wait_until(lambda: shop.app.inspector.leader()["node"])
    (other,) = [node["id"] for node in shop.app.nodes.list()["data"] if node["id"] != leader]
    return leader, other


def test_a_node_whose_beats_were_lost_is_marked_and_registers_again(fleet, shop, look, raw):
    leader, other = two(fleet, shop)
    before = one(shop, other)
    jobs = shop.app.enqueue_many([shop.nap.call(8) for _ in range(8)])
    look.until(jobs, "running")
    c = keys.cluster(shop.app.settings.namespace)
    old = int(time.time() * 1000) - LIVENESS_MS - 5_000

    def is_marked():
        # Its beats keep coming, every ten seconds: between two of them it looks silent.
        raw.zadd(c.fixed("nodes"), {other: old})
        raw.hset(c.node(other), "last_seen", old)
        return raw.hget(c.node(other), "state") == b"dead"

    wait_until(is_marked, timeout=30, step_s=0.3)
    wait_until(lambda: one(shop, other)["incarnation"] > before["incarnation"], timeout=30)
    after = one(shop, other)
    assert (after["state"], after["health"], after["created_at"]) == ("active", "healthy", before["created_at"])
    assert one(shop, leader)["state"] == "active"
    look.until(jobs, "completed", 30)
    assert {look.record(job).attempt for job in jobs} == {1}, "no lease was lost by it"


@pytest.mark.long
def test_a_node_that_stood_still_for_more_than_half_a_minute(fleet, shop, look):
    """All its processes, as on a laptop that slept: the others run its jobs, and then it is one of them again."""
    leader, other = two(fleet, shop)
    before = one(shop, other)
    (node,) = [each for each in fleet.living() if each.process.pid == before["pid"]]
    pids = [node.process.pid, *node.workers()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: one(shop, other)["state"] == "dead", timeout=60)
        assert [each["id"] for each in shop.app.nodes.list()["data"]] == [leader]
        jobs = shop.app.enqueue_many([shop.nap.call(0) for _ in range(8)])
        look.until(jobs, "completed", 30)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    wait_until(lambda: one(shop, other)["state"] == "active", timeout=30)
    assert one(shop, other)["created_at"] == before["created_at"]
