"""The registry under `{_}`: queues, nodes, tasks; short-lived but for the list of queues."""

from __future__ import annotations

import pytest

from taskq import commands, keys
from taskq.commands import Registered
from taskq.errors import LeadershipLost, NodeNotFound
from taskq.presence import STALE_MS
from tests.lua.keyspace import Keyspace
from tests.lua.room import T0


@pytest.fixture
def c(namespace):
    return keys.cluster(namespace)


@pytest.fixture
def registry(raw, c):
    return Keyspace(raw, c)


def enter(room, c, node="n", *, tasks=(), ttl_ms=5000, **more):
    known = more.pop("known", Registered(0, 0))
    fields = {"state": "active", **more}
    command = commands.register_node(c, node=node, ttl_ms=ttl_ms, fields=fields, tasks=tasks, known=known, now=room.now)
    return room.run(command)


def beat(room, c, node="n", *, tasks=(), ttl_ms=5000, **fields):
    room.run(commands.beat(c, node=node, ttl_ms=ttl_ms, fields=fields, tasks=tasks, now=room.now))


def lead(room, c, node="n"):
    """The term in which this node leads."""
    return room.run(commands.pulse(c, node=node, leads=True, ttl_ms=6_000, now=room.now)).term


def ids(room, c, **options):
    return [node["id"] for node in room.run(commands.nodes(c, now=room.now, **options)).nodes]


def test_a_queue_is_registered_once(room, c, registry):
    assert [room.run(commands.register_queue(c, name)) for name in ("b", "a", "b")] == [True, True, False]
    assert room.run(commands.queues(c)) == ["a", "b"]
    assert registry.dump() == {"queues": ["a", "b"]}


def test_registering_writes_the_node_and_its_tasks(room, c, registry):
    assert enter(room, c, tasks=[("mail.send", "email", "async")], hostname="h", pid=7) == (1, T0)
    assert registry.dump() == {
        "nodes": {"n": T0},
        "node:n": {
            "id": "n", "last_seen": str(T0), "hostname": "h", "pid": "7", "state": "active", "incarnation": "1",
            "created_at": str(T0),
        },
        "task:mail.send": {
            "queue": "email", "executor": "async", "options": "", "about": "", "node": "n", "last_seen": str(T0),
        },
    }  # fmt: skip
    assert registry.ttls.keys() == {"node:n", "task:mail.send"}
    assert 0 < registry.ttls["node:n"] <= 5000


def test_a_beat_says_what_has_changed(room, c, registry):
    enter(room, c, pid=7, ttl_ms=2_000)
    room.now += 10_000
    beat(room, c, state="draining", tasks=[("mail.send", "email", "async")])
    dump = registry.dump()
    assert dump["nodes"] == {"n": room.now}
    assert dump["node:n"] == {
        "id": "n", "last_seen": str(room.now), "pid": "7", "state": "draining", "incarnation": "1",
        "created_at": str(T0),
    }  # fmt: skip
    assert dump["task:mail.send"]["queue"] == "email"
    assert registry.ttls["node:n"] > 2_000, "it stays as long again"


def test_a_beat_of_a_node_that_is_not_known_writes_nothing(room, c, registry):
    with pytest.raises(NodeNotFound, match="node n is not registered"):
        beat(room, c, tasks=[("mail.send", "email", "async")])
    assert registry.dump() == {}


def test_a_node_that_was_taken_for_dead_registers_again_and_keeps_its_birth(room, c, registry):
    enter(room, c, old="field")
    room.now += 30_001
    assert room.run(commands.mark_dead(c, node="leader", term=lead(room, c, "leader"), now=room.now)) == ["n"]
    before = registry.dump()
    with pytest.raises(NodeNotFound, match="node n is taken for dead"):
        beat(room, c)
    assert registry.dump() == before
    assert enter(room, c) == (2, T0)
    beat(room, c)
    assert registry.dump()["node:n"] == {
        "id": "n", "last_seen": str(room.now), "state": "active", "incarnation": "2", "created_at": str(T0),
    }  # fmt: skip


