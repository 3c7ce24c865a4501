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


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seconds", [0, pytest.param(65, marks=pytest.mark.long)])
def test_nodes_that_stood_still_for_more_than_half_a_minute(fleet, shop, look, raw, seconds):
    """All their processes, as on a laptop that slept: others run what comes meanwhile, and then they are as before.

    Whose leases were shorter than its sleep has lost its jobs to others. Whose leases were longer keeps them, though it
    was taken for dead; and so does the one that was awake.
    """
    nodes, jobs = {}, {}
    for name, lease in (("awake", "4s"), ("short", "4s"), ("long", "5m")):
        nodes[name] = fleet.start("-c", "4", TASKQ_LEASE=lease)
        jobs[name] = shop.app.enqueue_many([shop.stay.call("go") for _ in range(4)])
        look.until(jobs[name], "running")
        wait_until(lambda name=name: on(fleet, look, jobs[name]) == {nodes[name]})
    ids = {node["pid"]: node["id"] for node in wait_until(lambda: all_three(shop))}
    slept = [ids[nodes[name].pid] for name in ("short", "long")]
    before = {id: one(shop, id) for id in slept}
    pids = [pid for name in ("short", "long") for pid in (nodes[name].pid, *nodes[name].workers())]
    stopped = time.monotonic()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: {one(shop, id)["state"] for id in slept} == {"dead"}, timeout=60)
        c = keys.cluster(shop.app.settings.namespace)  # they look dead by their silence, until the leader says so too
        wait_until(lambda: {raw.hget(c.node(id), "state") for id in slept} == {b"dead"}, timeout=30)
        assert [each["id"] for each in shop.app.nodes.list()["data"]] == [ids[nodes["awake"].pid]]
        nodes["new"] = fleet.start("-c", "4", **LEASE)
        wait_until(
            lambda: on(fleet, look, jobs["short"]) == {nodes["short"], nodes["new"]}, what="that another runs them"
        )
        wait_until(lambda: time.monotonic() - stopped >= seconds, timeout=90, step_s=0.5)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    wait_until(lambda: {one(shop, id)["state"] for id in slept} == {"active"}, timeout=30)
    after = {id: one(shop, id) for id in slept}
    assert {id: node["incarnation"] for id, node in after.items()} == dict.fromkeys(slept, 2)
    assert {id: node["created_at"] for id, node in after.items()} == {
        id: node["created_at"] for id, node in before.items()
    }
    look.ledger.tell("go")
    look.until([job for each in jobs.values() for job in each], "completed", 40)
    attempts = {name: {look.record(job).attempt for job in each} for name, each in jobs.items()}
    assert attempts == {"awake": {1}, "short": {2}, "long": {1}}
    assert on(fleet, look, jobs["long"]) == {nodes["long"]}
    fresh = shop.app.enqueue_many([shop.stay.call("more") for _ in range(16)])
    look.until(fresh, "running", 40)
    wait_until(lambda: on(fleet, look, fresh) == set(nodes.values()), what="that each works again")
    look.ledger.tell("more")
    look.until(fresh, "completed", 40)


def all_three(shop):
    found = shop.app.nodes.list()
    return found["data"] if found["total"] == 3 else None


def on(fleet, look, jobs):
    """The nodes on which these jobs began."""
    mine = {job.id for job in jobs}
    pids = {each.pid for each in look.ledger.starts() if each.job in mine}
    return {node for node in fleet.nodes if pids.intersection(node.workers())}
