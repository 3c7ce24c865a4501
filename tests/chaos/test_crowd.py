"""Great numbers: of what is due at once, of what may go, of what can't run, of what runs later. None is in the way of a
job that can run now, and none of it is in a worker's memory.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from taskq import commands
from taskq.commands import Done, NewJob
from taskq.node.sweeps.scheduler import LIMIT
from taskq.scripts import load
from tests.waiting import wait_until

BATCH = 250
AT_ONCE_S = 3  # promised: 1 s, on an idle machine


def add(look, count, name, *, task="shop.quick", due="", expires="", now=None):
    """Jobs of a task, by hand: that many need no client."""
    for first in range(0, count, BATCH):
        jobs = [NewJob(f"default:{name}{first + n}", "", task, "async", 0, due, expires, {}) for n in range(BATCH)]
        look.run(commands.enqueue(look.q, jobs, now=now))


def cpu_s(raw):
    """What the server has used of its processor: time in which it answered nobody, on however busy a machine."""
    told = raw.info("cpu")
    return told["used_cpu_user"] + told["used_cpu_sys"]


@pytest.fixture
def _every_call_kept(raw):
    """The server remembers how long each call took."""
    before = {name: raw.config_get(name)[name] for name in ("slowlog-log-slower-than", "slowlog-max-len")}
    raw.config_set("slowlog-log-slower-than", 0)
    raw.config_set("slowlog-max-len", 100_000)
    raw.slowlog_reset()
    yield
    for name, value in before.items():
        raw.config_set(name, value)
    raw.slowlog_reset()


def promotes_us(raw):
    """How long each call of `promote` took."""
    call = f"EVALSHA {load('promote').sha}".encode()
    return [each["duration"] for each in raw.slowlog_get(100_000) if each["command"].startswith(call)]


def starts_at_once(shop, look):
    """A new job is claimed soon after it is there."""
    job = shop.quick.enqueue()
    look.until([job], "completed", 30)
    record = look.record(job)
    assert record.epoch - record.created_at_ms < AT_ONCE_S * 1000


@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("_every_call_kept")
@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_very_many_due_at_one_moment(fleet, shop, look, raw, count):
    """PERF-03: the server answers in between, no lease is lost, and soon all are available."""
    fleet.start("-w", "2", TASKQ_LEASE="4s")
    ahead_s = 10 + count / 1000  # until all of them are there
    running = shop.app.enqueue_many([shop.nap.call(ahead_s + 10), shop.work.call(ahead_s + 10)])
    look.until(running, "running")
    queue = shop.app.queue("default")
    queue.pause()  # so that only their becoming available is looked at
    at = datetime.now(UTC) + timedelta(seconds=ahead_s)
    add(look, count, "due", due=str(int(at.timestamp() * 1000)))
    assert datetime.now(UTC) < at, "they weren't all there in time: this machine is too slow"
    wait_until(lambda: look.run(commands.counts(look.q)).available, ahead_s + 60)
    cpu, began = cpu_s(raw), time.monotonic()
    wait_until(lambda: look.run(commands.counts(look.q)).available == count, 60 + count / 2000)
    print(f"{count} jobs became available within {time.monotonic() - began:.1f} s")  # noqa: T201 (a figure to keep)
    assert look.leases() == len([job for job in running if look.record(job).state == "running"])
    assert cpu_s(raw) - cpu < 0.05 * count / LIMIT, "nobody waits longer for a PING"
    took = promotes_us(raw)
    assert len(took) >= 0.8 * count / LIMIT
    assert max(took) < sum(took) / 4, "one call did much of it"
    look.until(running, "completed", 40 + ahead_s)
    assert {look.record(job).attempt for job in running} == {1}
    assert queue.purge() == queue.clear(states=["cancelled"]) == count
    queue.resume()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_very_many_that_may_go(fleet, shop, look, count):
    """PERF-07: a node clears them away beside its work, never before it."""
    past_ms = look.now_ms() - 30 * 86_400_000
    add(look, count, "old", now=past_ms)
    for request in range(1, count // BATCH + 1):
        claim = commands.claim(
            look.q, worker="old.1", request=request, lease_ms=8000, limit=BATCH, free={"async": BATCH}, now=past_ms
        )
        done = [Done(job.id, job.epoch, b"") for job in look.run(claim).jobs]
        look.run(commands.complete(look.q, worker="old.1", done=done, now=past_ms))
    assert look.run(commands.counts(look.q)).completed == count
    fleet.start()
    starts_at_once(shop, look)
    wait_until(lambda: look.run(commands.counts(look.q)).completed == 1, 240, what="the old ones are gone")


@pytest.mark.timeout(180)
def test_very_many_that_cannot_run_stand_before_one_that_can(fleet, shop, look):
    """PERF-11."""
    fleet.start("-c", "10")
    starts_at_once(shop, look)
    queue = shop.app.queue("default")
    queue.pause()
    soon_ms = look.now_ms() + 300
    add(look, 1000, "unknown", task="shop.nobody_knows")
    add(look, 1000, "expired", expires=str(soon_ms))
    wait_until(lambda: look.now_ms() > soon_ms)
    job = shop.quick.enqueue()
    resumed_ms = look.now_ms()
    queue.resume()
    look.until([job], "completed", 60)
    assert look.record(job).epoch - resumed_ms < 5 * AT_ONCE_S * 1000  # a hundred times ten of them stand before it
    starts_at_once(shop, look)
    wait_until(lambda: look.run(commands.counts(look.q)).cancelled == 1000, 20)
    assert queue.purge() == 1000


def resident_mb(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_very_many_that_run_later(fleet, shop, look, count):
    """MEM-07: a worker knows nothing of them."""
    node = fleet.start()
    starts_at_once(shop, look)
    alone_mb = resident_mb(node.workers()[0])
    node.terminate()
    assert node.wait(20) == 0
    add(look, count, "later", due=f"+{86_400_000}")
    node = fleet.start()
    starts_at_once(shop, look)
    assert resident_mb(node.workers()[0]) < alone_mb + 4
    queue = shop.app.queue("default")
    assert queue.purge() == queue.clear(states=["cancelled"]) == count
