"""PERF-13: a worker that has nothing to do, or can do nothing, asks now and then and spends next to no time on it."""

import os
import time
from pathlib import Path

import pytest

from taskq import commands, keys
from tests.waiting import wait_until

LOOK_S = 6.0
CALLS_A_SECOND = 5
CALLED = ("evalsha", "eval", "bzpopmin")
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pids):
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / TICKS


def calls(raw, of):
    told = raw.info("commandstats")
    return sum(told.get(f"cmdstat_{name}", {}).get("calls", 0) for name in of)


def asks_little(raw, pids, workers, of=CALLED):
    """Measured while nothing happens: calls of all processes, and their time."""
    before, cpu, began = calls(raw, of), cpu_s(pids), time.monotonic()
    time.sleep(LOOK_S)
    lasted_s = time.monotonic() - began
    assert (calls(raw, of) - before) / lasted_s < CALLS_A_SECOND * (workers + 1)
    assert (cpu_s(pids) - cpu) / lasted_s < 0.05 * (workers + 1)


@pytest.mark.timeout(120)
def test_only_paused_queues(fleet, shop, look, raw):
    """Paused and resumed many times, and in the end paused with work before it."""
    fleet.start("-q", "default,other")
    queues = [look.q, keys.queue(look.q.namespace, "other")]
    jobs = []
    for _ in range(20):
        for queue in queues:
            look.run(commands.pause(queue))
        jobs.append(shop.quick.enqueue())
        for queue in queues:
            look.run(commands.resume(queue))
    look.until(jobs, "completed", 20)
    for queue in queues:
        look.run(commands.pause(queue))
    waiting = [shop.quick.enqueue() for _ in range(10)]
    look.until(waiting, "available")
    time.sleep(0.5)
    asks_little(raw, fleet.pids(), 1)
    for queue in queues:
        look.run(commands.resume(queue))
    look.until(waiting, "completed", 5)


@pytest.mark.timeout(120)
def test_each_call_is_answered_with_an_error(fleet, shop, look, raw):
    """A permission that was taken away, say. When it is there again everything goes on."""
    node = fleet.start()
    shop.quick.enqueue().result(timeout=10)
    raw.execute_command("ACL", "SETUSER", "default", *(f"-{name}" for name in CALLED))
    try:
        time.sleep(3)  # the pauses between tries have grown
        before, cpu, began = rejected(raw, CALLED), cpu_s(fleet.pids()), time.monotonic()
        time.sleep(LOOK_S)
        lasted_s = time.monotonic() - began
        assert (rejected(raw, CALLED) - before) / lasted_s < 2 * CALLS_A_SECOND
        assert (cpu_s(fleet.pids()) - cpu) / lasted_s < 0.1
    finally:
        raw.execute_command("ACL", "SETUSER", "default", *(f"+{name}" for name in CALLED))
    job = shop.quick.enqueue()
    look.until([job], "completed", 10)
    assert node.process.poll() is None
    wait_until(lambda: len(node.workers()) == 1)


def rejected(raw, of):
    told = raw.info("commandstats")
    return sum(told.get(f"cmdstat_{name}", {}).get("rejected_calls", 0) for name in of)
