"""A claim whose reply was lost, and an outage that outlasts its lease: its jobs are this worker's all the same."""

import asyncio
from dataclasses import replace

import pytest

from taskq import commands
from taskq.errors import Unavailable
from taskq.node.loop import Outage
from taskq.node.worker import claimer as module
from taskq.node.worker.claimer import Claimer
from tests.waiting import await_until


class Line:
    """The real server, at a time that the test sets, behind a network that loses a reply and then everything."""

    def __init__(self, server, now):
        self.server, self.now = server, now
        self.loses_reply = self.away = False
        self.in_vain = 0

    async def run(self, command):
        if self.away:
            self.in_vain += 1
            raise Unavailable("nobody there")
        answer = await self.server.run(replace(command, args=[self.now, *command.args[1:]]))
        if self.loses_reply:
            self.loses_reply, self.away = False, True
            raise Unavailable("cut")
        return answer

    async def block(self, _keys, _timeout_s):
        await asyncio.Event().wait()

    async def unblock(self, _key):
        pass


@pytest.fixture
async def line(ground, monkeypatch):
    monkeypatch.setattr(module, "again_s", lambda _failures: 0.01)
    seconds, micros = ground.raw.time()
    return Line(ground.server, seconds * 1000 + micros // 1000)


@pytest.fixture
async def started(ground, line):
    """What a worker has begun that claims on the line; one job waits for it."""
    await ground.enqueue(1, max_attempts=1)
    started = []
    claimer = Claimer(
        line,
        [ground.q],
        {"async": 4},
        worker="w.1",
        lease_ms=50,
        start=lambda _queue, jobs, _until_ms: started.extend(jobs) or {"async": len(jobs)},
        room=lambda: 100,
        node_age_ms=lambda: 0,
        gone=lambda: None,
        outage=Outage(),
    )
    line.loses_reply = True
    claiming = asyncio.create_task(claimer.run())
    yield started
    claiming.cancel()
    await asyncio.wait({claiming})


async def test_jobs_of_a_lost_reply_are_run_after_an_outage_longer_than_the_lease(ground, line, started):
    await await_until(lambda: line.away)
    assert (await ground.do(commands.counts(ground.q))).running == 1
    await ground.do(commands.reap(ground.q, lease_ms=8_000, now=line.now))  # a node was there before the outage
    await await_until(lambda: line.in_vain >= 20)
    line.now += 12_000
    reaped = await ground.do(commands.reap(ground.q, lease_ms=8_000, now=line.now))
    assert reaped.moved == []
    line.away = False
    (job,) = await await_until(lambda: started)
    done = commands.Done(job.id, job.epoch, b"")
    assert await ground.do(commands.complete(ground.q, worker="w.1", done=[done], now=line.now)) == ["ok"]
    fields = await ground.fields(job.id)
    assert (fields[b"state"], fields[b"attempt"]) == (b"completed", b"1")
