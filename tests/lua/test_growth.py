"""What a queue costs doesn't grow with what waits in it, nor with what went through it, nor with what others keep."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from taskq import commands, keys, scripts
from taskq.commands import Done
from tests.lua.room import LEASE_MS, new
from tests.lua.tour import lively, stops

# Scripts of `taskq fsck`, which walks over everything in steps.
BY_HAND = {"scan", "members"}
# What an operator changes or lists: a slice of one hash or set a call.
BY_OPERATORS = {"limit", "limits", "weigh"}


def asked_by(room, command):
    """Calls a command, for what its script asks of the server."""
    return room.count(command)[1]


def fill(room, priorities, count, **options):
    for first in range(0, count, 250):
        jobs = [
            new(f"w{n}", priority=priorities[n % len(priorities)], **options)
            for n in range(first, min(count, first + 250))
        ]
        room.do(commands.enqueue, jobs)


@pytest.mark.parametrize("due", ["", "+60000"])
def test_an_enqueue_of_any_priority_costs_the_same_on_a_long_queue(room, due):
    """PERF-01, at a hundredth of its million: what is called, and how often, is the same."""
    chance = random.Random(7)
    priorities = chance.sample(range(-512, 512), 40)
    batch = [new(f"n{n}", priority=chance.choice(priorities), due=due) for n in range(100)]
    fill(room, priorities, len(priorities), due=due)
    few = asked_by(room, commands.enqueue(room.q, batch, now=room.now))
    room.client.flushall()
    fill(room, priorities, 10_000, due=due)
    many = asked_by(room, commands.enqueue(room.q, batch, now=room.now))
    assert many == few


def test_a_claim_costs_the_same_on_a_long_queue(room):
    def claimed(waiting):
        room.client.flushall()
        fill(room, range(-20, 20), waiting)
        claim = commands.claim(
            room.q, worker="n.1", request=1, lease_ms=LEASE_MS, limit=100, free={"async": 100}, now=room.now
        )
        return asked_by(room, claim)

    few, many = claimed(4_800), claimed(12_000)
    assert few["HSET"] == many["HSET"] >= 100
    assert few == many


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rounds", [20, pytest.param(800, marks=pytest.mark.long)])
def test_what_is_done_leaves_nothing(room, rounds):
    """MEM-01: 250 jobs a round, each kept for a minute; the keys and the memory are those of the first rounds."""
    number = itertools.count()

    def go_through(n):
        for _ in range(n):
            name = next(number)
            room.do(commands.enqueue, [new(f"r{name}-{each}", keep=60_000, payload=b"x" * 200) for each in range(250)])
            jobs = room.claim(limit=250, free={"async": 250})
            assert len(jobs) == 250
            room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"r") for job in jobs])
        room.now += 600_000  # what has a result is kept for five minutes, whatever was asked
        while room.do(commands.prune):
            pass

    def used():
        """Without the events, which have a bound of their own that so few rounds don't reach."""
        events = room.client.memory_usage(room.q.fixed("events"), samples=0)
        return room.client.info("memory")["used_memory"] - events

    go_through(10)
    keys, memory = set(room.client.keys()), used()
    go_through(rounds)
    left = {key.decode().removeprefix(room.q.prefix) for key in set(room.client.keys()) - keys}
    assert {name for name in left if not name.startswith("stats:")} == set()
    assert room.client.exists(room.q.fixed("completed"), room.q.fixed("prune"), room.q.body("async:0")) == 0
    assert used() < memory + 300_000


def test_nobody_looks_through_the_keyspace(room):
    """PERF-05: every command beside keys of others; SCAN belongs to fsck, which people run by hand."""
    foreign = {f"foreign:{{x}}:{n}": n for n in range(1000)}
    room.client.mset(foreign)
    epochs = lively(room)
    commandstats = Counter()
    for command in stops(room, epochs):
        room.client.config_resetstat()
        room.run(command)
        if command.script.name not in BY_HAND | BY_OPERATORS:
            commandstats.update(room.client.info("commandstats").keys())
    room.client.delete(*foreign)
    assert {"cmdstat_hset", "cmdstat_zadd"} <= set(commandstats)
    assert {"cmdstat_keys", "cmdstat_scan", "cmdstat_sscan", "cmdstat_hscan", "cmdstat_zscan"} & set(
        commandstats
    ) == set()


@pytest.mark.parametrize("name", scripts.names())
def test_no_script_says_so_either(name):
    source = scripts.load(name).source.upper()
    forbidden = ("'KEYS'", "'SCAN'", "'RANDOMKEY'", "'FLUSHDB'", "'FLUSHALL'")
    assert [word for word in forbidden if word in source] == (["'SCAN'"] if name == "scan" else [])


@pytest.mark.parametrize("count", [60, pytest.param(1_000, marks=pytest.mark.long)])
def test_workers_that_come_and_are_killed_leave_nothing_for_good(room, namespace, count):
    """MEM-09: whatever bears the name of one of them ends by itself, or is forgotten with its node."""
    c, known = keys.cluster(namespace), []
    for n in range(count):
        node = f"host-{n}-abcdef"
        register = commands.register_node(c, node=node, ttl_ms=600_000, fields={"state": "active"}, now=room.now)
        room.run(register)
        room.add(f"j{n}", keep=0)
        (job,) = room.claim(f"{node}.1")
        room.watched()  # it was killed, and its lease ran out
        (again,) = room.claim(f"{node}.2")
        assert again.id == job.id
        room.do(commands.complete, worker=f"{node}.2", done=[Done(again.id, again.epoch, b"")])
        room.run(commands.forget_nodes(c, now=room.now))  # as each node does when it starts
        known.append(room.run(commands.nodes(c, every=True, now=room.now)).total)
    assert max(known) <= 300_000 // (3 * LEASE_MS) + 1, "those of the last five minutes"
    for key in room.client.scan_iter(f"{namespace}:*"):
        if b"host-" in key and b":node:" not in key:
            assert 0 < room.client.pttl(key) <= 3_600_000, key
    left = {key.partition(b":node:")[2] for key in room.client.scan_iter(f"{c.prefix}node:*")}
    assert left == set(room.client.zrange(c.fixed("nodes"), 0, -1))
    room.now += 300_001
    room.run(commands.forget_nodes(c, now=room.now))
    assert not room.client.exists(c.fixed("nodes"))
