"""Unique keys while jobs run, end, time out and are replaced by real workers: one job a key, and no key is left."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import defaultdict

import pytest

from taskq import Unique
from taskq.errors import DuplicateJob
from tests.waiting import wait_until


def keys_left(raw, q):
    """Unique keys that stand in the queue."""
    return [key.decode() for key in raw.scan_iter(q.unique("*"), count=1000)]


@pytest.mark.timeout(120)
def test_replaced_or_running_already_and_never_both(fleet, shop, look, raw):
    """DUP-13: the call that replaces comes when the job's time comes."""
    fleet.start("-w", "2", "-c", "20")
    task = shop.turn.using(unique=Unique(by="who", on_conflict="replace"))
    rounds = []

    def play(seed):
        draw = random.Random(seed)
        for n in range(20):
            who = f"{seed}-{n}"
            old = task.using(delay=0.1).enqueue(who, 0.001)
            time.sleep(0.095 + draw.uniform(0, 0.01))
            rounds.append((old, task.enqueue(who, 0.002)))

    threads = [threading.Thread(target=play, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rounds) == 320
    look.until([job for pair in rounds for job in pair], "completed", 30)
    runs = defaultdict(int)
    for each in look.ledger.starts():
        runs[each.job] += 1
    replaced = 0
    for old, new in rounds:
        seconds = [job.to_dict()["args"][1] for job in {old.id: old, new.id: new}.values()]
        assert [runs[job.id] for job in {old.id: old, new.id: new}.values()] == [1] * len(seconds)
        if new.created:  # the old one had ended
            assert seconds == [0.001, 0.002]
        else:  # replaced, or it ran already
            assert new.id == old.id
            replaced += seconds == [0.002]
    assert 0 < replaced < len(rounds), "one moment alone was tried"
    assert keys_left(raw, look.q) == []


@pytest.mark.timeout(120)
def test_a_retry_and_its_original_never_run_together(fleet, shop, look, raw):
    """DUP-03: the timeout is as long as the lease, the code takes longer, and many would like to run."""
    for _ in range(2):
        fleet.begin("-w", "2", TASKQ_LEASE="4s")
    for node in fleet.nodes:
        node.until_ready()
    unique = Unique(by="who", on_conflict="raise")
    task = shop.turn.using(unique=unique, timeout=4, max_attempts=2, backoff=shop.SOON)
    jobs = [task.enqueue(f"k{n}", 4.3) for n in range(10)]
    over, refused = threading.Event(), []

    def insist():
        while not over.wait(0.02):
            for n in range(10):
                try:
                    jobs.append(task.enqueue(f"k{n}", 4.3))
                except DuplicateJob:
                    refused.append(n)

    thread = threading.Thread(target=insist)
    thread.start()
    time.sleep(10)
    over.set()
    thread.join()
    assert refused
    look.until(jobs, "failed", 40)
    who = {job.id: job.to_dict()["args"][0] for job in jobs}
    starts = defaultdict(list)
    for each in look.ledger.starts():
        starts[who[each.job]].append(each.at)
    assert len(look.ledger.starts()) == 2 * len(jobs)
    for times in starts.values():
        times.sort()
        assert all(after - before > 3.9 for before, after in itertools.pairwise(times)), times
    assert keys_left(raw, look.q) == []


@pytest.mark.timeout(120)
def test_very_many_keys_leave_nothing(fleet, shop, look, raw):
    """MEM-11."""
    fleet.start("-w", "2", "-c", "100")
    task = shop.turn.using(unique=Unique(by="who"), keep=0)
    jobs = shop.app.enqueue_many(task.call(f"k{n}") for n in range(3_000))
    assert len({job.id for job in jobs}) == 3_000
    look.accepted.clear()  # they are gone with their end
    queue = shop.app.queue("default")
    wait_until(lambda: not (queue.counts().available or queue.counts().running), 60, what="the end of all jobs")
    assert keys_left(raw, look.q) == []
    assert list(raw.scan_iter(look.q.job("*"), count=1000)) == []
