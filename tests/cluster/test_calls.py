"""Calls find their shard: whichever it is, wherever it went, and whatever another call was told."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import threading
import time

import pytest

from taskq import TaskQ, Unavailable, commands, connection, keys
from taskq.connection.cluster import slot_of
from tests.cluster.conftest import QUEUES
from tests.waiting import await_until, wait_until


@pytest.fixture
def add(app):
    """A task, to be enqueued."""

    @app.task(name="add")
    async def add(a, b=0):
        return a + b

    return add


@pytest.mark.parametrize("key", ["taskq:{email}:", "{user1000}.following", "foo{}{bar}", "foo{{bar}}zap", "a", "a{b"])
def test_slots_are_those_of_the_server(shards, key):
    assert slot_of(key) == shards.all[0].client.execute_command("CLUSTER KEYSLOT", key)


def test_queues_of_every_shard(app, shards, add):
    """CONN-07: each script is known to none of the shards at first."""
    for shard in shards.all:
        shard.client.script_flush()
    jobs = [add.using(queue=queue).enqueue(1) for queue in QUEUES]
    assert {shards.of(keys.queue(app.settings.namespace, queue).prefix).port for queue in QUEUES} == {
        shard.port for shard in shards.all
    }
    assert [job.refresh().state for job in jobs] == ["available"] * len(jobs)
    assert [row["queue"] for row in app.inspector.queues()] == QUEUES
    page = app.inspector.jobs(state="available", limit=100)
    assert {row["id"] for row in page["data"]} == {job.id for job in jobs}
    assert [job.cancel() for job in jobs] == ["removed"] * len(jobs)


async def test_queues_of_every_shard_for_coroutines(app, shards, add):
    for shard in shards.all:
        shard.client.script_flush()
    jobs = await asyncio.gather(*(add.using(queue=queue).aenqueue(1) for queue in QUEUES))
    for job in jobs:
        await job.arefresh()
    assert {job.state for job in jobs} == {"available"}
    assert [row["queue"] for row in await app.inspector.aqueues()] == QUEUES
    await app.aclose()


def test_a_batch_over_all_shards(app, add):
    jobs = app.enqueue_many(add.using(queue=random.choice(QUEUES)).call(n) for n in range(2000))
    assert len({job.id for job in jobs}) == 2000
    counts = app.inspector.queues()
    assert sum(row["available"] for row in counts) == 2000
    again = app.enqueue_many([add.using(queue=queue, id="one").call(1) for queue in QUEUES])
    assert [job.created for job in again] == [True] * len(QUEUES)


async def test_a_batch_over_all_shards_for_coroutines(app, add):
    jobs = await app.aenqueue_many(add.using(queue=random.choice(QUEUES)).call(n) for n in range(2000))
    assert len(jobs) == 2000
    assert sum(row["available"] for row in await app.inspector.aqueues()) == 2000
    await app.aclose()


def test_the_script_cache_of_one_shard_is_emptied(app, shards, add):
    """CONN-06 for a cluster: single calls and batches."""
    for shard in shards.all:
        for _ in range(3):
            shard.client.script_flush()
            app.enqueue_many(add.using(queue=queue).call(1) for queue in QUEUES)
            shard.client.script_flush()
            for queue in QUEUES:
                add.using(queue=queue).enqueue(1)


def test_one_seed_is_enough(shards, namespace):
    """The others are found, also when another seed is nobody's."""
    port = shards.all[1].port
    app = TaskQ(f"redis+cluster://127.0.0.1:1,127.0.0.1:{port}", namespace=namespace)
    task = app.by_name("t", queue="q0")
    for queue in QUEUES:
        task.using(queue=queue).enqueue()
    assert app.ping()
    app.close()


def test_nobody_there(namespace):
    app = TaskQ("redis+cluster://127.0.0.1:1,127.0.0.1:2", namespace=namespace, deadline="300ms")
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1,127\.0\.0\.1:2"):
        app.ping()
    assert time.monotonic() - began < 2
    app.close()


def test_a_slot_that_moved_is_followed(app, shards, add):
    """MOVED, from a client that knows only where the slot was; and the script is new to that shard (CONN-07)."""
    q = keys.queue(app.settings.namespace, "q0")
    add.using(queue="q0").enqueue(1)
    source = shards.of(q.prefix)
    for to in (shards.other_than(source), source):
        to.client.script_flush()
        assert shards.move(slot_of(q.prefix), to) > 0
        add.using(queue="q0").enqueue(1)
        assert shards.of(q.prefix) is to
    assert app.inspector.counts("q0").available == 3


async def test_a_slot_that_moved_is_followed_by_coroutines_and_batches(app, shards, add):
    q = keys.queue(app.settings.namespace, "q0")
    await add.using(queue="q0").aenqueue(1)
    source = shards.of(q.prefix)
    for to in (shards.other_than(source), source):
        to.client.script_flush()
        await asyncio.to_thread(shards.move, slot_of(q.prefix), to)
        await app.aenqueue_many(add.using(queue=queue).call(n) for n in range(5) for queue in QUEUES)
    assert (await app.inspector.acounts("q0")).available == 11
    await app.aclose()


