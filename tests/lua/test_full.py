"""A server at maxmemory (guarantee 11): enqueue is refused, whole; everything that empties it goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import ANY

import pytest

from taskq import commands, connection, keys
from taskq.errors import ServerFull
from tests.lua.keyspace import Keyspace
from tests.lua.room import Room, new
from tests.lua.test_calls import COSTS
from tests.lua.test_cancel import seed

# What adds jobs is refused, whole: it stays due, or on its way.
REFUSED = {"bind", "enqueue", "fire", "run_schedule", "receive"}


@contextmanager
def full(client):
    client.config_set("maxmemory", 1)
    try:
        yield
    finally:
        client.config_set("maxmemory", 0)


def effect(raw, q, name, circumstances):
    """What a call answers, and all that stands on the server after it."""
    raw.flushall()
    room = Room(raw, q)
    build: Callable[..., Any] = COSTS[name][2]
    command = build(room, 3)
    with circumstances:
        reply = room.run(command)
    return reply, room.keyspace.dump(), Keyspace(raw, keys.cluster(q.namespace)).dump()


@pytest.mark.parametrize("name", [name for name in COSTS if name not in REFUSED])
def test_every_other_script_does_its_work(raw, q, name):
    """The same call has the same effect as on a server with room to spare."""
    reply, queue, registry = effect(raw, q, name, nullcontext())
    assert effect(raw, q, name, full(raw)) == (_late(reply, name), queue, registry)


def _late(reply, name):
    """Some show the stream ids of the two servers; they differ."""
    return (
        reply
        if not name.startswith(("claim", "fetch", "members", "outbox", "peek", "pulse", "survey_jobs", "wait"))
        else ANY
    )


@pytest.mark.parametrize("due", ["", "+5"])
def test_enqueue_is_refused_and_nothing_was_added(room, run, due):
    room.add("a")
    room.look()
    with full(room.client), pytest.raises(ServerFull, match="maxmemory"):
        run(commands.enqueue(room.q, [new("b", due=due), new("c")], now=room.now))
    assert room.changed() == {}


def test_a_call_that_would_replace_a_job_is_refused_too(room, run):
    once = "t:k finished replace"
    room.add("a", once=once, payload=b"1", due="+50")
    room.look()
    with full(room.client), pytest.raises(ServerFull, match="maxmemory"):
        run(commands.enqueue(room.q, [new("b", once=once, payload=b"2"), new("c")], now=room.now))
    assert room.changed() == {}


def test_a_repeated_enqueue_is_answered_even_then(room, run):
    jobs = [new("a", token="x")]
    first = run(commands.enqueue(room.q, jobs, now=room.now))
    with full(room.client):
        assert run(commands.enqueue(room.q, jobs, now=room.now)) == first


async def test_the_async_face_says_the_same(room, settings):
    server = connection.connect_async(settings)
    with full(room.client), pytest.raises(ServerFull):
        await connection.run_async(server, commands.enqueue(room.q, [new("a")]))
    await server.aclose()


def test_the_queue_drains_to_the_end(room):
    """Claimed, failed, retried, cancelled, completed and pruned, without a byte to spare."""
    for state in ("scheduled", "running", "retryable", "failed", "cancelled", "available"):
        seed(room, state, state)
    running = int(room.job("running")["epoch"])
    with full(room.client):
        room.do(commands.pause)
        room.do(commands.resume)
        done = [commands.Done("default:running", running, b"r")]
        assert room.do(commands.complete, worker="n.1", done=done) == ["ok"]
        assert room.do(commands.retry, ["default:failed"]) == ["available"]
        room.now += 1000
        assert room.do(commands.promote) == 2
        jobs = room.claim("n.2")
        assert len(jobs) == 4
        failures = [commands.Failure(job.id, job.epoch, "retry", 0, '{"type":"E"}', "x") for job in jobs]
        room.do(commands.fail, worker="n.2", failures=failures)
        jobs = room.claim("n.3")
        done = [commands.Done(job.id, job.epoch, b"r" * 1000) for job in jobs]
        assert room.do(commands.complete, worker="n.3", done=done) == ["ok"] * 4
        room.now += 10**10
        while room.do(commands.prune):
            pass
    assert not [name for name in room.keyspace.dump() if name.startswith("job:")]
