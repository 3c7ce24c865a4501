"""Limits, pauses of tasks and keys, weights and ageing, changed while programs run; a job's priority."""

from __future__ import annotations

import pytest

from taskq import Concurrency, InvalidTransition, JobNotFound, QueueNotFound, Rate, UnknownTask


@pytest.fixture
def crm(app):
    """A task under a limit by tenant, fair by tenant."""

    @app.task(name="sync", fair="tenant", limits=[Concurrency(2, by="tenant", name="crm")])
    def sync(tenant: str, n: int = 0) -> None:
        raise NotImplementedError

    return sync


def claimed(hand) -> list[str]:
    return [job.id for job in hand.claim()]


def only(rows, **wanted):
    (row,) = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return row


def test_a_limit_changes_at_once_and_back(app, crm, hand):
    jobs = [crm.enqueue("acme", n) for n in range(6)]
    queue = app.queue("default")
    assert queue.limit("crm", concurrency=1) is True
    assert queue.limit("crm", concurrency=1) is False
    assert len(claimed(hand)) == 1
    row = only(queue.limits(), name="crm", key="acme")
    assert (row["running"], row["free"], row["waiting_lanes"]) == (1, 0, 1)
    assert only(queue.limits(), name="crm", key=None)["concurrency"] == 1
    queue.limit("crm", concurrency=4)
    assert len(claimed(hand)) == 3
    queue.limit("crm", reset=True)
    assert claimed(hand) == [], "what code says holds again"
    queue.limit("crm", concurrency=9)
    assert len(claimed(hand)) == len(jobs) - 4


@pytest.fixture
def plain(app):
    """A task without limits of its own."""

    @app.task(name="plain")
    def plain(tenant: str) -> None:
        raise NotImplementedError

    return plain


def test_a_call_may_bring_numbers_of_its_own(app, plain, hand):
    under = plain.using(limits=[Concurrency(2, by="tenant", name="api")])
    jobs = [under.enqueue("acme") for _ in range(3)]
    assert len(claimed(hand)) == 2
    row = only(app.queue("default").limits(), name="api", key=None)
    assert (row["concurrency"], row["by_calls"], row["overridden"]) == (2, True, False)
    assert jobs[2].why().gate == "limit"


def test_the_jobs_of_one_producer_keep_their_order_within_a_millisecond(app, plain, hand):
    under = plain.using(fair="tenant", limits=[Concurrency(250, name="api")])
    jobs = [under.enqueue("acme").id for _ in range(200)]
    assert claimed(hand) == jobs


async def test_so_may_a_batch_and_one_known_by_name_alone(on_loop, plain, hand):
    under = plain.using(limits=[Concurrency(1, name="one")])
    await on_loop.aenqueue_many([under.call("a"), under.call("b")])
    by_name = on_loop.by_name("far", queue="default").using(limits=[Concurrency(1, name="two")])
    for _ in range(2):
        await by_name.aenqueue("a")
    assert len(claimed(hand)) == 2
    on_loop.queue("default").limit("one", concurrency=2)
    await under.aenqueue("c")
    assert len(claimed(hand)) == 1, "an operator's word counts more"


def test_a_call_says_its_numbers_again_where_they_were_lost(app, plain, hand, raw, q):
    under = plain.using(limits=[Concurrency(1, name="one")])
    under.enqueue("a")
    raw.delete(q.fixed("limits"))
    under.enqueue("b")
    app.hearsay._limited.clear()  # a minute later
    under.enqueue("c")
    assert len(claimed(hand)) == 1


def test_a_key_has_numbers_of_its_own(app, crm, hand):
    for n in range(4):
        crm.enqueue("acme", n)
        crm.enqueue("bolt", n)
    queue = app.queue("default")
    queue.limit("crm", concurrency=1)
    queue.limit("crm", concurrency=3, key="acme")
    assert len(claimed(hand)) == 4
    row = only(queue.limits(), name="crm", key="acme")
    assert (row["concurrency"], row["overridden"], row["running"]) == (3, True, 3)


