"""What a node says of itself, and how often."""

import asyncio
import dataclasses
import json
import os
import re
import socket
import time

import pytest

from taskq import commands, keys
from taskq.errors import Unavailable
from taskq.node import registry as registry_module
from taskq.node.channel import Hello
from taskq.node.doings import doings, identity
from taskq.node.options import NodeOptions
from taskq.node.queues import Queues
from taskq.node.registry import LOOK_S, Registry

HELLO = Hello(
    {},
    ["email", "default"],
    {
        "mail.send": {"queue": "email", "executor": "async", "backoff": None, "options": {"max_attempts": 1}},
        "mail.read": {"queue": "email", "executor": "thread", "backoff": None},
        "clean": {"queue": "default", "executor": "async", "backoff": None},
    },
    "0.1.0",
)


class Source:
    """Where the registry gets its hello from."""

    hello = None
    state = "active"

    def __call__(self):
        return self.hello

    def doings(self):
        return doings([], state=self.state, workers=2, concurrency={"async": 7})


@pytest.fixture
def again(registry):
    """Steps at once, whatever the time is."""

    async def again():
        registry.soon()
        return await registry.step()

    return again


@pytest.fixture
def nodes(ground):
    """All the nodes that are known, as they are stored."""

    async def nodes():
        return (await ground.do(commands.nodes(keys.cluster(ground.namespace), every=True))).nodes

    return nodes


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def registry(ground, settings, source):
    return Registry(ground.queues(), settings, "host-1-abc", NodeOptions(), hello=source, doings=source.doings)


def test_the_record_is_readable_text():
    options = NodeOptions(labels={"zone": "a"}, capacity={"gpu": 2}, metadata={"by": "me"}, health_port=8_000)
    fields = identity(HELLO, options)
    assert re.fullmatch(r"[0-9.]{7,15}", fields.pop("host"))
    assert fields == {
        "hostname": socket.gethostname(), "port": 8_000, "pid": os.getpid(), "version": "0.1.0",
        "queues": '["email","default"]', "tasks": '["clean","mail.read","mail.send"]',
        "capacity": '{"gpu":2}', "labels": '{"zone":"a"}', "metadata": '{"by":"me"}',
    }  # fmt: skip
    assert identity(HELLO, NodeOptions())["port"] == ""


async def test_before_the_hello_it_says_nothing(registry, nodes):
    assert await registry.step() == LOOK_S
    assert await nodes() == []


async def test_a_beat_shows_the_node_its_queues_and_its_tasks(ground, registry, source, nodes):
    source.hello = HELLO
    await registry.step()
    cluster = keys.cluster(ground.namespace)
    (node,) = await nodes()
    assert node["id"] == "host-1-abc"
    assert abs(int(node["last_seen"]) - time.time() * 1000) < 60_000
    assert node.keys() == {
        "id", "hostname", "host", "port", "pid", "version", "queues", "tasks", "capacity", "labels", "metadata",
        "state", "workers", "concurrency", "stats", "incarnation", "created_at", "last_seen",
    }  # fmt: skip
    told = [node[name] for name in ("hostname", "pid", "version", "state", "workers", "concurrency", "incarnation")]
    assert told == [socket.gethostname(), str(os.getpid()), "0.1.0", "active", "2", '{"async":7}', "1"]
    assert await ground.do(commands.queues(cluster)) == ["default", "email"]
    info = await ground.do(commands.task_info(cluster, "mail.read"))
    assert (info["queue"], info["executor"], info["options"], info["node"]) == ("email", "thread", "", "host-1-abc")
    told = await ground.do(commands.task_info(cluster, "mail.send"))
    assert json.loads(told["options"]) == {"max_attempts": 1}


async def test_limits_go_to_their_queues(ground, registry, source):
    source.hello = dataclasses.replace(HELLO, limits={"email": {"crm": "c=2 r=10/1000/1"}, "elsewhere": {"x": "c=1"}})
    await registry.step()
    (told,) = ground.raw.hgetall(keys.queue(ground.namespace, "email").fixed("limits")).items()
    assert (told[0], told[1].partition(b" at=")[0]) == (b"crm", b"c=2 r=10/1000/1")
    assert not ground.raw.exists(keys.queue(ground.namespace, "default").fixed("limits"))


