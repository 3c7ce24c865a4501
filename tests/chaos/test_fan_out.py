"""Jobs spread evenly over a node's workers, whether they come one after another or all at once: counted, not timed."""

import time
from collections import Counter

import pytest

LONG = (3, 7)  # of ten jobs, those that take 50 ms


def shares(node, ledger, jobs):
    """What each worker began, of what each would have begun if all began alike."""
    ran = Counter(each.pid for each in ledger.starts())
    assert sum(ran.values()) == jobs
    return [ran[pid] / (jobs / len(node.workers())) for pid in node.workers()]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize(
    "come",
    [("10", 1_000, 1, 0.005), ("100", 2_400, 20, 0.04)],
    ids=["one-by-one", "in-handfuls"],
)
def test_no_worker_is_off_its_share_by_a_fifth(fleet, shop, look, come, workers):
    """`come`: the slots of a worker, how many jobs, how many at once, and the pause after these in s."""
    slots, jobs, at_once, pause_s = come
    node = fleet.start("-w", str(workers), "-c", slots)
    added = []
    while len(added) < jobs:
        calls = [shop.nap.call(0.05 if n % 10 in LONG else 0) for n in range(len(added), len(added) + at_once)]
        added += shop.app.enqueue_many(calls)
        time.sleep(pause_s)
    look.until(added, "completed", 90)
    each = shares(node, look.ledger, jobs)
    assert all(0.8 <= share <= 1.2 for share in each), each


@pytest.mark.timeout(240)
@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize(
    "short",
    [(0.5, 0.2), (0.01, 0.5)],
    ids=["slots-are-short", "processors-are-short"],
)
def test_a_backlog_is_worked_off_by_all_alike(fleet, shop, look, workers, short):
    """Ten times what all slots hold, there at once. Where the slots are what is short, nobody is off by a fifth; where
    jobs are so short that the processors are, a worker does what the system lets it.
    """
    (seconds, most), jobs = short, 1_000 * workers
    node = fleet.start("-w", str(workers))
    shop.quick.enqueue().result(timeout=20)  # now the queue is known, and can be paused
    look.ledger.clear()
    queue = shop.app.queue("default")
    queue.pause()
    added = []
    for _ in range(0, jobs, 250):
        added += shop.app.enqueue_many([shop.nap.call(seconds) for _ in range(250)])
    queue.resume()
    look.until(added, "completed", 120)
    each = shares(node, look.ledger, jobs)
    assert all(1 - most <= share <= 1 + most for share in each), each