def test_a_job_that_was_told_to_slow_down_blocks_its_key(app, crm, hand):
    crm.enqueue("acme")
    queue = app.queue("default")
    assert queue.block("crm", "30s", key="acme") is True
    assert claimed(hand) == []
    row = only(queue.limits(), name="crm", key="acme")
    assert row["blocked_until"] is not None
    assert (row["overridden"], row["free"]) == (False, 0)
    crm.enqueue("bolt")
    assert len(claimed(hand)) == 1
    queue.block("crm", 0, key="acme")
    assert len(claimed(hand)) == 1


def test_a_key_and_a_task_are_paused_and_resumed(app, crm, hand):
    mine = crm.enqueue("acme")
    other = app.by_name("other", queue="default").enqueue()
    queue = app.queue("default")
    assert queue.pause(key="acme") is True
    assert queue.pause(key="acme") is False
    assert queue.pause(task="other") is True
    assert queue.counts().pauses == 2
    assert claimed(hand) == []
    assert {(row["kind"], row["name"], row["key"]) for row in queue.limits() if row["paused"]} == {
        ("fairness key", None, "acme"),
        ("task", "other", None),
    }
    assert queue.resume(key="acme") is True
    assert claimed(hand) == [mine.id]
    assert app.by_name("other").resume("default") is True
    assert claimed(hand) == [other.id]
    assert queue.counts().pauses == 0
    assert not queue.counts().paused


def test_a_task_pauses_itself_where_its_jobs_are(app, crm, hand):
    crm.enqueue("acme")
    assert crm.pause() is True
    assert claimed(hand) == []
    assert crm.pause() is False
    assert crm.resume() is True
    assert len(claimed(hand)) == 1


def test_a_queue_as_a_whole_and_a_task_are_limited(app, hand):
    queue, task = app.queue("default"), app.by_name("x", queue="default")
    for _ in range(6):
        task.enqueue()
    queue.limit(concurrency=2)
    assert len(claimed(hand)) == 2
    assert only(queue.limits(), kind="queue")["concurrency"] == 2
    queue.limit(reset=True)
    queue.limit(task="x", concurrency=1)
    assert len(claimed(hand)) == 1
    queue.limit(task="x", reset=True)
    assert len(claimed(hand)) == 3
    assert queue.limits() == []


def test_weights_are_set_and_told(app, crm):
    crm.enqueue("acme")
    queue = app.queue("default")
    assert queue.weights() == {}
    assert queue.weights({"a b": 2}, acme=3) == {"a b": 2, "acme": 3}
    assert queue.weights(acme=None) == {"a b": 2}


def test_ageing_is_told_with_the_queue(app, crm):
    crm.enqueue("acme")
    queue = app.queue("default")
    assert queue.age("10m") is True
    assert only(queue.limits(), kind="queue")["age"] == 600
    assert queue.age(0) is True
    assert [row["kind"] for row in queue.limits()] == ["limit"]


def test_what_can_not_be_is_refused_before_it_is_sent(app, crm):
    crm.enqueue("acme")
    queue = app.queue("default")
    before = queue.limits()
    for wrong in (
        lambda: queue.limit("crm"),
        lambda: queue.limit("crm", concurrency=-1),
        lambda: queue.limit("crm", concurrency=True),
        lambda: queue.limit("crm", rate="fast"),
        lambda: queue.limit("crm", burst=3),
        lambda: queue.limit("crm", concurrency=1, reset=True),
        lambda: queue.limit("queue", concurrency=1),
        lambda: queue.limit("", concurrency=1),
        lambda: queue.limit(concurrency=1, key="acme"),
        lambda: queue.limit("crm", task="x", concurrency=1),
        lambda: queue.limit("crm", key=["x"], concurrency=1),
        lambda: queue.block("crm", "-3s"),
        lambda: queue.weights(acme=0),
        lambda: queue.weights(acme=241),
        lambda: queue.weights(acme=1.5),
        lambda: queue.pause(key="a", task="b"),
    ):
        with pytest.raises(ValueError, match=r"=|give"):
            wrong()
    assert queue.limits() == before
    with pytest.raises(QueueNotFound):
        app.queue("defualt").limit("crm", concurrency=1)