async def test_so_do_those_of_schedules_whose_queue_it_does_not_serve(ground, registry, source):
    """Nobody enqueues their jobs, so no producer says them; the rest of such a queue is not this node's."""
    fires = ["nightly", "", "skip", "far", "clean", ""]
    limits = {"far": {"x": "c=1"}, "elsewhere": {"y": "c=1"}}
    source.hello = dataclasses.replace(HELLO, schedules=[fires], limits=limits)
    await registry.step()
    q = keys.queue(ground.namespace, "far")
    assert ground.raw.hget(q.fixed("limits"), "x").startswith(b"c=1 at=")
    assert not ground.raw.exists(q.fixed("kinds"), q.fixed("meta"))
    assert not ground.raw.exists(keys.queue(ground.namespace, "elsewhere").fixed("limits"))


async def test_a_queues_kinds_are_those_of_its_own_tasks(ground, registry, source):
    source.hello = HELLO
    await registry.step()
    email = keys.queue(ground.namespace, "email")
    assert ground.raw.hgetall(email.fixed("kinds")) == {b"mail.send": b"async", b"mail.read": b"thread"}
    assert ground.raw.hget(email.fixed("meta"), "keep_completed") == b"86400000"


async def test_a_task_that_a_later_worker_knows_is_said_at_the_next_beat(ground, registry, source):
    source.hello = HELLO
    await registry.step()
    source.hello = Hello({}, ["default"], {"new": {"queue": "default", "executor": "async"}}, "0.1.0")
    await registry.step()
    assert await ground.do(commands.task_info(keys.cluster(ground.namespace), "new"))


async def test_a_beat_comes_every_10_s_and_at_a_change(ground, registry, source, nodes, monkeypatch):
    source.hello, clock = HELLO, [100.0]
    monkeypatch.setattr(registry_module.time, "monotonic", lambda: clock[0])
    await registry.step()
    (first,) = await nodes()
    source.state = "draining"
    clock[0] += 9.99
    await registry.step()
    assert await nodes() == [first]
    clock[0] += 0.01
    await registry.step()
    (node,) = await nodes()
    assert node["state"] == "draining"
    assert int(node["last_seen"]) > int(first["last_seen"])
    source.state = "active"
    registry.soon()
    await registry.step()
    (node,) = await nodes()
    assert node["state"] == "active"
    assert (node["incarnation"], node["created_at"]) == ("1", first["created_at"])


@pytest.mark.parametrize("how", ["lost", "dead", "emptied"])
async def test_a_node_that_is_known_no_more_registers_again(ground, source, nodes, again, how):
    source.hello = HELLO
    await again()
    (first,) = await nodes()
    cluster = keys.cluster(ground.namespace)
    if how == "dead":
        ground.raw.hset(cluster.node("host-1-abc"), "state", "dead")
    elif how == "lost":
        ground.raw.delete(cluster.node("host-1-abc"))
    else:
        ground.raw.flushdb()
    await again()
    (node,) = await nodes()
    assert (node["state"], node["incarnation"], node["created_at"]) == ("active", "2", first["created_at"])
    assert node["queues"] == first["queues"]
    await again()
    (node,) = await nodes()
    assert node["incarnation"] == "2"


async def test_what_went_with_a_lost_record_is_said_again_at_once(ground, registry, source, again, monkeypatch):
    source.hello, told = HELLO, []
    monkeypatch.setattr(registry, "_lost", lambda: told.append("lost"))
    await again()
    assert told == []
    ground.raw.flushdb()
    await again()
    assert told == ["lost"]
    assert ground.raw.exists(keys.queue(ground.namespace, "email").fixed("kinds"))
    assert await ground.do(commands.queues(keys.cluster(ground.namespace))) == ["default", "email"]
    assert (await ground.do(commands.task_info(keys.cluster(ground.namespace), "clean")))["queue"] == "default"