def test_a_queue_stands_still_while_its_slot_moves(app, shards, add):
    """Calls wait within their deadline: no script runs on half a keyspace, and none is refused because of it."""
    q = keys.queue(app.settings.namespace, "q0")
    jobs = app.enqueue_many(add.using(queue="q0").call(n) for n in range(100))
    source = shards.of(q.prefix)
    added = []
    with shards.moving(slot_of(q.prefix), shards.other_than(source)) as steps:
        next(steps)
        caller = threading.Thread(target=lambda: added.append(add.using(queue="q0").enqueue(1)))
        caller.start()
        hasty = TaskQ(shards.url, namespace=app.settings.namespace, deadline="200ms")
        with pytest.raises(Unavailable):
            hasty.by_name("add", queue="q0").enqueue(1)
        hasty.by_name("add", queue="q1").enqueue(1)  # other queues don't notice
        hasty.close()
        assert not added
    caller.join(5)
    assert len(added) == 1
    assert app.inspector.counts("q0").available == len(jobs) + 1
    shards.move(slot_of(q.prefix), source)


def test_a_new_queue_whose_slot_is_on_its_way(app, shards, add):
    """Nothing is there yet, so the shard says ASK; then it is the other that says TRYAGAIN."""
    q = keys.queue(app.settings.namespace, "q0")
    source = shards.of(q.prefix)
    with shards.moving(slot_of(q.prefix), shards.other_than(source)):
        hasty = TaskQ(shards.url, namespace=app.settings.namespace, deadline="200ms")
        with pytest.raises(Unavailable):
            hasty.by_name("add", queue="q0").enqueue(1)
        hasty.close()
    assert add.using(queue="q0").enqueue(1).created
    assert app.inspector.counts("q0").available == 1
    shards.move(slot_of(q.prefix), source)


async def test_a_cancelled_call_shifts_no_answer(app, add):
    """CONN-04 for a cluster."""
    ids = {queue: (await add.using(queue=queue, id="one").aenqueue(queue)).id for queue in QUEUES}

    async def look(queue):
        job = app.job(ids[queue])
        await job.arefresh()
        assert job.to_dict()["args"] == [queue]

    for _ in range(100):
        tasks = [asyncio.create_task(look(random.choice(QUEUES))) for _ in range(5)]
        await asyncio.sleep(random.uniform(0, 0.003))
        tasks[0].cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
    await app.aclose()


def test_a_fork_has_connections_of_its_own(app, add):
    add.using(queue="q0").enqueue(1)
    pid = os.fork()
    if not pid:
        try:
            for queue in QUEUES:
                add.using(queue=queue).enqueue(1)
            os._exit(0)
        finally:
            os._exit(1)
    for _ in range(50):
        add.using(queue="q0").enqueue(1)
    assert os.waitpid(pid, 0)[1] == 0


def test_results_are_heard_from_every_shard(app, shards, add, namespace):
    """By a message, not by looking again after 3 s; whichever shard the listener is at."""
    server = connection.connect(app.settings)
    for queue in QUEUES:
        job = add.using(queue=queue).enqueue(1)
        q, answer = keys.queue(namespace, queue), []
        waiter = threading.Thread(target=lambda job=job, answer=answer: answer.append(job.join(timeout=10)))
        waiter.start()
        wait_until(lambda q=q, job=job: b"waited" in shards.of(q.prefix).client.hgetall(q.job(job.id)))
        claim = connection.run(
            server, commands.claim(q, worker="w.1", request=1, lease_ms=8000, limit=1, free={"async": 1})
        )
        done = [commands.Done(each.id, each.epoch, b"") for each in claim.jobs]
        began = time.monotonic()
        assert connection.run(server, commands.complete(q, worker="w.1", done=done)) == ["ok"]
        waiter.join(10)
        assert answer == ["completed"]
        assert time.monotonic() - began < 1.5
    server.close()


async def test_results_are_heard_by_coroutines(app, shards, add, namespace):
    server = connection.connect_async(app.settings)
    for queue in QUEUES:
        job = await add.using(queue=queue).aenqueue(1)
        q = keys.queue(namespace, queue)
        waiter = asyncio.create_task(job.ajoin(timeout=10))
        await await_until(lambda q=q, job=job: b"waited" in shards.of(q.prefix).client.hgetall(q.job(job.id)))
        claim = await server.run(commands.claim(q, worker="w.1", request=1, lease_ms=8000, limit=1, free={"async": 1}))
        began = time.monotonic()
        await server.run(
            commands.complete(q, worker="w.1", done=[commands.Done(each.id, each.epoch, b"") for each in claim.jobs])
        )
        assert await waiter == "completed"
        assert time.monotonic() - began < 1.5
    await server.aclose()
    await app.aclose()


async def test_markers_of_several_shards_are_waited_for_at_once(app, add, namespace):
    """Each on a connection of its own; one is popped, another let go, the rest wait on."""
    server = connection.connect_async(app.settings)
    waits = {
        queue: asyncio.create_task(server.block([keys.queue(namespace, queue).wake("async")], 10)) for queue in QUEUES
    }
    await asyncio.sleep(0.2)
    assert not any(each.done() for each in waits.values())
    await add.using(queue="q3").aenqueue(1)
    assert await asyncio.wait_for(waits["q3"], 1) == keys.queue(namespace, "q3").wake("async")

    async def let_go():
        await server.unblock(keys.queue(namespace, "q5").wake("async"))
        return waits["q5"].done()

    await await_until(let_go, 1)
    assert waits["q5"].result() is None
    assert sum(each.done() for each in waits.values()) == 2
    for each in waits.values():
        each.cancel()
    await asyncio.gather(*waits.values(), return_exceptions=True)
    await server.aclose()
    await app.aclose()
