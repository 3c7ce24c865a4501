"""Workers and nodes on three shards: every queue is waited for at once, and served as on one server."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from tests.cluster.conftest import QUEUES
from tests.cluster.losses import a_worker_killed
from tests.fleet import ROOT
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(120)
SERVED = ",".join(QUEUES)


def settled(shards, namespace):
    """How many connections this namespace's worker and node have, by name, once no more are opened."""

    def count():
        found = {}
        for shard in shards.all:
            for client in shard.client.client_list():
                found[client["name"]] = found.get(client["name"], 0) + 1
        return found

    seen = count()
    while True:
        time.sleep(0.5)
        if (now := count()) == seen:
            return now
        seen = now


def test_an_idle_worker_is_woken_by_each_queue_at_once(shop, shards, ledger):
    """By its marker: a claim that is made now and then comes every 5 s."""
    node = shop.fleet.start("-q", SERVED)
    for queue in QUEUES:
        began = time.monotonic()
        job = shop.enqueue(shop.shop.quick, queue=queue)
        assert job.join(timeout=5) == "completed"
        assert ledger.starts(job.id)[0].at - began < 1
    connections = settled(shards, shop.namespace)
    # One blocks for each queue, one a shard calls: "2 connections, in a cluster one more per further shard or queue".
    # A shard may have a second one that calls: new classes are read beside claims and finishes, and hold up none.
    assert connections["taskq:worker"] <= len(QUEUES) + 2 * len(shards.all)
    assert node.process.poll() is None


def test_jobs_of_many_queues(shop, ledger):
    """Plain, in threads, late, failing, with results and cancelled ones; two workers; a drain at the end."""
    node = shop.fleet.start("-q", SERVED, "-w", "2", "-c", "20")
    jobs = shop.enqueue_many(shop.shop.nap.using(queue=queue).call(0.05) for _ in range(20) for queue in QUEUES)
    jobs += shop.enqueue_many(shop.shop.work.using(queue=queue).call(0.05) for _ in range(3) for queue in QUEUES)
    jobs += shop.enqueue_many(
        shop.shop.quick.using(queue=queue, delay=0.5).call() for _ in range(3) for queue in QUEUES
    )
    slow = [shop.enqueue(shop.shop.too_slow, queue=queue) for queue in QUEUES]
    long = [shop.enqueue(shop.shop.nap, 60, queue=queue) for queue in QUEUES[:3]]
    shop.until(jobs)
    shop.until(long, "running")
    assert {job.cancel() for job in long} == {"requested"}
    shop.until(long, "cancelled", 10)
    shop.until(slow, "failed", 20)
    assert not {each.job for each in ledger.starts()} - shop.accepted
    assert set(ledger.more_than_once()) == {job.id for job in slow}
    node.terminate()
    assert node.wait() == 0


def test_a_killed_workers_jobs_run_on_the_other_at_once(shop):
    """On every shard."""
    a_worker_killed(shop, QUEUES)


def test_a_killed_nodes_jobs_run_on_another(shop, ledger):
    """LOST-07 for a host that is gone: within the lease and what is needed to notice, on every shard."""
    first = shop.fleet.begin("-q", SERVED, "-c", "20", TASKQ_LEASE="4s")
    second = shop.fleet.begin("-q", SERVED, "-c", "20", TASKQ_LEASE="4s")
    first.until_ready()
    second.until_ready()
    jobs = shop.enqueue_many(shop.shop.nap.using(queue=queue).call(1.5) for _ in range(4) for queue in QUEUES)
    wait_until(lambda: len(ledger.starts()) == len(jobs))
    workers = first.workers()
    hit = {each.job for each in ledger.starts() if each.pid in workers} - {each.job for each in ledger.ends()}
    assert hit
    killed = time.monotonic()
    first.kill()
    shop.until(jobs, timeout=30)
    late = [each.at - killed for each in ledger.starts() if each.job in hit and each.pid not in workers]
    assert len(late) == len(hit)
    assert max(late) < 7


def test_a_burst_ends_when_every_queue_is_empty(shop):
    jobs = shop.enqueue_many(shop.shop.quick.using(queue=queue).call() for _ in range(10) for queue in QUEUES)
    node = shop.fleet.begin("-q", SERVED, "--burst")
    assert node.wait(30) == 0
    assert set(shop.states(jobs).values()) == {"completed"}


def test_the_command_line(shop, shards):
    """The same commands, with the cluster's URL."""

    def taskq(*words):
        done = subprocess.run(
            [sys.executable, "-m", "taskq.cli", *words, "--url", shards.url, "--namespace", shop.namespace],
            capture_output=True,
            text=True,
            timeout=30,
            cwd=ROOT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    shop.fleet.start("-q", SERVED)
    assert taskq("enqueue", "shop.quick", "--queue", "q3").startswith("q3:")
    taskq("enqueue", "shop.quick", "--queue", "q6", "--wait")
    job = shop.enqueue(shop.shop.nap, 600, queue="q4")
    shop.until([job], "running")
    assert json.loads(taskq("job", "show", job.id, "--json"))["state"] == "running"
    assert {"q3", "q4"} <= {row["queue"] for row in json.loads(taskq("queue", "list", "--json"))["data"]}
    taskq("queue", "pause", "q5")
    assert shop.app.queue("q5").counts().paused
    taskq("queue", "resume", "q5")
    taskq("job", "cancel", job.id)
    shop.until([job], "cancelled")
    assert taskq("stats")
