"""STUCK-07: a paused queue takes everything in and hands nothing out; resumed, it hands out all of it."""

import time

from taskq import commands


def fail(look, jobs):
    """The jobs are claimed and fail, by hand."""
    claim = commands.claim(
        look.q, worker="hand.1", request=1, lease_ms=8000, limit=len(jobs), free={"async": len(jobs)}
    )
    failures = [commands.Failure(job.id, job.epoch, "fail", 0, '{"type":"E"}', "no") for job in look.run(claim).jobs]
    look.run(commands.fail(look.q, worker="hand.1", failures=failures))
    look.until(jobs, "failed")


def test_pause_retry_resume(fleet, shop, ledger, look):
    failed = [shop.nap.enqueue(0) for _ in range(5)]
    fail(look, failed)
    fleet.start("-w", "2")  # idle: they are blocked in a pop when the pause comes
    queue = shop.app.queue("default")
    assert queue.pause()
    for job in failed:
        job.retry()
    fresh = [shop.nap.enqueue(0) for _ in range(5)]
    due = [shop.nap.using(delay=0.5).enqueue(0) for _ in range(5)]
    look.until([*failed, *fresh, *due], "available", 10)
    time.sleep(1)
    look.conserve()
    assert ledger.starts() == []
    assert queue.resume()
    look.until([*failed, *fresh, *due], "completed", 3)
    assert len(ledger.starts()) == 15
    assert not ledger.more_than_once()
