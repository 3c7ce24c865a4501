"""CONN-11, STUCK-01: keys of ours vanish, or become something else, under nodes that run: they go on, and `taskq fsck
--repair` sets right what nobody else can.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import time

import pytest

from taskq import commands
from tests.fleet import ROOT
from tests.lua.room import Room
from tests.lua.test_hostile import spoil
from tests.waiting import wait_until


@pytest.fixture
def fsck(server_url, namespace):
    """`fsck("--repair")` runs it as a person does; gives its exit code and what it told of the queue."""

    def run(*flags):
        words = [sys.executable, "-m", "taskq.cli", "fsck", "--json", "--url", server_url, "--namespace", namespace]
        done = subprocess.run(
            [*words, *flags], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, next(each for each in json.loads(done.stdout)["queues"] if each["queue"] == "default")

    return run


@contextlib.contextmanager
def again_and_again(act, every_s):
    """Does something all the time, until the end."""
    over = threading.Event()
    failed = []

    def go():
        try:
            while not over.wait(every_s):
                act()
        except Exception as error:  # noqa: BLE001 (raised where the test sees it)
            failed.append(error)

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(10)
    assert not failed, failed


def all_end(look, timeout=40):
    """Wait until nothing waits or runs any more."""

    def over():
        counts = look.run(commands.counts(look.q))
        return counts.available == counts.running == counts.scheduled == counts.retryable == 0

    wait_until(over, timeout, what="the end of all jobs")


def test_keys_vanish_at_random(fleet, shop, look, raw, fsck):
    node = fleet.start("-w", "2")
    draw = random.Random(1)

    def take_one():
        key = raw.randomkey()
        if key is None or not key.startswith(look.q.prefix.encode()):
            return
        raw.delete(key)
        look.accepted.discard(key.removeprefix(look.q.job("").encode()).decode())

    def produce():
        shop.app.enqueue_many([shop.nap.using(delay=draw.choice([None, 1, 2])).call(0.2) for _ in range(20)])

    with again_and_again(take_one, 0.01), again_and_again(produce, 0.1):
        time.sleep(6)
    canary = shop.nap.enqueue(0)
    canary.result(timeout=20)
    code, told = fsck("--repair")
    assert (code, told["left"]) == (0, 0)
    assert told["found"] > 0
    all_end(look)
    look.accepted.intersection_update(id.decode() for id in raw.zrange(look.q.fixed("completed"), 0, -1))
    assert fsck()[1]["breaches"] == []
    node.until_ready()


def give_up_strangers(look, raw):
    """Cancel jobs whose task was struck: nobody knows it any more, and they would wait for an hour for one who does."""
    keys = [key for key in raw.scan_iter(look.q.job("*")) if raw.type(key) == b"hash"]
    ids = [key.decode().partition("job:")[2] for key in keys if raw.hget(key, "task") not in {b"shop.nap", None}]
    for id in ids:
        look.run(commands.cancel(look.q, [id], running=True, partial=True))


@pytest.mark.timeout(120)
def test_keys_become_anything_at_random(fleet, shop, look, raw, fsck):
    node = fleet.start("-w", "2")
    draw, room, spoilt = random.Random(2), Room(raw, look.q), []

    def spoil_one():
        with contextlib.suppress(Exception):  # a key that has gone since it was drawn, or is of another kind by now
            spoilt.append(spoil(room, draw))

    def produce():
        shop.app.enqueue_many([shop.nap.call(0.2) for _ in range(20)])

    with again_and_again(spoil_one, 0.02), again_and_again(produce, 0.1):
        time.sleep(6)
    assert len(spoilt) > 10, "nothing was struck"
    assert fsck("--repair")[0] == 0
    raw.hdel(look.q.fixed("meta"), "paused")
    shop.nap.enqueue(0).result(timeout=20)
    give_up_strangers(look, raw)
    all_end(look, 60)  # some were left running without a holder: two leases and an outage rule
    assert fsck()[1]["breaches"] == []
    node.until_ready()
    node.terminate()
    assert node.wait() == 0
    look.accepted.clear()
    raw.flushall()


@pytest.mark.parametrize("lost", ["all", "some"])
def test_leases_vanish_while_jobs_run(fleet, shop, look, raw, lost):
    """STUCK-01: their holders bring them back, also for a worker that is killed right after."""
    fleet.start("-w", "2")
    jobs = shop.app.enqueue_many([shop.nap.call(4) for _ in range(20)])
    look.until(jobs, "running")
    running = {each.id for each in jobs}
    raw.zrem(look.q.fixed("leases"), *sorted(running)[:: 1 if lost == "all" else 2])
    wait_until(lambda: look.leases() == len(jobs), 5, what="their renewal")
    raw.delete(look.q.fixed("leases"))
    os.kill(fleet.nodes[0].workers()[0], 9)
    look.until(jobs, "completed", 30)
    assert max(len(look.ledger.starts(job.id)) for job in jobs) <= 2


def test_running_without_a_lease_and_without_a_holder(fleet, shop, look, raw, fsck):
    """STUCK-01: nobody looks for these but fsck."""
    node = fleet.start()
    jobs = shop.app.enqueue_many([shop.nap.call(1) for _ in range(20)])
    look.until(jobs, "running")
    node.kill()
    raw.delete(look.q.fixed("leases"))
    fleet.start()
    shop.nap.enqueue(0).result(timeout=20)
    assert look.run(commands.counts(look.q)).running == 0, "no list shows them"
    code, told = fsck()
    assert (code, told["kinds"]) == (1, {"no lease": {"found": 20, "left": 20}})
    assert fsck("--repair")[0] == 0
    look.until(jobs, "completed", 30)
    assert fsck()[1]["breaches"] == []
