"""Clients on a bad day: a server that is away for a while, was emptied, or is asked for very much at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from taskq import ResultTimeout, TaskQ, Unavailable
from taskq.client import batch, operations
from tests.chaos.proxy import Proxy


@pytest.fixture
def proxy(embedded: Any) -> Iterator[Proxy]:
    proxy = Proxy(embedded.port)
    yield proxy
    proxy.close()


@pytest.fixture
async def far(proxy: Proxy, namespace: str) -> Any:
    """An app that reaches its server through the proxy."""
    app = TaskQ(proxy.url, namespace=namespace, deadline=0.5)
    yield app
    app.close()
    await app.aclose()


# --- waiting for a result


@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("waits", [False, True], ids=["before the first look", "while it waits"])
async def test_a_waiter_outlives_an_outage_that_is_longer_than_a_call(far, app, proxy, hand, face, waits):  # noqa: PLR0917 (fixtures)
    id = app.by_name("t").enqueue().id
    job = far.job(id)
    proxy.mode = "pass" if waits else "hole"
    waiting = asyncio.ensure_future(
        asyncio.to_thread(job.result, timeout=20) if face == "sync" else job.aresult(timeout=20)
    )
    await asyncio.sleep(0.3)
    proxy.mode = "hole"
    await asyncio.sleep(1.5)
    assert not waiting.done()
    proxy.mode = "pass"
    proxy.cut()
    hand.complete(hand.claim()[0], 7)
    assert await waiting == 7


@pytest.mark.parametrize("face", ["sync", "async"])
async def test_who_gave_a_time_is_told_that_it_is_over_and_who_gave_none_that_nobody_answers(far, app, proxy, face):
    job = far.job(app.by_name("t").enqueue().id)
    proxy.mode = "hole"
    began = time.monotonic()
    with pytest.raises(ResultTimeout, match=r"whether job \S+ has ended within 1s is not known: no answer") as caught:
        await (asyncio.to_thread(job.result, timeout=1) if face == "sync" else job.aresult(timeout=1))
    assert isinstance(caught.value.__cause__, Unavailable)
    assert 1 <= time.monotonic() - began < 4
    with pytest.raises(Unavailable):
        await (asyncio.to_thread(job.result) if face == "sync" else job.aresult())


async def test_a_waiter_is_told_at_once_what_will_not_pass(app, server_url, namespace):
    id = app.by_name("t").enqueue().id
    refused = TaskQ(server_url.replace("//", "//:wrong@"), namespace=namespace)
    began = time.monotonic()
    with pytest.raises(Unavailable, match="password"):
        await asyncio.to_thread(refused.job(id).result, timeout=10)
    with pytest.raises(Unavailable, match="password"):
        await refused.job(id).aresult(timeout=10)
    assert time.monotonic() - began < 5
    refused.close()
    await refused.aclose()


async def test_thousands_may_wait_for_results_at_once(server_url, namespace, hand):
    """For longer than a call may take: `tests/unit/test_deadline.py` makes sure of that on any machine."""
    app = TaskQ(server_url, namespace=namespace, deadline=0.5)
    task = app.by_name("t")
    jobs = []
    for _ in range(8):
        jobs += await app.aenqueue_many([task.call(n) for n in range(250)])
    while claimed := hand.claim():
        for job in claimed:
            hand.complete(job, 1)
    assert await asyncio.gather(*[job.aresult(timeout=60) for job in jobs]) == [1] * len(jobs)
    app.close()
    await app.aclose()


# --- a server that was emptied


@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("many", [False, True], ids=["one job", "several"])
async def test_a_queue_is_registered_again_after_a_while(app, raw, namespace, monkeypatch, face, many):  # noqa: PLR0917 (fixtures)
    task = app.by_name("t").using(queue="mail")

    async def enqueue() -> None:
        if face == "async":
            await (app.aenqueue_many([task.call()]) if many else task.aenqueue())
        elif many:
            app.enqueue_many([task.call()])
        else:
            task.enqueue()

    await enqueue()
    raw.flushall()
    await enqueue()
    assert not raw.exists(f"{namespace}:{{_}}:queues"), "not with each job"
    monkeypatch.setattr(batch, "REGISTER_AGAIN_S", 0.0)
    await enqueue()
    assert raw.smembers(f"{namespace}:{{_}}:queues") == {b"mail"}
    await app.aclose()


# --- very large records


def test_large_records_are_read_some_at_a_time(app, raw):
    """A server that reads out 250 records of 1 MiB does nothing else for seconds."""
    many = operations.records("ns", [f"q:{n}" for n in range(250)])
    assert max(len(command.args) - len(command.script.args) for command in many.commands) == 16
    assert max(map(len, many.pipelines())) == 4
    task = app.by_name("t")
    jobs = [task.enqueue("x" * 1_000_000) for _ in range(70)]
    assert [each.id for each in app.client.jobs([job.id for job in jobs])] == [job.id for job in jobs]
    page = app.inspector.jobs(limit=60, offset=5)["data"]
    assert [each["id"] for each in page] == [job.id for job in jobs[5:65]]


# --- while Python exits

AT_EXIT = """
import atexit, sys
from taskq import TaskQ
app = TaskQ(sys.argv[1], namespace=sys.argv[2])
task = app.task(print)
atexit.register(lambda: print(task.enqueue().state))
"""


def test_the_first_job_may_be_enqueued_while_python_exits(server_url, namespace):
    ran = subprocess.run(
        [sys.executable, "-c", AT_EXIT, server_url, namespace], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.stdout, ran.stderr) == ("available\n", "")
