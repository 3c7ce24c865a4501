"""PERF-01: one job of some priority costs as much beside a backlog as beside none."""

from __future__ import annotations

import random
import time

import pytest

from taskq import commands
from tests.lua.room import Room, new


def p95_ms(room, first: int, count: int = 1_000) -> float:
    """The time of enqueuing one job of a random priority, in 95 of 100 cases at most."""
    draw, took = random.Random(7), []
    for n in range(count):
        command = commands.enqueue(room.q, [new(f"p{first + n}", priority=draw.randint(-512, 511))])
        began = time.perf_counter()
        room.client.evalsha(command.script.sha, len(command.keys), *command.keys, *command.args)
        took.append(1000 * (time.perf_counter() - began))
    return sorted(took)[count * 95 // 100]


@pytest.mark.bench
@pytest.mark.timeout(0)
def test_a_priority_costs_as_much_beside_a_million_jobs(raw, q):
    room = Room(raw, q)
    room.add("warm")
    alone = p95_ms(room, 0)
    for at in range(0, 1_000_000, 250):
        room.add(*(f"j{at + n}" for n in range(250)))
    beside = p95_ms(room, 1_000)
    print(f"p95 alone {alone:.2f} ms, beside a million {beside:.2f} ms")
    assert beside <= 2 * alone
