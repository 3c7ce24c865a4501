"""Once only, as a producer sees it: whose job it is handed, what it says, and that no moment makes two of one."""

from __future__ import annotations

import threading
import time

import pytest

from taskq import BadArguments, Debounce, DuplicateJob, EnqueueFailed, Throttle, Unique, keys


def declared(app, **options):
    @app.task(name="shop.sync", **options)
    async def sync(account, *, full=False):
        return account

    return sync


def test_the_second_call_gets_the_first_ones_job(app, hand):
    sync = declared(app, unique=Unique(by="account"))
    first, second, other = sync.enqueue(7), sync.enqueue(7, full=True), sync.enqueue(8)
    assert (first.created, second.created, other.created) == (True, False, True)
    assert (second, second.task) == (first, "shop.sync")
    assert second.refresh().task == "shop.sync"
    assert second.to_dict()["unique"] == "shop.sync:7"
    (job, _) = hand.claim()
    assert sync.enqueue(7) == first
    hand.complete(job)
    assert second.result() is None
    assert sync.enqueue(7).created


async def test_the_async_twin_does_the_same(on_loop):
    sync = declared(on_loop, unique=Unique(by="account"))
    first, second = await sync.aenqueue(7), await sync.aenqueue(7)
    assert (second, second.created) == (first, False)
    first, second = await on_loop.aenqueue_many([sync.call(9), sync.call(9)])
    assert (second, second.created) == (first, False)


def test_in_a_batch_too(app):
    sync = declared(app, unique=Unique(by="account"))
    jobs = app.enqueue_many(sync.call(n % 10) for n in range(600))
    assert len(set(jobs)) == 10
    assert sum(bool(job.created) for job in jobs) == 10


def test_a_task_may_want_a_refusal(app):
    sync = declared(app, unique=Unique(by="account", on_conflict="raise"))
    first = sync.enqueue(7)
    with pytest.raises(DuplicateJob, match=f"job {first.id} owns the unique key shop.sync:7") as caught:
        sync.enqueue(7)
    assert caught.value.owner == first.id
    with pytest.raises(DuplicateJob):
        app.enqueue_many([sync.call(8), sync.call(7)])
    assert sync.enqueue(8).created, "nothing of that call was added"


def test_of_several_calls_those_before_the_refused_one_are_told(app):
    sync = declared(app, unique=Unique(by="account", on_conflict="raise"))
    with pytest.raises(EnqueueFailed) as caught:
        app.enqueue_many([*(sync.call(n) for n in range(250)), sync.call(0)])
    assert (len(caught.value.jobs), len(caught.value.rest)) == (250, 1)
    assert isinstance(caught.value.__cause__, DuplicateJob)


def test_or_the_waiting_job_to_say_what_the_last_call_said(app, hand):
    sync = declared(app, unique=Unique(by="account", on_conflict="replace"))
    first = sync.enqueue(7)
    second = sync.using(priority=5, delay="1h", tags=["x"]).enqueue(7, full=True)
    assert (second, second.created) == (first, False)
    shown = first.to_dict()
    assert (shown["state"], shown["priority"], shown["tags"]) == ("scheduled", 5, ["x"])
    assert shown["kwargs"] == {"full": True}
    sync.enqueue(7)
    (job,) = hand.claim()
    assert job.id == first.id
    assert sync.enqueue(7, full=True) == first
    hand.complete(job)
    assert first.refresh().state == "completed"
    assert first.to_dict()["kwargs"] == {}


def test_a_key_may_belong_to_the_queue(app):
    one = declared(app, unique=Unique(by="account", scope="queue"))

    @app.task(name="shop.check", unique=Unique(by="account", scope="queue"))
    async def check(account): ...

    first, second = one.enqueue(7), check.enqueue(7)
    assert (second, second.created) == (first, False)
    assert (second.task, second.refresh().task) == (None, "shop.sync")


def test_a_retry_by_hand_is_refused_while_another_owns_the_key(app, hand):
    sync = declared(app, unique=Unique(by="account"))
    first = sync.enqueue(7)
    hand.fail(*hand.claim())
    second = sync.enqueue(7)
    with pytest.raises(DuplicateJob, match=f"job {second.id} owns the unique key of {first.id}"):
        first.retry()
    second.cancel()
    assert first.retry().state == "available"
    assert sync.enqueue(7) == first


