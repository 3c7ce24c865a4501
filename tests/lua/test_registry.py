"""The registry under `{_}`: queues, nodes, tasks; short-lived but for the list of queues."""

from __future__ import annotations

import pytest

from taskq import commands, keys
from tests.lua.keyspace import Keyspace
from tests.lua.room import T0


@pytest.fixture
def c(namespace):
    return keys.cluster(namespace)


@pytest.fixture
def registry(raw, c):
    return Keyspace(raw, c)


def beat(room, c, node="n", *, tasks=(), ttl_ms=5000, **fields):
    room.run(commands.beat(c, node=node, ttl_ms=ttl_ms, fields=fields, tasks=tasks, now=room.now))


def test_a_queue_is_registered_once(room, c, registry):
    assert [room.run(commands.register_queue(c, name)) for name in ("b", "a", "b")] == [True, True, False]
    assert room.run(commands.queues(c)) == ["a", "b"]
    assert registry.dump() == {"queues": ["a", "b"]}


def test_a_beat_writes_the_node_and_its_tasks(room, c, registry):
    beat(room, c, tasks=[("mail.send", "email", "async")], hostname="h", pid=7)
    assert registry.dump() == {
        "nodes": {"n": T0},
        "node:n": {"id": "n", "last_seen": str(T0), "hostname": "h", "pid": "7"},
        "task:mail.send": {
            "queue": "email", "executor": "async", "options": "", "node": "n", "last_seen": str(T0),
        },
    }  # fmt: skip
    assert registry.ttls.keys() == {"node:n", "task:mail.send"}
    assert 0 < registry.ttls["node:n"] <= 5000


def test_a_node_that_says_nothing_any_more_is_forgotten(room, c, registry):
    beat(room, c, "old")
    room.now += 5001
    assert [node["id"] for node in room.run(commands.nodes(c, now=room.now))] == ["old"]
    beat(room, c, "new")
    assert registry.dump()["nodes"] == {"new": room.now}


def test_nodes_are_those_that_beat_within_a_time(room, c):
    beat(room, c, "a")
    room.now += 1000
    beat(room, c, "b")
    assert [node["id"] for node in room.run(commands.nodes(c, within_ms=1000, now=room.now))] == ["a", "b"]
    assert [node["id"] for node in room.run(commands.nodes(c, within_ms=999, now=room.now))] == ["b"]


def test_a_node_whose_record_has_gone_is_left_out(room, c, raw):
    beat(room, c, "a")
    raw.delete(c.node("a"))
    assert room.run(commands.nodes(c, now=room.now)) == []


def test_a_node_takes_its_leave(room, c, registry):
    beat(room, c)
    assert [room.run(commands.depart(c, "n")) for _ in range(2)] == [True, False]
    assert registry.dump() == {}


def test_what_is_known_of_a_task(room, c):
    assert room.run(commands.task_info(c, "mail.send")) is None
    beat(room, c, tasks=[("mail.send", "email", "thread", '{"max_attempts":1}')])
    info = room.run(commands.task_info(c, "mail.send", now=room.now + 5))
    assert info == {
        "queue": "email",
        "executor": "thread",
        "options": '{"max_attempts":1}',
        "node": "n",
        "last_seen": str(T0),
        "now": str(T0 + 5),
    }


def test_of_two_queues_the_first_by_name_stands_whoever_beats_last(room, c):
    def where():
        info = room.run(commands.task_info(c, "mail.send", now=room.now))
        return info["queue"], info.get("also"), info.get("also_seen"), info["node"]

    beat(room, c, "b", tasks=[("mail.send", "other", "async")])
    assert where() == ("other", None, None, "b")
    beat(room, c, "a", tasks=[("mail.send", "email", "async")])
    assert where() == ("email", "other", str(T0), "a")
    room.now += 1000
    for node, queue in (("b", "other"), ("a2", "email")):
        beat(room, c, node, tasks=[("mail.send", queue, "async")])
    assert where() == ("email", "other", str(T0 + 1000), "a2")
    beat(room, c, "a2", tasks=[("mail.send", "zmail", "async")])
    assert where()[0] == "zmail", "a node's own word is replaced by its next"
    room.run(commands.depart(c, "a2"))
    beat(room, c, "b", tasks=[("mail.send", "zz", "async")])
    assert where()[0] == "zz", "nobody lives who would say otherwise"


def test_the_executors_of_tasks_are_told_to_their_queue(room):
    room.look()
    assert room.do(commands.declare, kinds={"t": "thread", "u": "async"}, retention={}) == 0
    assert room.changed() == {"kinds t": "thread", "kinds u": "async"}
    room.add("a")
    assert room.do(commands.declare, kinds={"t": "async"}, retention={}) == 1
    assert room.job()["class"] == "thread", "a job that waits is moved when it is found in the wrong class"
