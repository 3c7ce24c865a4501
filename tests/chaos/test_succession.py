"""Who leads next: at once after a SIGTERM, though the terminated leader lives on and works; within one TTL after a
SIGKILL, and not before the dead one's time is over. Judged by the record's own times, which are the server's.
"""

from __future__ import annotations

import logging

import pytest

from taskq import commands, keys
from taskq.node.leader.lead import TTL_MS
from tests.waiting import wait_until

log = logging.getLogger(__name__)


@pytest.fixture
def leads(shop, look):
    """`leads()` reads the leader's record; `leads(node)` waits until this node leads, and gives the record then."""
    c = keys.cluster(shop.app.settings.namespace)

    def leads(node=None):
        return wait_until(lambda: _of(node, look.run(commands.leader(c))), 40, what="that it leads")

    return leads


def _of(node, found):
    return found if node is None or f"-{node.pid}-" in found.node else None


def test_who_is_terminated_is_followed_at_once_and_works_on(fleet, shop, look, leads):
    first = fleet.start("-c", "5")
    job = shop.stay.enqueue("done")
    look.until([job], "running")
    leads(first)
    second = fleet.start("-c", "5")
    old = leads(first)
    first.terminate()
    new = leads(second)
    assert new.term > old.term
    assert new.since_ms < old.until_ms, "nobody waited for the end of its time"
    assert first.process.poll() is None, "it lives"
    assert (look.record(job).state, look.record(job).attempt) == ("running", 1)
    assert [each.pid for each in look.ledger.starts(job.id)] == first.workers()
    look.ledger.tell("done")
    look.until([job], "completed")
    assert first.wait() == 0
    assert leads().node == new.node
    assert look.record(job).attempt == 1


def test_who_is_killed_is_followed_when_its_time_is_over(fleet, look, leads):
    nodes = [fleet.start("-c", "5") for _ in range(3)]
    for _ in range(2):
        old = wait_until(lambda: found if (found := leads()).node else None)
        (leader,) = [node for node in nodes if f"-{node.pid}-" in old.node]
        leader.kill()
        killed_ms, last = look.now_ms(), leads()
        assert last.node == old.node, "its record stands: nobody said that it ended"
        assert last.until_ms <= killed_ms + TTL_MS
        new = wait_until(lambda old=old: found if (found := leads()).node not in {"", old.node} else None)
        assert new.since_ms >= last.until_ms, "nobody takes what is another's"
        assert new.term > last.term
        log.info(
            "led %s ms after the kill, %s ms after its time", new.since_ms - killed_ms, new.since_ms - last.until_ms
        )
