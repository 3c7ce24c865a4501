"""Waiting for results: woken by the job's end, not lost with a notification, cleaned up in every case."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from taskq import AttemptsExhausted, JobCancelled, JobFailed, JobNotFound, ResultExpired, ResultTimeout
from taskq.client import ending
from tests.waiting import await_until, wait_until


@pytest.fixture
def task(app):
    return app.by_name("shop.send")


def subscriptions(raw) -> int:
    """How many connections listen to a channel of ours."""
    return sum(int(client["sub"]) > 0 for client in raw.client_list())


class Waiter(threading.Thread):
    """Calls something in a thread, and keeps what it gave, when."""

    def __init__(self, call):
        super().__init__()
        self.call = call
        self.answer = self.error = self.at = None
        self.start()

    def run(self):
        try:
            self.answer = self.call()
        except Exception as error:  # noqa: BLE001
            self.error = error
        self.at = time.monotonic()


def test_the_result_of_a_job_that_has_ended_costs_no_subscription(task, hand, raw):
    job = task.enqueue()
    hand.complete(hand.claim()[0], {"a": (1, 2)})
    assert job.result(timeout=0) == {"a": (1, 2)}
    assert job.state == "completed"
    assert b"waited" not in job.record.fields


def test_a_waiter_is_woken_by_the_end_of_the_job(task, hand, raw, monkeypatch):
    monkeypatch.setattr(ending, "RECHECK_S", 30.0)  # so that only the notification can wake it
    job = task.enqueue()
    waiter = Waiter(lambda: job.result(timeout=20))
    wait_until(lambda: subscriptions(raw) == 1)
    running = hand.claim()[0]
    wait_until(lambda: b"waited" in job.refresh().record.fields)
    before = time.monotonic()
    hand.complete(running, 7)
    waiter.join(10)
    assert waiter.answer == 7
    assert waiter.at - before < 5
    wait_until(lambda: subscriptions(raw) == 0)


def test_a_lost_notification_costs_a_few_seconds_not_the_result(task, hand, raw, monkeypatch):
    monkeypatch.setattr(ending, "RECHECK_S", 0.2)
    job = task.enqueue()
    waiter = Waiter(lambda: job.result(timeout=20))
    wait_until(lambda: subscriptions(raw) == 1)
    raw.client_kill_filter(_type="pubsub")
    hand.complete(hand.claim()[0], 7)
    waiter.join(10)
    assert waiter.answer == 7


def test_time_that_is_over_cleans_up_and_the_job_goes_on(task, raw):
    job = task.enqueue()
    with pytest.raises(ResultTimeout, match="it is available"):
        job.result(timeout="200ms")
    wait_until(lambda: subscriptions(raw) == 0)
    assert job.refresh().state == "available"


def test_no_time_at_all_is_one_look(task, raw):
    job = task.enqueue()
    with pytest.raises(ResultTimeout):
        job.join(timeout=0)
    assert subscriptions(raw) == 0
    assert b"waited" not in job.refresh().record.fields


def test_failures_and_cancels_reach_the_waiter(task, hand):
    failed, cancelled = task.enqueue(), task.enqueue()
    mine = {job.id: job for job in hand.claim()}
    hand.fail(mine[failed.id], reason="attempts exhausted (3 of 3): ValueError: no")
    cancelled.cancel()
    hand.fail(mine[cancelled.id], verb="retry")
    with pytest.raises(AttemptsExhausted, match="ValueError: no") as caught:
        failed.result()
    assert isinstance(caught.value, JobFailed)
    assert caught.value.errors[0]["type"] == "ValueError"
    with pytest.raises(JobCancelled, match="cancelled while running"):
        cancelled.result()
    assert (failed.join(), cancelled.join()) == ("failed", "cancelled")


def test_what_is_not_kept_is_told_from_what_never_was(app, task, hand):
    gone, dropped = task.using(keep=0).enqueue(), task.using(keep_result=0).enqueue()
    for job in hand.claim():
        hand.complete(job, 7)
    with pytest.raises(ResultExpired, match="no longer kept"):
        gone.result()
    with pytest.raises(ResultExpired, match="keep_result="):
        dropped.result()
    with pytest.raises(JobNotFound):
        app.job(gone.id).result()
    for id in ("default:nothing", "nonsense", "Not A Queue:x"):
        with pytest.raises(JobNotFound):
            app.job(id).result(timeout=1)


async def test_many_waiters_on_a_loop_share_one_connection(on_loop, hand, raw, monkeypatch):
    monkeypatch.setattr(ending, "RECHECK_S", 30.0)
    jobs = await on_loop.aenqueue_many([on_loop.by_name("x").call() for _ in range(20)])
    waiters = [asyncio.create_task(job.aresult(timeout=20)) for job in jobs]
    running = hand.claim()
    await await_until(lambda: all(job.record and b"waited" in job.record.fields for job in _refreshed(jobs)))
    assert subscriptions(raw) == 1
    for number, job in enumerate(running):
        hand.complete(job, number)
    assert sorted(await asyncio.gather(*waiters)) == list(range(20))
    await await_until(lambda: subscriptions(raw) == 0)


def _refreshed(jobs):
    return [job.refresh() for job in jobs]


async def test_a_cancelled_await_leaves_nothing_behind(on_loop, raw):
    job = await on_loop.by_name("x").aenqueue()
    waiter = asyncio.create_task(job.aresult())
    await await_until(lambda: subscriptions(raw) == 1)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    await await_until(lambda: subscriptions(raw) == 0)
    assert (await job.arefresh()).state == "available"
    with pytest.raises(ResultTimeout):
        await job.ajoin(timeout=0.1)


async def test_no_cancel_is_swallowed_whenever_it_comes(on_loop):
    """Python before 3.12 loses cancels in asyncio.wait_for: nothing on our way may use it."""
    job = await on_loop.by_name("x").aenqueue()
    for steps in range(150):
        waiter = asyncio.create_task(job.aresult())
        for _ in range(steps):
            await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.wait([waiter], timeout=5)
        assert waiter.cancelled(), f"{steps} steps after it began"


def test_an_app_serves_one_loop_after_another(app, hand):
    async def once():
        job = await app.by_name("x").aenqueue()
        hand.complete(hand.claim()[0], 7)
        try:
            return await job.aresult(timeout=5)
        finally:
            await app.aclose()

    assert [asyncio.run(once()) for _ in range(3)] == [7, 7, 7]