def test_what_has_no_text_names_nothing(app):
    with pytest.raises(BadArguments, match=r"shop.sync: nothing can be named after \[7\]"):
        declared(app, unique=Unique(by="account")).enqueue([7])


def test_debounced(app, hand):
    sync = declared(app, debounce=Debounce("200ms", max_wait="10m"))
    jobs = [sync.enqueue(n) for n in range(5)]
    assert [job.created for job in jobs] == [True, False, False, False, False]
    assert len(set(jobs)) == 1
    assert hand.claim() == []
    ends = time.monotonic() + 20
    while not (claimed := hand.claim()) and time.monotonic() < ends:
        time.sleep(0.02)
    assert jobs[0].to_dict()["args"] == [4]
    assert [job.id for job in claimed] == [jobs[0].id]
    assert sync.enqueue(9).created


def test_throttled(app, hand):
    sync = declared(app, throttle=Throttle("1h", by="account"))
    first = sync.enqueue(1)
    hand.complete(*hand.claim())
    second = sync.enqueue(1, full=True)
    assert (second, second.created) == (first, False)
    assert sync.enqueue(2).created


def test_a_throttled_call_never_gets_a_debounced_job_nor_a_unique_one(app):
    sync = declared(app, debounce="1h")
    debounced, throttled, unique = (
        sync.enqueue(1),
        sync.using(throttle="1h").enqueue(2),
        sync.using(unique="1").enqueue(3),
    )
    assert (debounced.created, throttled.created, unique.created) == (True, True, True)
    assert len({debounced, throttled, unique}) == 3
    assert sync.enqueue(4) == debounced
    assert sync.using(throttle="1h").enqueue(5) == throttled
    assert throttled.to_dict()["unique"] == "shop.sync:throttle:"


def test_by_tells_the_calls_of_one_task_apart(app):
    for rule in ({"debounce": Debounce("1h", by="account")}, {"throttle": Throttle("1h", by="account")}):
        sync = declared(app, **rule)
        first, other, again = sync.enqueue(1), sync.enqueue(2), sync.enqueue(1, full=True)
        assert (first.created, other.created, again.created) == (True, True, False)
        assert again == first


def test_by_name_it_is_unique_by_what_the_call_says(app):
    named = app.by_name("shop.else", queue="default")
    first = named.using(unique="nightly").enqueue()
    assert named.using(unique="nightly").enqueue() == first
    assert named.using(unique="daily").enqueue().created
    assert named.using(unique=Unique(by="n")).enqueue(n=3).to_dict()["unique"] == "shop.else:3"


def test_many_at_once_make_one(app, raw, namespace):
    sync = declared(app, unique=Unique(by="account"))
    made, start = [], threading.Barrier(8)

    def producer():
        start.wait()
        made.extend(sync.enqueue(account) for account in range(25))

    threads = [threading.Thread(target=producer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 200
    assert len({job.id for job in made}) == sum(bool(job.created) for job in made) == 25
    assert len(list(raw.scan_iter(keys.queue(namespace, "default").unique("*"), count=1000))) == 25


def test_replaced_or_running_already_and_never_both(app, hand):
    """DUP-13: calls that come when the job's time comes."""
    sync = declared(app, unique=Unique(by="account", until="started", on_conflict="replace"))
    for account in range(60):
        first = sync.using(delay=0.03).enqueue(account)
        time.sleep(0.02 + account % 20 / 1000)
        # Claims race the replacing call, as workers do.
        claimed = []
        worker = threading.Thread(target=lambda claimed=claimed: claimed.extend(hand.claim()))
        worker.start()
        second = sync.enqueue(account, full=True)
        worker.join()
        claimed += hand.claim()
        ran = [(job.id, b"full" in job.fields[b"payload"]) for job in claimed]
        if second == first:
            assert ran == [(first.id, True)]
        else:
            assert sorted(ran) == sorted([(first.id, False), (second.id, True)])
        for job in claimed:
            assert hand.complete(job) == "ok"
