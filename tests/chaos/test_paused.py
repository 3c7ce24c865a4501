"""STUCK-07: what is paused stays so, whatever is started anew meanwhile: nodes, and the server with its own file."""

from __future__ import annotations

import time

import pytest

from taskq import keys
from tests.chaos.conserve import complaints
from tests.waiting import wait_until


@pytest.fixture
def server_url(own):
    """The app's and the nodes' server is one of this test's own."""
    return own.url


@pytest.fixture(autouse=True)
def _no_leaked_keys(clean):
    """In place of the shared server's check: the same of this test's own."""


@pytest.mark.timeout(240)
def test_a_pause_outlives_every_restart(fleet, shop, look, own, raw):
    """Of a queue, a task and a key: the nodes begin anew and the server comes back with its append-only file."""
    other = shop.turn.using(queue="other")
    flags = ("-q", "default,other", "-w", "2")
    first = fleet.start(*flags)
    wait_until(lambda: len(shop.app.inspector.queues()) == 2, 20, what="both queues known")
    default, whole = shop.app.queue("default"), shop.app.queue("other")
    assert whole.pause()
    assert default.pause(task="shop.quick")
    assert default.pause(key="acme")
    paused = [other.enqueue("acme"), shop.quick.enqueue(), shop.turn.using(fair="who").enqueue("acme")]
    first.terminate()
    first.wait()
    own.kill()
    own.start()
    second = fleet.start(*flags)
    late = [other.enqueue("bolt"), shop.quick.enqueue(), shop.turn.using(fair="who").enqueue("acme")]
    own.kill()  # and once more below nodes that run
    own.start()
    wait_until(shop.app.ping, 20, what="the server")
    free = [shop.turn.using(fair="who").enqueue("bolt") for _ in range(3)]
    free += [shop.turn.enqueue("x"), shop.nap.enqueue(0)]
    look.until(free, "completed", 30)
    time.sleep(3)  # a plain claim comes every few seconds, and a gate is looked at
    assert {each.job for each in look.ledger.starts()} == {job.id for job in free}
    assert [job.why().gate for job in (*paused, *late)] == ["paused"] * 6
    assert second.process.poll() is None
    assert whole.resume()
    assert default.resume(task="shop.quick")
    assert default.resume(key="acme")
    look.until([*paused, *late], "completed", 20)
    assert not look.ledger.more_than_once()
    mine = {job.id for job in (paused[0], late[0])}
    assert complaints(raw, keys.queue(look.q.namespace, "other"), mine) == []
    look.accepted -= mine