async def test_at_its_start_the_long_silent_are_forgotten(ground, registry, source, nodes):
    old = commands.register_node(
        keys.cluster(ground.namespace), node="old", ttl_ms=600_000, fields={}, now=int(time.time() * 1000) - 301_000
    )
    await ground.do(old)
    source.hello = HELLO
    await registry.step()
    assert [node["id"] for node in await nodes()] == ["host-1-abc"]


async def test_a_leave_waits_for_a_registration_under_way(ground, registry, source, nodes, monkeypatch):
    source.hello, run, sent = HELLO, Queues.run, asyncio.Event()

    async def slow(queues, command, **options):
        if command.script.name == "register_node":
            sent.set()
            await asyncio.sleep(0.2)
        return await run(queues, command, **options)

    monkeypatch.setattr(Queues, "run", slow)
    step = asyncio.create_task(registry.step())
    await sent.wait()
    step.cancel()
    await registry.depart()
    assert await nodes() == []


async def test_what_was_declared_is_not_said_at_every_beat(ground, registry, source, again, monkeypatch):
    source.hello = HELLO
    await registry.step()
    ground.raw.delete(keys.queue(ground.namespace, "email").fixed("kinds"))
    await again()
    assert not ground.raw.exists(keys.queue(ground.namespace, "email").fixed("kinds"))
    monkeypatch.setattr(registry_module, "DECLARE_S", 0)
    await again()
    assert ground.raw.exists(keys.queue(ground.namespace, "email").fixed("kinds"))


async def test_a_queue_that_is_away_keeps_nothing_else_from_being_said_once(ground, registry, source, monkeypatch):
    source.hello, said, run, away = HELLO, [], Queues.run, [keys.queue(ground.namespace, "email").prefix]

    async def saying(queues, command, **options):
        if command.keys[0] in away:
            raise Unavailable("its shard is away")
        said.append(command.script.name)
        return await run(queues, command, **options)

    monkeypatch.setattr(Queues, "run", saying)
    with pytest.raises(Unavailable):
        await registry.step()
    cluster = keys.cluster(ground.namespace)
    assert await ground.do(commands.queues(cluster)) == ["default", "email"]
    assert ground.raw.exists(keys.queue(ground.namespace, "default").fixed("kinds"))
    assert await ground.do(commands.task_info(cluster, "mail.read"))
    said.clear()
    away.clear()
    await registry.step()
    assert said == ["beat", "declare"]
    assert ground.raw.exists(keys.queue(ground.namespace, "email").fixed("kinds"))


async def test_a_thousand_tasks(ground, registry, source):
    source.hello = Hello({}, ["q"], {f"t{n}": {"queue": "q", "executor": "async"} for n in range(1_000)}, "0.1.0")
    await registry.step()
    assert ground.raw.hlen(keys.queue(ground.namespace, "q").fixed("kinds")) == 1_000


async def test_departing_takes_the_record_away(ground, registry, source, nodes):
    source.hello = HELLO
    await registry.step()
    await registry.depart()
    cluster = keys.cluster(ground.namespace)
    assert await nodes() == []
    assert not ground.raw.exists(cluster.node("host-1-abc"))


async def test_a_node_says_once_that_later_code_says_otherwise_of_a_limit(ground, registry, source, lines, monkeypatch):
    """And its numbers stay as the later code has them, each minute that it says its own again."""
    q = keys.queue(ground.namespace, "email")
    source.hello, clock = dataclasses.replace(HELLO, limits={"email": {"crm": "c=1"}}), [100.0]
    monkeypatch.setattr(registry_module.time, "monotonic", lambda: clock[0])
    await registry.step()
    await ground.do(commands.declare(q, kinds={}, retention={}, limits={"crm": "c=3"}))
    for _ in range(3):
        clock[0] += 61
        await registry.step()
        assert ground.raw.hget(q.fixed("limits"), "crm").startswith(b"c=3 ")
    said = [each for each in lines if "another version of the code" in each["event"]]
    assert [(each["limit"], each["here"], each["there"]) for each in said] == [("crm", "c=1", "c=3")]
