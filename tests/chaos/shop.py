"""The app that chaos strikes: its jobs tell the ledger what really ran.

Both sides import it by the name `shop`: the nodes from this folder, a test through the fixture of that name, which
loads it anew because an app keeps its settings once it is in use.
"""

import asyncio
import ctypes
import multiprocessing
import os
import signal
import time

from taskq import Backoff, Retention, Snooze, TaskQ, current
from tests.ledger import note, noted, until_told

# The tests count what was done at the end of runs that are longer than what is kept by default.
app = TaskQ(retention=Retention(max_completed=1_000_000))

SOON = Backoff.fixed(0.05)


@app.task
async def quick() -> None:
    note("start")


@app.task
async def nap(seconds: float) -> None:
    """Sleeps on the loop, as a job that waits for others does."""
    with noted():
        await asyncio.sleep(seconds)


@app.task
async def turn(who: str, seconds: float = 0) -> None:
    """A turn of somebody's: the keys of its job are made of `who`."""
    with noted():
        await asyncio.sleep(seconds)


@app.task
async def stay(word: str) -> None:
    """Runs until the test tells the word."""
    with noted():
        await until_told(word)


@app.task
def work(seconds: float) -> None:
    """Works in a thread."""
    with noted():
        time.sleep(seconds)


@app.task
async def block(seconds: float) -> None:
    """Holds the loop: a blocking call in a coroutine."""
    with noted():
        time.sleep(seconds)  # noqa: ASYNC251 (that is the point)


@app.task
async def seize(seconds: int) -> None:
    """Holds the GIL in C code, so that no Python of the whole process runs."""
    with noted():
        ctypes.PyDLL(None).sleep(seconds)


@app.task(max_attempts=3)
async def poison() -> None:
    """Kills the process it runs in."""
    note("start")
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(timeout=0.3, max_attempts=3, backoff=SOON)
async def too_slow() -> None:
    """Never ends within its timeout."""
    with noted():
        await asyncio.sleep(60)


@app.task(timeout=0.5, hard_timeout=1, max_attempts=2, backoff=SOON)
def deaf(seconds: float) -> None:
    """Looks at nothing, in a thread that can't be stopped."""
    with noted():
        time.sleep(seconds)


def _asks(side: str) -> None:
    """Asks for what is its own, and sees that it is answered for that."""
    for n in range(20):
        job = quick.using(id=f"{side}-{n}", meta={"side": side}).enqueue()
        found = app.client.job(job.id)
        if not job.created or found is None or found.to_dict()["meta"] != {"side": side}:
            raise RuntimeError(f"{job.id} was answered for another: {found}")


def _forks(side: str) -> str:
    process = multiprocessing.get_context("fork").Process(target=_asks, args=(f"{side}-child",))
    process.start()
    _asks(side)
    process.join()
    return f"{side} {process.exitcode}"


@app.task
def forks(side: str) -> str:
    """Uses the app in a forked child, and beside it."""
    return _forks(side)


@app.task
async def forks_on_the_loop(side: str) -> str:
    """As `forks`, and holds the loop meanwhile."""
    return _forks(side)


@app.task
async def which_loop() -> str:
    """Whose loop runs it: asyncio's own or uvloop's."""
    return type(asyncio.get_running_loop()).__module__


@app.task
async def stubborn() -> None:
    """Refuses to be stopped."""
    note("start")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


@app.task(max_attempts=3, backoff=SOON)
async def brittle() -> None:
    """Fails at first."""
    if current().attempt == 1:
        note("failed")
        raise RuntimeError("as it should")
    with noted():
        await asyncio.sleep(0)


@app.task
async def patient(ready_at: float) -> None:
    """Puts itself off until that time on this host's clock."""
    if time.monotonic() < ready_at:
        note("snoozed")
        raise Snooze(0.1)
    with noted():
        await asyncio.sleep(0)


@app.task
async def hold(seconds: float, ballast: bytes) -> None:
    """Takes room."""
    with noted():
        await asyncio.sleep(seconds)


@app.task
async def guarded(name: str, seconds: float) -> None:
    """Holds a named lock while it works."""
    async with app.lock(name, ttl="3s", wait="60s"):
        with noted():
            await asyncio.sleep(seconds)


@app.task(timeout=0.5, hard_timeout=2, max_attempts=1)
async def seize_for_too_long(seconds: int) -> None:
    """Holds the GIL in C code, where no exception reaches it."""
    with noted():
        ctypes.PyDLL(None).sleep(seconds)


@app.task
async def ask(times: int) -> None:
    """Calls the server from inside a job, as many others do beside it."""
    with noted():
        for _ in range(times):
            await app.aping()
