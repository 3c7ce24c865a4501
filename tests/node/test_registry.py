"""What a node says of itself, and how often."""

import json
import os

import pytest

from taskq import commands, keys
from taskq.errors import Unavailable
from taskq.node import registry as registry_module
from taskq.node.channel import Hello
from taskq.node.options import NodeOptions
from taskq.node.queues import Queues
from taskq.node.registry import EVERY_S, Registry, record

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

    def __call__(self):
        return self.hello


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def registry(ground, settings, source):
    return Registry(ground.queues(), settings, "host-1-abc", NodeOptions(), hello=source, workers=lambda: 2)


def test_the_record_is_readable_text():
    fields = record(HELLO, NodeOptions(concurrency=7), 2)
    assert json.loads(fields["queues"]) == ["email", "default"]
    assert json.loads(fields["tasks"]) == ["clean", "mail.read", "mail.send"]
    assert (fields["pid"], fields["workers"], fields["concurrency"]) == (os.getpid(), 2, 7)


async def test_before_the_hello_it_says_nothing(ground, registry):
    assert await registry.step() == EVERY_S
    assert await ground.do(commands.nodes(keys.cluster(ground.namespace))) == []


async def test_a_beat_shows_the_node_its_queues_and_its_tasks(ground, registry, source):
    source.hello = HELLO
    await registry.step()
    cluster = keys.cluster(ground.namespace)
    (node,) = await ground.do(commands.nodes(cluster))
    assert node["id"] == "host-1-abc"
    assert int(node["last_seen"]) > 0
    assert await ground.do(commands.queues(cluster)) == ["default", "email"]
    info = await ground.do(commands.task_info(cluster, "mail.read"))
    assert (info["queue"], info["executor"], info["options"], info["node"]) == ("email", "thread", "", "host-1-abc")
    told = await ground.do(commands.task_info(cluster, "mail.send"))
    assert json.loads(told["options"]) == {"max_attempts": 1}


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


async def test_what_was_declared_is_not_said_at_every_beat(ground, registry, source, monkeypatch):
    source.hello = HELLO
    await registry.step()
    ground.raw.delete(keys.queue(ground.namespace, "email").fixed("kinds"))
    await registry.step()
    assert not ground.raw.exists(keys.queue(ground.namespace, "email").fixed("kinds"))
    monkeypatch.setattr(registry_module, "DECLARE_S", 0)
    await registry.step()
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


async def test_departing_takes_the_record_away(ground, registry, source):
    source.hello = HELLO
    await registry.step()
    await registry.depart()
    cluster = keys.cluster(ground.namespace)
    assert await ground.do(commands.nodes(cluster)) == []
    assert not ground.raw.exists(cluster.node("host-1-abc"))
