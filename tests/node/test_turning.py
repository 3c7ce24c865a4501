"""The worker's loop turns on, whatever code beside the jobs raises."""

import asyncio
import logging

import pytest

from taskq.node.worker import turning


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_code_beside_the_jobs_cannot_end_the_loop(kind):
    async def stray():
        raise kind

    async def main():
        task = asyncio.ensure_future(stray())
        await asyncio.sleep(0.02)
        assert isinstance(task.exception(), kind)
        return 7

    assert turning.run(main()) == 7


def test_what_is_left_on_the_loop_is_tidied():
    tidied = []

    async def forever():
        try:
            await asyncio.Event().wait()
        finally:
            tidied.append(True)

    async def main():
        main.kept = asyncio.ensure_future(forever())
        await asyncio.sleep(0)
        return 0

    assert turning.run(main()) == 0
    assert tidied == [True]


def test_an_error_of_our_own_comes_out():
    async def main():
        raise LookupError("ours")

    with pytest.raises(LookupError):
        turning.run(main())


def test_a_log_that_fails_does_not_end_the_loop(monkeypatch):
    def broken(*_args, **_named):
        raise ValueError("I/O operation on closed file")

    monkeypatch.setattr(logging.getLogger("asyncio"), "error", broken)

    async def main():
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(0.02)
        return 7

    assert turning.run(main()) == 7
