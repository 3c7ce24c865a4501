"""CONN-04: calls are cancelled at every moment of their way; no answer reaches another call.

Each call here asks for something of its own, and its answer says what it is of.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from taskq import TaskQ
from tests.chaos.proxy import Proxy

CALLERS, JOBS, LATE_S = 50, 20, 0.05


@pytest.fixture
def proxy(server_url):
    proxy = Proxy(int(server_url.rpartition(":")[2].partition("/")[0]))
    proxy.delay_s = LATE_S
    yield proxy
    proxy.close()


@pytest.fixture
async def far(proxy, namespace):
    """The app, at the end of a long way."""
    app = TaskQ(proxy.url, namespace=namespace)
    yield app
    await app.aclose()


async def one_job(app, number):
    job = app.job(f"default:own-{number}")
    await job.arefresh()
    assert job.record.to_dict()["meta"] == {"number": str(number)}


async def many_jobs(app, number):
    ids = [f"default:own-{each % JOBS}" for each in range(number, number + 3)]
    records = await app.aclient.jobs(ids)
    assert [record.id for record in records] == ids
    assert [record.to_dict()["meta"]["number"] for record in records] == [id.rpartition("-")[2] for id in ids]


async def counted(app, number):
    assert (await app.queue(f"q{number}").acounts()).available == number + 1


async def added(app, number):
    name = f"new-{random.getrandbits(64)}"
    job = await app.by_name("x", queue="new").using(id=name, meta={"name": name}).aenqueue()
    assert job.created
    assert (await app.aclient.job(job.id)).to_dict()["meta"] == {"name": name}


async def answered(app, number):
    """A result that is there already, and one that never comes."""
    job = app.job(f"done:own-{number}")
    assert await job.aresult() == number
    with pytest.raises(TimeoutError):
        await app.job(f"default:own-{number}").aresult(timeout=LATE_S / 2)


ASKED = (one_job, many_jobs, counted, added, answered)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("cancels", [500, pytest.param(10_000, marks=pytest.mark.long)])
async def test_no_answer_belongs_to_another_call(on_loop, far, hand, cancels):
    await fill(on_loop, hand)
    left, whole = cancels, 0

    async def caller():
        nonlocal left, whole
        while left > 0:
            call = asyncio.create_task(random.choice(ASKED)(far, random.randrange(JOBS)))
            if random.random() < 0.7:  # the others leave a connection that the next one takes
                await asyncio.wait({call}, timeout=random.uniform(0, 8 * LATE_S))
                left -= call.cancel()
            try:
                await call
                whole += 1
            except asyncio.CancelledError:
                continue

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    assert whole > cancels // 10


async def fill(app, hand):
    """Jobs that tell which they are, queues that tell their length, and results."""
    for number in range(JOBS):
        await app.by_name("x").using(id=f"own-{number}", meta={"number": str(number)}).aenqueue()
        await app.aenqueue_many(app.by_name("x", queue=f"q{number}").call() for _ in range(number + 1))
        await app.by_name("x", queue="done").using(id=f"own-{number}").aenqueue()
        await app.by_name("x", queue="new").using(id=f"own-{number}").aenqueue()
    for job in hand.claim("done"):
        hand.complete(job, int(job.id.rpartition("-")[2]))
