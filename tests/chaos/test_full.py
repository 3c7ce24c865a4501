"""CONN-10: the server is at maxmemory. Enqueueing is refused; everything else goes on, until there is room again."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from taskq import ServerFull
from tests.chaos.effort import measured
from tests.waiting import wait_until


@pytest.fixture
def limit(raw):
    """`limit(bytes)`; lifted at the end, whatever happens."""
    before = raw.config_get("maxmemory")["maxmemory"]
    yield lambda size: raw.config_set("maxmemory", size)
    raw.config_set("maxmemory", before)


@pytest.mark.timeout(120)
@pytest.mark.fault("maxmemory is reached and freed")
def test_a_full_server_drains(fleet, shop, raw, limit, trial):
    look = trial.look
    fleet.start("-w", "2", "-c", "20", TASKQ_LEASE="4s")
    before = fleet.pids()
    waiting = shop.app.enqueue_many([shop.nap.using(delay=2).call(0.1) for _ in range(100)])
    running = shop.app.enqueue_many([shop.nap.call(5) for _ in range(20)])
    again = shop.app.enqueue_many([shop.brittle.call() for _ in range(20)])
    look.until(running, "running")
    limit(int(raw.info("memory")["used_memory"]) + 2 * 1024 * 1024)
    ballast = []
    with suppress(ServerFull):
        while len(ballast) < 1000:
            ballast.append(shop.hold.using(delay=3600).enqueue(0, b"x" * 100_000))
    assert 0 < len(ballast) < 1000
    limit(1)  # what ends frees a little: from here on there is no room at all
    with pytest.raises(ServerFull):
        shop.app.enqueue_many([shop.nap.call(0) for _ in range(300)])
    look.until([*running, *again, *waiting], "completed", 30)
    assert not look.leases()
    assert ballast[0].cancel() == "removed"
    with measured(fleet, raw) as effort:
        time.sleep(4)
    assert effort.processor < 0.5, "a loop spins"
    assert effort.calls < 30, "a loop spins"
    with pytest.raises(ServerFull):
        shop.nap.enqueue(0)
    limit(0)
    trial.over()
    shop.app.queue("default").purge()
    wait_until(lambda: not look.leases())
    assert not look.ledger.more_than_once()
    assert fleet.pids() == before
    assert fleet.text().count("full") < 20, "a full server fills the log"
