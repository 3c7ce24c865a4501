"""A loop survives what its steps meet, and an outage is two lines in the log."""

import asyncio

import pytest

from taskq.errors import Unavailable
from taskq.node.loop import Outage, again_s, turn
from tests.waiting import await_until


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr("taskq.node.loop.AGAIN_S", 0.001)
    monkeypatch.setattr("taskq.node.loop.AGAIN_MAX_S", 0.002)


async def _turn(step, outage, until):
    task = asyncio.create_task(turn("test", step, outage))
    await await_until(until)
    task.cancel()
    await asyncio.wait({task})


def test_the_waits_between_tries_grow_to_two_seconds(monkeypatch):
    monkeypatch.undo()
    assert [again_s(n) for n in (1, 2, 3, 4, 5, 50)] == [0.25, 0.5, 1, 2, 2, 2]


async def test_an_outage_of_many_steps_and_two_loops_is_two_lines(lines):
    outage, calls = Outage(), []

    async def step():
        calls.append(1)
        if len(calls) <= 30:
            raise Unavailable("nobody there")
        return 0.001

    other = asyncio.create_task(turn("other", step, outage))
    await _turn(step, outage, lambda: len(calls) > 40)
    other.cancel()
    await asyncio.wait({other})
    assert [line["event"] for line in lines] == ["Redis is away; trying again until it is back", "Redis is back"]


async def test_a_step_that_had_nothing_to_ask_does_not_end_an_outage(lines):
    outage, calls = Outage(), []
    outage.begins(Unavailable("nobody there"))

    async def step():
        calls.append(1)
        return 0.001

    idle = asyncio.create_task(turn("idle", step, outage, heals=False))
    await await_until(lambda: len(calls) > 5)
    idle.cancel()
    await asyncio.wait({idle})
    assert len(lines) == 1
    await _turn(step, outage, lambda: len(lines) > 1)
    assert [line["event"] for line in lines] == ["Redis is away; trying again until it is back", "Redis is back"]


async def test_a_fault_is_said_once_and_the_loop_goes_on(lines):
    calls = []

    async def step():
        calls.append(1)
        if len(calls) <= 20:
            raise ZeroDivisionError
        return 0.001

    await _turn(step, None, lambda: len(calls) > 25)
    assert [line["event"] for line in lines] == ["a step failed; the loop goes on"]
    assert lines[0]["loop"] == "test"
