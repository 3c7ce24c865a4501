"""Jobs that come one after another spread evenly over a node's workers: counted, not timed."""

import time
from collections import Counter

import pytest

WORKERS = 4
LONG = (3, 7)  # of ten jobs, those that take 50 ms


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "come",
    [("10", 1_000, 1, 0.005), ("100", 2_400, 20, 0.04)],
    ids=["one-by-one", "in-handfuls"],
)
def test_no_worker_is_off_its_share_by_a_fifth(fleet, shop, ledger, look, come):
    """`come`: the slots of a worker, how many jobs, how many at once, and the pause after these in s."""
    slots, jobs, at_once, pause_s = come
    node = fleet.start("-w", str(WORKERS), "-c", slots)
    added = []
    while len(added) < jobs:
        calls = [shop.nap.call(0.05 if n % 10 in LONG else 0) for n in range(len(added), len(added) + at_once)]
        added += shop.app.enqueue_many(calls)
        time.sleep(pause_s)
    look.until(added, "completed", 90)
    ran = Counter(each.pid for each in ledger.starts())
    assert sum(ran.values()) == jobs
    shares = [ran[pid] / (jobs / WORKERS) for pid in node.workers()]
    assert all(0.8 <= share <= 1.2 for share in shares), shares
