"""What no arrangement of servers may lose, told once for three shards and for sentinels, as LOST-07 wants it: LOST-01,
LOST-03, LOST-11, and a worker that is killed alone.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Sequence

from tests.cluster.rig import Rig
from tests.waiting import wait_until


def every_node_killed(shop: Rig, queues: Sequence[str]) -> None:
    """LOST-01: every node and worker is killed in the middle of its jobs; new ones end them all."""
    flags = ("-q", ",".join(queues), "-c", "20")
    nodes = [shop.fleet.begin(*flags, TASKQ_LEASE="4s") for _ in range(2)]
    for node in nodes:
        node.until_ready()
    jobs = shop.enqueue_many(shop.shop.nap.using(queue=queues[n % len(queues)]).call(0.5) for n in range(90))
    wait_until(lambda: len(shop.ledger.starts()) > 45, what="half of the jobs begun")
    for node in nodes:
        node.kill()
    cut = {each.job for each in shop.ledger.starts()} - {each.job for each in shop.ledger.ends()}
    assert cut
    for node in [shop.fleet.begin(*flags, TASKQ_LEASE="4s") for _ in range(2)]:
        node.until_ready()
    shop.until(jobs, timeout=40)
    assert {each.job for each in shop.ledger.ends()} == {job.id for job in jobs}
    records = shop.app.client.jobs([job.id for job in jobs])
    assert {record.id for record in records if record.attempt == 2} >= cut


def stopped_in_a_claim(shop: Rig, queues: Sequence[str], rounds: int) -> None:
    """LOST-03: SIGTERM at any moment of a claim; nothing is left to the end of a lease."""
    for _ in range(rounds):
        nodes = [shop.fleet.begin("-q", ",".join(queues)) for _ in range(2)]
        for node in nodes:
            node.until_ready()
        for node in nodes:
            jobs = [shop.enqueue(shop.shop.quick, queue=queues[n % len(queues)]) for n in range(6)]
            time.sleep(random.uniform(0, 0.05))
            node.terminate()
            assert node.wait(20) == 0
        assert not [queue for queue in queues if shop.leases(queue)]
        assert set(shop.states(jobs).values()) <= {"completed", "available"}
        assert not shop.ledger.more_than_once()


def a_worker_killed(shop: Rig, queues: Sequence[str]) -> None:
    """LOST-07: what a killed worker ran, and nothing else, begins on its node's other one in under two seconds."""
    shop.fleet.start("-q", ",".join(queues), "-w", "2", "-c", "20")
    jobs = shop.enqueue_many(shop.shop.nap.using(queue=queues[n % len(queues)]).call(2) for n in range(18))
    wait_until(lambda: len(shop.ledger.starts()) == len(jobs))
    victim = shop.ledger.starts()[0].pid
    hit = {each.job for each in shop.ledger.starts() if each.pid == victim}
    killed = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    shop.until(jobs)
    again = [each.at - killed for each in shop.ledger.starts() if each.job in hit and each.pid != victim]
    assert len(again) == len(hit)
    assert max(again) < 2
    assert set(shop.ledger.more_than_once()) == hit


def a_job_that_kills_its_worker(shop: Rig, queues: Sequence[str]) -> None:
    """LOST-11: it is given up after its attempts, and what runs beside it, on any queue, is all done."""
    shop.fleet.start("-q", ",".join(queues), "-w", "2", "-c", "20")
    calls = [shop.shop.nap.using(queue=queues[n % len(queues)]).call(0.3) for n in range(90)]
    calls.insert(10, shop.shop.poison.using(queue=queues[0]).call())
    jobs = shop.enqueue_many(calls)
    poison = jobs.pop(10)
    shop.until([poison], "failed", 40)
    shop.until(jobs, timeout=40)
    assert len(shop.ledger.starts(poison.id)) == 3
    (record,) = shop.app.client.jobs([poison.id])
    assert [each.type for each in record.errors] == ["JobCrashed"] * 3