def test_a_node_whose_record_was_lost_remembers_what_it_was(room, c, raw):
    known = enter(room, c)
    raw.delete(c.node("n"), c.fixed("nodes"))
    room.now += 5_000
    assert enter(room, c, known=known) == (2, T0)
    assert enter(room, c) == (3, T0), "an answer that was lost costs an incarnation and nothing else"


@pytest.mark.parametrize("field", ["incarnation", "created_at"])
@pytest.mark.parametrize("junk", ["", "-5", "x", "9" * 16])
def test_a_damaged_record_is_registered_over(room, c, raw, field, junk):
    enter(room, c)
    raw.hset(c.node("n"), field, junk)
    incarnation, created_at_ms = enter(room, c, known=Registered(1, T0))
    assert incarnation == 2
    assert created_at_ms == T0


def test_nodes_that_live_are_those_whose_last_beat_is_younger_than_30_s(room, c):
    enter(room, c, "b")
    room.now += 30_000
    enter(room, c, "a")
    assert ids(room, c) == ["a", "b"]
    room.now += 1
    assert ids(room, c) == ["a"]
    assert ids(room, c, every=True) == ["a", "b"]
    assert ids(room, c, node="b") == ["b"]
    assert ids(room, c, node="nobody") == []


def test_nodes_come_in_pages(room, c):
    for n in range(5):
        room.now -= 1
        enter(room, c, f"n{n}")
    page = room.run(commands.nodes(c, limit=2, offset=1, now=room.now))
    assert (page.total, page.now_ms) == (5, room.now)
    assert [node["id"] for node in page.nodes] == ["n1", "n2"]
    assert ids(room, c, limit=2, offset=4) == ["n4"]
    assert ids(room, c, limit=2, offset=5) == []


def test_a_node_whose_record_has_gone_is_left_out(room, c, raw):
    enter(room, c, "a")
    raw.delete(c.node("a"))
    assert ids(room, c) == []


def test_a_node_takes_its_leave(room, c, registry):
    enter(room, c)
    assert [room.run(commands.depart(c, "n")) for _ in range(2)] == [True, False]
    assert registry.dump() == {}
    with pytest.raises(NodeNotFound):
        beat(room, c)
    assert registry.dump() == {}, "a beat that comes late brings nobody back"


# --- the dead


def test_the_leader_marks_the_dead_once_and_touches_nothing_else(room, c, registry):
    room.held("a", worker="old.1")
    enter(room, c, "old")
    room.now += 30_000
    enter(room, c, "new")
    term = lead(room, c, "new")
    mark = {"node": "new", "term": term}
    assert room.run(commands.mark_dead(c, now=room.now, **mark)) == []
    room.now += 1
    room.look()
    assert room.run(commands.mark_dead(c, now=room.now, **mark)) == ["old"]
    assert room.run(commands.mark_dead(c, now=room.now, **mark)) == []
    assert registry.dump()["node:old"]["state"] == "dead"
    assert registry.dump()["node:new"]["state"] == "active"
    assert room.changed() == {}, "no lease, no job"


def test_who_does_not_lead_marks_nobody(room, c, registry):
    enter(room, c, "old")
    term = lead(room, c, "first")
    room.now += 31_000
    later = lead(room, c, "second")
    before = registry.dump()
    for node, wrong in (("first", term), ("first", later), ("second", term), ("third", later)):
        with pytest.raises(LeadershipLost):
            room.run(commands.mark_dead(c, node=node, term=wrong, now=room.now))
    assert registry.dump() == before
    assert room.run(commands.mark_dead(c, node="second", term=later, now=room.now)) == ["old"]


def test_the_long_silent_are_forgotten(room, c, registry):
    enter(room, c, "old", ttl_ms=600_000)
    room.now += 1
    enter(room, c, "younger", ttl_ms=600_000)
    room.now += 300_000 - 1
    assert room.run(commands.forget_nodes(c, now=room.now)) == 0
    room.now += 1
    assert room.run(commands.forget_nodes(c, now=room.now)) == 1
    assert registry.dump().keys() == {"nodes", "node:younger"}


def test_those_from_the_future_are_forgotten_too(room, c, registry):
    """The server's clock went back by an hour: the dead would seem to live for that long."""
    enter(room, c, "dead")
    room.now -= 3_600_000
    enter(room, c, "alive")
    assert room.run(commands.forget_nodes(c, now=room.now)) == 1
    assert registry.dump()["nodes"] == {"alive": room.now}


