"""The leader's duty for the registry: who is dead, and who is forgotten."""

import time

from taskq import commands, keys
from taskq.node.leader.census import EVERY_S, LOOK_S, Census


def entered(c, node, silent_ms):
    now = int(time.time() * 1000) - silent_ms
    return commands.register_node(c, node=node, ttl_ms=600_000, fields={"state": "active"}, now=now)


async def states(ground, c):
    found = await ground.do(commands.nodes(c, every=True))
    return {node["id"]: node["state"] for node in found.nodes}


async def test_only_the_leader_counts(ground, lines):
    c = keys.cluster(ground.namespace)
    for node, silent_ms in (("alive", 20_000), ("dead", 31_000), ("long dead", 301_000)):
        await ground.do(entered(c, node, silent_ms))
    term = None
    census = Census(ground.queues(), c, "n", term=lambda: term)
    assert await census.step() == LOOK_S
    assert await states(ground, c) == {"alive": "active", "dead": "active", "long dead": "active"}
    term = (await ground.do(commands.pulse(c, node="n", leads=True, ttl_ms=6_000))).term
    assert await census.step() == EVERY_S
    assert await states(ground, c) == {"alive": "active", "dead": "dead"}
    assert "dead" in [line.get("dead") for line in lines]


async def test_one_who_leads_no_more_marks_nobody(ground):
    c = keys.cluster(ground.namespace)
    await ground.do(entered(c, "silent", 31_000))
    await ground.do(commands.pulse(c, node="other", leads=True, ttl_ms=6_000))
    assert await Census(ground.queues(), c, "n", term=lambda: 5).step() == LOOK_S
    assert await states(ground, c) == {"silent": "active"}
