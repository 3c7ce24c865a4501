"""What a node does at its start when Redis isn't as it should be: wait for what passes, end for what doesn't."""

import asyncio
import socket

import pytest

from taskq.embedded import Embedded
from taskq.node import fit as module
from taskq.node.fit import unfit
from taskq.node.loop import Outage
from taskq.settings import Settings
from tests.waiting import await_until

LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"


class Answering:
    """A server that answers every command with the same words."""

    def __init__(self, words):
        self.words, self.calls = words, 0

    async def __call__(self, reader, writer):
        while line := await reader.readline():
            if line.startswith(b"*"):
                self.calls += 1
                writer.write(self.words)
        writer.close()


@pytest.fixture
def port():
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return line.getsockname()[1]


@pytest.fixture
def ending():
    return asyncio.Event()


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr(module, "AGAIN_S", 0.01)


@pytest.fixture
def look(port, ending):
    """Called and awaited it gives what a node says that starts with the server at `port`."""
    return lambda: unfit(Settings(url=f"redis://127.0.0.1:{port}/0", deadline_ms=200), Outage(), ending)


async def test_nobody_there_is_the_end(port, look):
    told = await asyncio.wait_for(look(), 5)
    assert told.startswith(f"no answer from the server at 127.0.0.1:{port}")


async def test_a_wrong_password_is_the_end_at_once(server_url, ending):
    settings = Settings(url=server_url.replace("redis://", "redis://:wrong@"), deadline_ms=60_000)
    assert "password" in await asyncio.wait_for(unfit(settings, Outage(), ending), 10)


async def test_a_replica_that_the_url_names_is_the_end(port, look):
    server = Answering(b"-READONLY You can't write against a read only replica.\r\n")
    async with await asyncio.start_server(server, "127.0.0.1", port):
        assert "read-only replica" in await asyncio.wait_for(look(), 5)


async def test_one_that_loads_its_data_then_goes_away_is_waited_for(port, look, server_binary, monkeypatch, lines):
    looks, check = [], module.fitness.check
    monkeypatch.setattr(module.fitness, "check", lambda settings: looks.append(1) or check(settings))
    looking = asyncio.create_task(look())
    server = Answering(LOADING)
    async with await asyncio.start_server(server, "127.0.0.1", port):
        await await_until(lambda: lines)
        seen = server.calls
        await await_until(lambda: server.calls > seen)
    gone = len(looks)
    await await_until(lambda: len(looks) >= gone + 2)
    assert not looking.done()
    with Embedded(port=port, binary=server_binary):
        assert await asyncio.wait_for(looking, 10) == ""
    assert [line["event"] for line in lines][:2] == ["Redis is away; trying again until it is back", "Redis is back"]


async def test_a_node_that_is_told_to_end_waits_no_longer(port, look, ending, lines):
    async with await asyncio.start_server(Answering(LOADING), "127.0.0.1", port):
        looking = asyncio.create_task(look())
        await await_until(lambda: lines)
        ending.set()
        assert await asyncio.wait_for(looking, 5) == ""
