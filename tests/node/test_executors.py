"""Threads run `def` jobs: in a copy of the context, at most so many, and none keeps the process alive."""

import asyncio
import contextvars
import threading

import pytest

from taskq.node.worker.executors import Threads

var = contextvars.ContextVar("var", default="unset")


@pytest.fixture
async def threads():
    made = Threads(4, asyncio.get_running_loop())
    yield made
    made.close()


async def test_a_value_comes_back(threads):
    assert await threads.run(lambda a, *, b: a + b, (1,), {"b": 2}) == 3


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_whatever_is_raised_comes_back(threads, kind):
    def boom():
        raise kind("x")

    with pytest.raises(kind):
        await threads.run(boom, (), {})


async def test_stop_iteration_does_not_end_the_awaiting_coroutine(threads):
    with pytest.raises(RuntimeError) as caught:
        await threads.run(next, (iter(()),), {})
    assert isinstance(caught.value.__cause__, StopIteration)


async def test_the_context_is_copied(threads):
    var.set("callers")

    def look():
        seen = var.get()
        var.set("threads")
        return seen

    assert await threads.run(look, (), {}) == "callers"
    assert var.get() == "callers"


async def test_threads_are_daemons_and_started_as_needed(threads):
    for _ in range(20):
        assert await threads.run(lambda: threading.current_thread().daemon, (), {})
    assert len(threads._threads) == 1
    gate = threading.Event()
    waiting = [threads.run(gate.wait, (), {}) for _ in range(4)]
    assert len(threads._threads) == 4
    gate.set()
    assert await asyncio.gather(*waiting) == [True] * 4


async def test_no_answer_is_lost_under_load(threads):
    for _ in range(300):
        answers = [threads.run(int, (n,), {}) for n in range(4)]
        assert await asyncio.gather(*answers) == [0, 1, 2, 3]


async def test_a_cancelled_wait_does_not_break_the_thread(threads):
    gate = threading.Event()
    waiting = threads.run(gate.wait, (), {})
    waiting.cancel()
    gate.set()
    assert await threads.run(int, (7,), {}) == 7
