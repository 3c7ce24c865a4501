"""PERF-13: a worker that has nothing to do, or can do nothing, asks now and then and spends next to no time on it."""

import time

import pytest

from taskq import commands, keys, scripts
from tests.chaos.effort import CALLED, measured
from tests.waiting import wait_until

LOOK_S = 12.0  # more than two turns of the slowest loop
CALLS_A_SECOND = 5
# What each loop asks first, whatever it finds; promote and expire are called when `reap` says that something is due.
LOOPS = [
    scripts.load(name).sha for name in ("reap", "prune", "pulse", "due_schedules", "nodes", "mark_dead", "forget_nodes")
]


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
    wait_until(lambda: all(raw.script_exists(*LOOPS)), 20, what="each loop's first turn, which costs it more calls")
    time.sleep(0.5)  # what the pauses set off is over
    with measured(fleet, raw) as effort:
        time.sleep(LOOK_S)
    assert effort.calls < CALLS_A_SECOND * 2
    assert effort.processor < 0.05 * 2
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
        with measured(fleet, raw) as effort:
            time.sleep(LOOK_S)
        assert 0 < effort.refused < 2 * CALLS_A_SECOND
        assert effort.processor < 0.1
    finally:
        raw.execute_command("ACL", "SETUSER", "default", *(f"+{name}" for name in CALLED))
    job = shop.quick.enqueue()
    look.until([job], "completed", 10)
    assert node.process.poll() is None
    wait_until(lambda: len(node.workers()) == 1)