def test_a_task_that_nobody_has_heard_of_is_no_success(app, crm, enter, hand):
    app.by_name("mail.send", queue="default").enqueue()
    enter(tasks=["mail.read"])
    queue = app.queue("default")
    for ask in (queue.pause, app.client.pause):
        with pytest.raises(UnknownTask, match=r"'mail.raed' .*did you mean 'mail.read'\?"):
            ask(*["default"] * (ask == app.client.pause), task="mail.raed")
    with pytest.raises(UnknownTask):
        queue.limit(task="mail.raed", concurrency=1)
    with pytest.raises(UnknownTask):
        app.by_name("mail.raed").pause("default")
    assert queue.limits() == []
    assert queue.pause(task="mail.send") is True, "it has jobs here, though no node knows it"
    assert queue.pause(task="mail.read") is True, "a node knows it, though it has no jobs here"
    assert crm.pause("default") is True, "its code is here"
    assert app.client.pause("default", task="later", any_task=True) is True
    assert queue.resume(task="nosuch") is False
    assert queue.limit(task="nosuch", reset=True) is False


def test_a_client_limits_as_a_queue_does(app, crm, hand):
    for n in range(4):
        crm.enqueue("acme", n)
    client = app.client
    assert client.limit("default", "crm", concurrency=1, key="acme") is True
    assert client.limit("default", "crm", concurrency=1, key="acme") is False
    assert len(claimed(hand)) == 1
    assert client.limit("default", "crm", key="acme", reset=True) is True
    assert client.block("default", "crm", "1h") is True
    assert claimed(hand) == []
    assert client.block("default", "crm", 0) is True
    assert client.pause("default", key="acme") is True
    assert client.resume("default", key="acme") is True
    assert client.age("default", "10m") is True
    assert len(claimed(hand)) == 1
    with pytest.raises(ValueError, match="give concurrency= or rate="):
        client.limit("default", "crm")


async def test_and_so_does_its_twin(on_loop, crm, enter):
    crm.enqueue("acme")
    enter(tasks=["mail.read"])
    client = on_loop.aclient
    assert await client.limit("default", "crm", rate="100/min", burst=2) is True
    assert await client.block("default", None, "1h", key="acme") is True
    assert await client.age("default", "10m") is True
    assert await client.pause("default", task="mail.read") is True
    with pytest.raises(UnknownTask, match=r"did you mean 'mail\.read'"):
        await on_loop.queue("default").apause(task="mail.raed")


def test_a_limit_named_like_a_fairness_key_is_none(app, hand):
    @app.task(name="odd", limits=[Rate("1/h", name="@acme")])
    def odd() -> None:
        raise NotImplementedError

    odd.enqueue()
    odd.enqueue()
    app.queue("default").limit("@acme", rate="1/h")
    assert len(claimed(hand)) == 1


def test_a_job_gets_another_priority(app, hand):
    task = app.by_name("x", queue="default")
    first, second = task.enqueue(), task.enqueue()
    assert second.reprioritise(5) == "available"
    assert claimed(hand) == [second.id, first.id]
    assert first.reprioritise(7) == "running"
    assert first.refresh().record.priority == 7
    with pytest.raises(ValueError, match="priority=512"):
        first.reprioritise(512)
    with pytest.raises(JobNotFound):
        app.job("default:none").reprioritise(1)
    later = task.using(delay="1h").enqueue()
    later.cancel()
    with pytest.raises(InvalidTransition, match="is cancelled"):
        later.reprioritise(1)


async def test_the_async_twins_do_the_same(on_loop, hand):
    job = await on_loop.by_name("x", queue="default").aenqueue()
    queue = on_loop.queue("default")
    assert await queue.alimit("crm", concurrency=3, rate="10/s") is True
    assert await queue.ablock("crm", "1h") is True
    assert await queue.apause(key="acme") is True
    assert await queue.aresume(key="acme") is True
    assert await queue.aage("1m") is True
    (whole, crm) = await queue.alimits()
    assert (whole["age"], crm["concurrency"], crm["rate"], crm["burst"]) == (60, 3, "10/1s", 1)
    assert await queue.aweights(acme=2) == {"acme": 2}
    assert await on_loop.by_name("x").apause("default") is True
    assert await on_loop.by_name("x").aresume("default") is True
    assert await job.areprioritise(3) == "available"
