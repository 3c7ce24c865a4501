"""`app.nodes`: sync and async, without a node."""

from __future__ import annotations

import time

import pytest

from taskq import commands, keys
from taskq.errors import NodeNotFound
from taskq.presence import health, node_shown


@pytest.fixture
def enter(run, namespace):
    """`enter("n", silent_ms=...)` registers a node."""

    def enter(node="n", silent_ms=0, **fields):
        now = int(time.time() * 1000) - silent_ms
        c = keys.cluster(namespace)
        return run(commands.register_node(c, node=node, ttl_ms=60_000, fields={"state": "active", **fields}, now=now))

    return enter


@pytest.fixture
def orders(run, namespace):
    """What nodes were told."""

    def orders():
        told = run(commands.pulse(keys.cluster(namespace), node="n", leads=False, ttl_ms=6_000)).orders
        return [(order.verb, order.to, order.more) for order in told]

    return orders


@pytest.mark.parametrize("verb", ["drain", "resume", "stop"])
async def test_an_order_is_for_a_node_that_lives(app, enter, orders, verb):
    enter()
    enter("old", silent_ms=31_000)
    getattr(app.nodes, verb)("n")
    await getattr(app.nodes, f"a{verb}")("*")
    assert orders() == [(verb, "n", ""), (verb, "*", "")]
    for wrong in ("old", "nobody", ""):
        with pytest.raises(NodeNotFound, match=f"no live node '{wrong}'"):
            getattr(app.nodes, verb)(wrong)
        with pytest.raises(NodeNotFound):
            await getattr(app.nodes, f"a{verb}")(wrong)
    assert len(orders()) == 2
    await app.aclose()


@pytest.mark.parametrize("verb", ["drain", "resume", "stop", "scale"])
async def test_where_no_node_lives_nobody_can_be_told(app, enter, orders, verb):
    enter("old", silent_ms=31_000)
    how = {"workers": 2} if verb == "scale" else {}
    with pytest.raises(NodeNotFound, match=r"^no node lives: see `taskq node list --all`$"):
        getattr(app.nodes, verb)("*", **how)
    with pytest.raises(NodeNotFound, match=r"^no node lives"):
        await getattr(app.nodes, f"a{verb}")("*", **how)
    assert orders() == []
    await app.aclose()


async def test_scaling_says_what_shall_be(app, enter, orders):
    enter()
    app.nodes.scale("n", workers=3)
    await app.nodes.ascale("*", slots=0, workers=1)
    assert orders() == [("scale", "n", '{"workers": 3}'), ("scale", "*", '{"workers": 1, "slots": 0}')]
    app.nodes.scale("n", workers=(2, 8))
    assert orders()[-1] == ("scale", "n", '{"workers": [2, 8]}')
    numbers = ({}, {"workers": 0}, {"workers": 1_001}, {"slots": -1}, {"slots": 10_001})
    for wrong in (*numbers, {"workers": (0, 2)}, {"workers": (3, 2)}, {"workers": (2,)}):
        with pytest.raises(ValueError, match=next(iter(wrong), "give workers=")):
            app.nodes.scale("n", **wrong)
    for wrong in ({"workers": "2"}, {"workers": True}, {"workers": ("2", 3)}, {"slots": 1.5}):
        with pytest.raises(TypeError, match=f"{next(iter(wrong))}=.* is no whole number"):
            app.nodes.scale("n", **wrong)
    with pytest.raises(NodeNotFound, match="no live node 'nobody'"):
        app.nodes.scale("nobody", workers=2)
    with pytest.raises(NodeNotFound, match="no live node 'nobody'"):
        await app.nodes.ascale("nobody", workers=2)
    assert len(orders()) == 3
    await app.aclose()


async def test_no_id_is_nobody_and_not_the_first_node(app, enter):
    enter()
    with pytest.raises(NodeNotFound):
        app.nodes.get("")
    with pytest.raises(NodeNotFound):
        await app.nodes.aget("")
    await app.aclose()


async def test_get_finds_the_dead_too_and_list_when_asked(app, enter, run, namespace):
    enter("alive")
    enter("dead", silent_ms=31_000)
    enter("late", silent_ms=20_000)
    assert [node["id"] for node in app.nodes.list()["data"]] == ["alive", "late"], "one missed beat is no outage"
    everybody = app.nodes.list(all=True)
    states = {node["id"]: node["state"] for node in everybody["data"]}
    assert states == {"alive": "active", "dead": "dead", "late": "active"}
    assert await app.nodes.alist(all=True) == everybody
    assert app.nodes.get("dead")["state"] == "dead"
    assert (await app.nodes.aget("alive"))["leader"] is False

    def leaders():
        return [node["id"] for node in app.nodes.list(all=True)["data"] if node["leader"]]

    c = keys.cluster(namespace)
    pulse = run(commands.pulse(c, node="alive", leads=True, ttl_ms=6_000))
    assert leaders() == ["alive"]
    run(commands.resign(c, node="alive", term=pulse.term))
    assert leaders() == []
    run(commands.pulse(c, node="late", leads=True, ttl_ms=6_000))
    assert leaders() == ["late"], "it is whoever leads now"
    with pytest.raises(NodeNotFound, match="did you mean 'alive'"):
        app.nodes.get("alyve")
    with pytest.raises(NodeNotFound):
        await app.nodes.aget("nobody")
    await app.aclose()


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 1001}, {"offset": -1}])
def test_numbers_out_of_range_are_refused(app, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        app.nodes.list(**wrong)


@pytest.mark.parametrize(
    "silent_ms, word",
    [(-5_000, "healthy"), (0, "healthy"), (14_999, "healthy"), (15_000, "warning"), (29_999, "warning"),
     (30_000, "unhealthy"), (10**9, "unhealthy")],
)  # fmt: skip
def test_health_is_by_the_last_beat(silent_ms, word):
    assert health(silent_ms) == word


def test_a_damaged_record_is_shown_as_far_as_it_can_be():
    junk = dict.fromkeys(
        ("hostname", "port", "pid", "state", "queues", "tasks", "workers", "concurrency", "capacity", "labels",
         "metadata", "incarnation", "created_at", "last_seen", "stats"),
        "[{]",
    ) | {"id": "n"}  # fmt: skip
    shown = node_shown(junk, 1_000)
    assert (shown["id"], shown["state"], shown["pid"], shown["queues"], shown["labels"]) == ("n", "dead", None, [], {})
    numbers = ("port", "workers", "incarnation", "created_at", "last_seen")
    assert [shown[name] for name in numbers] == [None] * len(numbers), "what is no number and no time is null"
    assert shown["stats"] == {"slots": 0, "busy": 0, "running": []}
    never = node_shown({"id": "n", "state": "active"}, 1_000)
    assert (never["last_seen"], never["state"], never["health"]) == (None, "dead", "unhealthy")
    wrong = {"queues": "[1]", "labels": "[]", "capacity": '{"gpu": "x"}', "stats": '{"running": [5], "busy": "x"}'}
    shown = node_shown(wrong | {"last_seen": "900"}, 1_000)
    assert (shown["state"], shown["health"], shown["capacity"]) == ("active", "healthy", {})
    assert shown["last_seen"] == "1970-01-01T00:00:00.900Z"
    assert shown["stats"] == {"slots": 0, "busy": 0, "running": []}