def test_they_are_forgotten_in_bounded_steps(room, c, registry, raw):
    for n in range(5):
        enter(room, c, f"n{n}")
    raw.zadd(c.fixed("nodes"), {"without-a-record": 1})
    room.now += STALE_MS + 1
    assert [room.run(commands.forget_nodes(c, limit=4, now=room.now)) for _ in range(3)] == [4, 2, 0]
    assert registry.dump() == {}


def test_a_minute_of_silence_of_everybody_ends_in_a_correct_registry(room, c, registry):
    """All were paused, or the server was away: whoever leads first may call the others dead; each registers again."""
    for node in ("a", "b", "c"):
        enter(room, c, node)
    room.now += 61_000
    marked = room.run(commands.mark_dead(c, node="a", term=lead(room, c, "a"), now=room.now))
    assert marked == ["a", "b", "c"]
    for node in ("a", "b", "c"):
        with pytest.raises(NodeNotFound):
            beat(room, c, node)
        assert enter(room, c, node, known=Registered(1, T0)) == (2, T0)
    assert ids(room, c) == ["a", "b", "c"]
    assert {registry.dump()[f"node:{node}"]["state"] for node in "abc"} == {"active"}


# --- tasks


def test_what_is_known_of_a_task(room, c):
    assert room.run(commands.task_info(c, "mail.send")) is None
    enter(room, c, tasks=[("mail.send", "email", "thread", '{"max_attempts":1}')])
    info = room.run(commands.task_info(c, "mail.send", now=room.now + 5))
    assert info == {
        "queue": "email",
        "executor": "thread",
        "options": '{"max_attempts":1}',
        "about": "",
        "node": "n",
        "last_seen": str(T0),
        "now": str(T0 + 5),
    }


def test_of_two_queues_the_first_by_name_stands_whoever_beats_last(room, c):
    def where():
        info = room.run(commands.task_info(c, "mail.send", now=room.now))
        return info["queue"], info.get("also"), info.get("also_seen"), info["node"]

    enter(room, c, "b", tasks=[("mail.send", "other", "async")])
    assert where() == ("other", None, None, "b")
    enter(room, c, "a", tasks=[("mail.send", "email", "async")])
    assert where() == ("email", "other", str(T0), "a")
    room.now += 1000
    for node, queue in (("b", "other"), ("a2", "email")):
        enter(room, c, node, tasks=[("mail.send", queue, "async")])
    assert where() == ("email", "other", str(T0 + 1000), "a2")
    enter(room, c, "a2", tasks=[("mail.send", "zmail", "async")])
    assert where()[0] == "zmail", "a node's own word is replaced by its next"
    room.run(commands.depart(c, "a2"))
    enter(room, c, "b", tasks=[("mail.send", "zz", "async")])
    assert where()[0] == "zz", "nobody lives who would say otherwise"


def test_the_executors_of_tasks_are_told_to_their_queue(room):
    room.look()
    assert room.do(commands.declare, kinds={"t": "thread", "u": "async"}, retention={}).version == 0
    assert room.changed() == {"kinds t": "thread", "kinds u": "async"}
    room.add("a")
    assert room.do(commands.declare, kinds={"t": "async"}, retention={}).version == 1
    assert room.job()["class"] == "thread", "a job that waits is moved when it is found in the wrong class"


def test_limits_in_code_are_taken_in_but_for_what_an_operator_set(room):
    limits = room.q.fixed("limits")
    room.client.hset(limits, mapping={"op:crm": "c=1", "old": "c=9", "crm": "c=5"})
    said = {"crm": "c=2", "new": "c=3 r=10/1000/1"}
    at = f" at={room.now}".encode()
    room.do(commands.declare, kinds={"t": "async"}, retention={"max_failed": 7}, limits=said)
    assert room.client.hgetall(limits) == {
        b"op:crm": b"c=1", b"old": b"c=9", b"new": b"c=3 r=10/1000/1" + at, b"crm": b"c=2" + at,
    }  # fmt: skip
    assert room.client.hgetall(room.q.fixed("kinds")) == {b"t": b"async"}
