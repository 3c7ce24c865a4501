"""Limits that code declares hold wherever its jobs wait: in another queue than the task's, where no worker has said
anything, where only executors claim, and whoever enqueues.
"""

from __future__ import annotations

import time

import pytest

from taskq import Concurrency, Options, Rate, TaskQ, commands, hearsay, keys

TWO = [Concurrency(2, by="tenant", name="crm")]


@pytest.fixture
def sync(app):
    """A task under a limit by tenant."""

    @app.task(name="sync", queue="crm", limits=TWO)
    def sync(tenant: str) -> None:
        raise NotImplementedError

    return sync


@pytest.fixture
def known(run, namespace):
    """A node has said what it knows of the task, but declared nothing to any queue."""

    def known(options: str, queue: str = "crm") -> None:
        task = commands.KnownTask("sync", queue, "thread", options, "")
        c = keys.cluster(namespace)
        run(commands.register_node(c, node="n", ttl_ms=60_000, fields={"state": "active"}))
        run(commands.beat(c, node="n", ttl_ms=60_000, fields={}, tasks=[task]))

    return known


@pytest.fixture
def producer(server_url, namespace):
    """Another program, without the task's code. `made(app.by_name(…))` of it."""
    app = TaskQ(server_url, namespace=namespace)
    yield app
    app.close()


@pytest.mark.parametrize("queue", ["crm", "other"])
def test_they_hold_in_every_queue_and_before_any_worker(sync, hand, queue):
    jobs = [sync.using(queue=queue).enqueue("acme") for _ in range(5)]
    others = [sync.using(queue=queue).enqueue("bolt") for _ in range(3)]
    taken = hand.claim(queue)
    assert {job.id for job in taken} == {job.id for job in (*jobs[:2], *others[:2])}
    assert hand.claim(queue) == []
    hand.complete(taken[0])
    assert len(hand.claim(queue)) == 1


def test_they_hold_for_executors(app, sync):
    for _ in range(5):
        sync.enqueue("acme")
    given = app.client.claim("crm", worker="gpu-1", limit=5)
    assert len(given) == 2
    app.client.complete(given[0].token)
    assert len(app.client.claim("crm", worker="gpu-1", limit=5)) == 1


async def test_they_hold_for_awaited_calls_and_batches(on_loop, sync, hand):
    await sync.using(queue="a").aenqueue("acme")
    await on_loop.aenqueue_many([sync.using(queue="a").call("acme") for _ in range(4)])
    assert len(hand.claim("a")) == 2


def test_a_batch_and_a_bound_job_too(app, sync, hand):
    app.enqueue_many(sync.using(queue=queue).call("acme") for queue in ("a", "b") for _ in range(3))
    assert [len(hand.claim(queue)) for queue in ("a", "b")] == [2, 2]
    for n in range(3):
        slot = app.queue("c").reserve(f"k{n}", max_concurrency=9)
        app.queue("c").bind(slot.token, sync.using(queue="c").call("acme"))
    assert len(hand.claim("c")) == 2


def test_those_of_the_app_hold_for_all_its_tasks(server_url, namespace, hand):
    app = TaskQ(server_url, namespace=namespace, defaults=Options(limits=[Concurrency(1, name="all")]))

    @app.task(name="one")
    def one() -> None: ...

    @app.stub(name="two")
    def two() -> None: ...

    for task in (one, two, app.by_name("three"), one.using(priority=3)):
        task.using(queue="q").enqueue()
    assert len(hand.claim("q")) == 1
    app.close()


def test_a_stub_says_them(producer, hand):
    @producer.stub(name="sync", queue="crm", limits=TWO)
    def sync(tenant: str) -> None: ...

    for queue in ("crm", "other"):
        for _ in range(3):
            sync.using(queue=queue).enqueue("acme")
        assert len(hand.claim(queue)) == 2


def test_who_knows_the_name_alone_says_what_the_nodes_told(producer, known, hand):
    known('{"limits": [{"n": 2, "by": "tenant", "name": "crm"}], "order": ["tenant"]}')
    for sync in (producer.by_name("sync"), producer.by_name("sync", queue="other")):
        jobs = [sync.enqueue("acme") for _ in range(3)]
        assert len(hand.claim(keys.queue_of(jobs[0].id))) == 2


def test_a_rate_too(app, hand):
    @app.task(name="api", limits=Rate("2/h", burst=2))
    def api() -> None: ...

    for _ in range(4):
        api.using(queue="other").enqueue()
    assert len(hand.claim("other")) == 2


def test_tasks_that_share_a_name_say_each_a_number(app, hand):
    """Who says one number doesn't unsay the other."""

    @app.task(name="one", limits=Concurrency(2, name="crm"))
    def one() -> None: ...

    @app.task(name="two", limits=Rate("3/h", name="crm", burst=3))
    def two() -> None: ...

    for task in (one, two, one, two):
        task.enqueue()
    first = hand.claim()
    assert len(first) == 2
    for job in first:
        hand.complete(job)
    assert len(hand.claim()) == 1


def test_an_operators_word_counts_more_until_it_is_taken_back(app, sync, hand):
    for _ in range(9):
        sync.using(queue="other").enqueue("acme")
    queue = app.queue("other")
    queue.limit("crm", concurrency=1)
    app.hearsay._limited.clear()  # a minute later
    sync.using(queue="other").enqueue("acme")
    assert len(hand.claim("other")) == 1
    queue.limit("crm", concurrency=5)
    app.hearsay._limited.clear()
    sync.using(queue="other").enqueue("acme")
    assert len(hand.claim("other")) == 4
    queue.limit("crm", reset=True)
    (row,) = [each for each in queue.limits() if each["name"] == "crm" and each["key"] is None]
    assert (row["concurrency"], row["overridden"], row["by_calls"]) == (2, False, True)
    assert hand.claim("other") == []


def test_a_workers_code_counts_more(app, sync, hand, run, namespace):
    q = keys.queue(namespace, "crm")
    run(commands.declare(q, kinds={}, retention={}, limits={"crm": "c=1"}))
    for _ in range(3):
        sync.enqueue("acme")
    assert len(hand.claim("crm")) == 1


def test_they_are_said_once_a_minute_a_queue(app, sync, monkeypatch):
    said = []
    declare = hearsay.declare
    monkeypatch.setattr(hearsay, "declare", lambda q, **more: said.append(q.name) or declare(q, **more))
    for _ in range(5):
        sync.enqueue("acme")
        sync.using(queue="other", priority=3).enqueue("acme")
        app.enqueue_many([sync.call("acme")] * 3)
    assert said == ["crm", "other"]
    later = time.monotonic() + hearsay.SAID_S
    monkeypatch.setattr(hearsay.time, "monotonic", lambda: later)
    sync.enqueue("acme")
    sync.enqueue("acme")
    assert said == ["crm", "other", "crm"]


def test_of_very_many_queues_the_latest_are_remembered(app, sync, monkeypatch):
    monkeypatch.setattr(hearsay, "MOST_SAID", 3)
    for n in range(5):
        sync.using(queue=f"q{n}").enqueue("acme")
    assert len(app.hearsay._limited) == 2
