"""STUCK-07: what is paused takes everything in and hands nothing out; resumed, it hands out all of it."""

import time

import pytest

from taskq import commands


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
