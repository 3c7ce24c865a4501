"""CONN-06: the server forgets its scripts, at any moment; nobody who calls one notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from taskq import commands, connection
from tests.lua.room import Room, new
from tests.lua.test_calls import COSTS


def fresh(raw, q, name):
    """One call of each script on an emptied server, which has just forgotten them all."""
    raw.flushall()
    build: Callable[..., Any] = COSTS[name][2]
    command = build(Room(raw, q), 3)
    raw.script_flush()
    return command


@pytest.mark.parametrize("name", COSTS)
def test_alone_and_in_a_pipeline(raw, q, server, name):
    command = fresh(raw, q, name)
    connection.run(server, command)
    assert raw.script_exists(command.script.sha) == [True]
    command, counts = fresh(raw, q, name), commands.counts(q)
    connection.run_many(server, [counts, command, counts])
    assert raw.script_exists(command.script.sha, counts.script.sha) == [True, True]


@pytest.mark.parametrize("name", COSTS)
async def test_the_async_face_does_the_same(raw, q, settings, name):
    server = connection.connect_async(settings)
    command = fresh(raw, q, name)
    await connection.run_async(server, command)
    assert raw.script_exists(command.script.sha) == [True]
    command, counts = fresh(raw, q, name), commands.counts(q)
    await connection.run_many_async(server, [counts, command, counts])
    assert raw.script_exists(command.script.sha, counts.script.sha) == [True, True]
    await server.aclose()


def test_each_call_of_such_a_pipeline_is_done_once(room, server):
    adds = [commands.enqueue(room.q, [new(f"j{n}")]) for n in range(50)]
    room.client.script_flush()
    assert connection.run_many(server, adds) == [["available"]] * 50
    assert connection.run(server, commands.counts(room.q)).available == 50
