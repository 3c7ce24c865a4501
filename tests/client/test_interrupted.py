"""A batch that fails part-way: what is in, what is not, and that sending the rest again adds nothing twice."""

from __future__ import annotations

import pytest

from taskq import EnqueueFailed, JobAlreadyExists, ServerFull, Unavailable, connection
from taskq.client import asynchronous, batch, synchronous


@pytest.fixture
def one_call_at_a_time(monkeypatch):
    monkeypatch.setattr(batch, "CALLS_AT_ONCE", 1)


def calls(app, count=600):
    task = app.by_name("x", queue="q")
    return [task.call(number) for number in range(count)]


def after(calls_allowed: int, error: Exception, *, answered: bool):
    """`run_many` that fails from some call on; `answered=False`: the server did it, but the answer got lost."""
    left = calls_allowed

    def run_many(server, commands, **more):
        nonlocal left
        left -= 1
        if left >= 0:
            return connection.run_many(server, commands, **more)
        if not answered:
            connection.run_many(server, commands, **more)
        raise error

    return run_many


def test_what_was_added_and_what_was_not_are_told_apart(app, monkeypatch, one_call_at_a_time):
    with monkeypatch.context() as patched:
        patched.setattr(synchronous, "run_many", after(1, Unavailable("gone"), answered=True))
        with pytest.raises(
            EnqueueFailed, match=r"250 of 600 jobs were enqueued, then: gone; send \.rest again"
        ) as caught:
            app.enqueue_many(calls(app))
    failure = caught.value
    assert isinstance(failure.__cause__, Unavailable)
    assert [job.refresh().to_dict()["args"] for job in failure.jobs[:2]] == [[0], [1]]
    assert (len(failure.jobs), len(failure.rest)) == (250, 350)
    rest = app.enqueue_many(failure.rest)
    assert all(job.created for job in rest)
    assert app.queue("q").counts().available == 600


@pytest.mark.parametrize("exists", ["existing", "raise"])
def test_a_lost_answer_is_no_second_job(app, monkeypatch, one_call_at_a_time, exists):
    with monkeypatch.context() as patched:
        patched.setattr(synchronous, "run_many", after(0, Unavailable("gone"), answered=False))
        with pytest.raises(EnqueueFailed) as caught:
            app.enqueue_many(calls(app))
    assert (len(caught.value.jobs), len(caught.value.rest)) == (0, 600)
    jobs = app.enqueue_many(caught.value.rest, exists=exists)
    assert all(job.created for job in jobs)
    assert app.queue("q").counts().available == 600


def test_own_ids_sent_again_are_taken_for_the_same_call(app, monkeypatch, one_call_at_a_time):
    task = app.by_name("x", queue="q")
    mine = [task.using(id=f"n{number}").call(number) for number in range(300)]
    with monkeypatch.context() as patched:
        patched.setattr(synchronous, "run_many", after(0, Unavailable("gone"), answered=False))
        with pytest.raises(EnqueueFailed) as caught:
            app.enqueue_many(mine)
    assert all(job.created for job in app.enqueue_many(caught.value.rest, exists="raise"))
    with pytest.raises(JobAlreadyExists):
        app.enqueue_many(mine, exists="raise")


def test_one_refused_call_does_not_hide_the_answers_of_the_others(app):
    app.by_name("x", queue="q").using(id="taken").enqueue()
    taken = app.by_name("x", queue="q").using(id="taken").call()
    with pytest.raises(EnqueueFailed) as caught:
        app.enqueue_many([*calls(app, 250), taken, *calls(app, 249), *calls(app, 100)], exists="raise")
    assert isinstance(caught.value.__cause__, JobAlreadyExists)
    assert (len(caught.value.jobs), len(caught.value.rest)) == (350, 250)


async def test_the_async_twin_tells_the_same(on_loop, monkeypatch, one_call_at_a_time):
    sent = 0

    async def run_many_async(server, commands, **more):
        nonlocal sent
        sent += 1
        if sent > 1:
            raise Unavailable("gone")
        return await connection.run_many_async(server, commands, **more)

    with monkeypatch.context() as patched:
        patched.setattr(asynchronous, "run_many_async", run_many_async)
        with pytest.raises(EnqueueFailed) as caught:
            await on_loop.aenqueue_many(calls(on_loop))
    assert (len(caught.value.jobs), len(caught.value.rest)) == (250, 350)
    assert len(await on_loop.aenqueue_many(caught.value.rest)) == 350
    assert (await on_loop.queue("q").acounts()).available == 600


def test_a_full_server_takes_nothing_and_says_so(app, raw):
    app.ping()
    before = raw.config_get("maxmemory")["maxmemory"]
    raw.config_set("maxmemory", "1")
    try:
        with pytest.raises(ServerFull, match="maxmemory"):
            app.enqueue_many(calls(app))
        with pytest.raises(ServerFull):
            app.by_name("x", queue="q").enqueue()
    finally:
        raw.config_set("maxmemory", before)
    assert app.by_name("x", queue="q").enqueue().created


def test_an_unreachable_server_is_told_within_the_deadline(namespace):
    from taskq import TaskQ

    app = TaskQ("redis://127.0.0.1:1/0", namespace=namespace, deadline=0.3)
    with pytest.raises(Unavailable):
        app.by_name("x").enqueue()
    with pytest.raises(Unavailable):
        app.enqueue_many(calls(app, 10))
