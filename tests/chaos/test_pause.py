"""STUCK-07: what is paused takes everything in and hands nothing out, whatever is started anew meanwhile; resumed, it
hands out all of it.
"""

import time

import pytest

from taskq import commands, keys
from tests.chaos.conserve import complaints
from tests.waiting import wait_until


def fail(look, jobs):
    """The jobs are claimed and fail, by hand."""
    claim = commands.claim(
        look.q, worker="hand.1", request=1, lease_ms=8000, limit=len(jobs), free={"async": len(jobs)}
    )
    failures = [commands.Failure(job.id, job.epoch, "fail", 0, '{"type":"E"}', "no") for job in look.run(claim).jobs]
    look.run(commands.fail(look.q, worker="hand.1", failures=failures))
    look.until(jobs, "failed")


@pytest.mark.parametrize("part", [{}, {"task": "shop.turn"}, {"key": "acme"}], ids=["the queue", "a task", "a key"])
def test_pause_retry_resume(fleet, shop, ledger, look, part):
    turn = shop.turn.using(fair="who")
    failed = [turn.enqueue("acme") for _ in range(5)]
    fail(look, failed)
    fleet.start("-w", "2")  # idle: they are blocked in a pop when the pause comes
    queue = shop.app.queue("default")
    assert queue.pause(**part)
    for job in failed:
        job.retry()
    fresh = [turn.enqueue("acme") for _ in range(5)]
    due = [turn.using(delay=0.5).enqueue("acme") for _ in range(5)]
    others = [shop.quick.using(fair=lambda: "bolt").enqueue() for _ in range(3)] if part else []
    look.until([*failed, *fresh, *due], "available", 10)
    look.until(others, "completed")
    time.sleep(1)
    begun = {each.job for each in ledger.starts()}
    assert begun == {job.id for job in others}
    assert queue.resume(**part)
    look.until([*failed, *fresh, *due], "completed", 3)
    assert len(ledger.starts()) == 15 + len(others)
    assert not ledger.more_than_once()


class TestRestarts:
    """On a server of the test's own."""

    @pytest.fixture
    def server_url(self, own):
        return own.url

    @pytest.fixture(autouse=True)
    def _no_leaked_keys(self):
        """Overrides the shared server's check."""

    @pytest.mark.timeout(240)
    def test_it_outlives_every_restart(self, fleet, shop, look, own, raw):
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
