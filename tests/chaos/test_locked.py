"""Named locks that jobs hold, while workers are killed and started: each ends with its holder, none with a start."""

from __future__ import annotations

import os
import signal

import pytest

from tests.waiting import wait_until


def held(shop):
    """Fence by name, of the locks that are held."""
    return {each["name"]: each["fence"] for each in shop.app.inspector.locks()["data"]}


@pytest.mark.timeout(120)
def test_a_killed_jobs_lock_ends_and_a_living_ones_stays(fleet, shop, ledger, look):
    """LOCK-11: a worker that starts frees nobody's lock."""
    nodes = [fleet.begin("-c", "1", TASKQ_LEASE="4s") for _ in range(2)]
    for node in nodes:
        node.until_ready()
    first = shop.guarded.enqueue("a", 5)
    wait_until(lambda: ledger.starts(first.id))
    second = shop.guarded.enqueue("b", 600)
    wait_until(lambda: ledger.starts(second.id))
    before = held(shop)
    assert set(before) == {"a", "b"}
    os.kill(ledger.starts(first.id)[0].pid, signal.SIGKILL)
    wait_until(lambda: len(ledger.starts(first.id)) == 2, 40, what="another start, once the lock has ended")
    after = held(shop)
    assert after["a"] > before["a"]
    assert after["b"] == before["b"]
    look.until([first], "completed", 30)
    assert second.cancel() == "requested"
    look.until([second], "cancelled", 30)
    wait_until(lambda: held(shop) == {}, 10)
