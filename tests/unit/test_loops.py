"""Connections end with their event loop, however it ends, and whatever still uses them."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from taskq import commands, connection
from tests.waiting import wait_until


@pytest.fixture(params=["asyncio", "uvloop"])
def new_loop(request: Any) -> Any:
    return pytest.importorskip("uvloop").new_event_loop if request.param == "uvloop" else asyncio.new_event_loop


def lines_of(raw: Any) -> int:
    return sum(line["name"] == "taskq:loops" for line in raw.client_list())


@pytest.fixture
def aserver(settings: Any) -> connection.AsyncServer:
    return connection.connect_async(settings, role="loops")


async def everything(aserver: connection.AsyncServer, q: Any) -> None:
    """A call, a wait and a subscription: each has a connection."""
    await asyncio.gather(*[aserver.run(commands.counts(q)) for _ in range(3)])
    await aserver.block([q.wake("async")], 0.001)
    async with aserver.listen(q.done("default:a")) as ear:
        await ear.wait(0.001)


def test_each_run_closes_what_it_opened(aserver, raw, q, new_loop):
    for _ in range(50):
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(everything(aserver, q))
        assert len(aserver._loops) <= 1
    wait_until(lambda: lines_of(raw) == 0, what="no connection is left")


def test_a_loop_that_was_only_closed_leaves_nothing_once_the_next_one_calls(aserver, raw, q):
    async def call() -> None:
        await aserver.run(commands.counts(q))
        await aserver.block([q.wake("async")], 0.001)

    for _ in range(10):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(call())
        loop.close()
        gc.collect()
        assert len(aserver._loops) <= 1
        wait_until(lambda: lines_of(raw) <= 2, what="only the last loop's are left")
    asyncio.run(call())
    gc.collect()
    wait_until(lambda: lines_of(raw) == 0, what="no connection is left")


@pytest.mark.filterwarnings("ignore:asynchronous generator:ResourceWarning")  # asyncio's, about any such call
def test_a_loop_that_ends_can_still_call(aserver, raw, q):
    """A generator of the user's is ended together with ours."""

    async def calls_at_the_end() -> Any:
        try:
            yield
        finally:
            for _ in range(3):
                await aserver.run(commands.counts(q))
                await asyncio.sleep(0)
            told.append(1)

    async def main() -> None:
        await aserver.run(commands.counts(q))
        generators.append(calls_at_the_end())
        await anext(generators[0])

    told: list[int] = []
    generators: list[Any] = []
    asyncio.run(main())
    assert told == [1]
    wait_until(lambda: lines_of(raw) == 0, what="no connection is left")


async def test_what_a_call_uses_while_the_handle_is_closed_is_closed_after_it(aserver, raw, q):
    await aserver.run(commands.counts(q))
    raw.client_pause(200)
    call = asyncio.ensure_future(aserver.run(commands.counts(q)))
    await asyncio.sleep(0.05)
    await aserver.aclose()
    assert (await call).available == 0
    await asyncio.to_thread(wait_until, lambda: lines_of(raw) == 0)
