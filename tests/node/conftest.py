"""What the node's tests stand on: a queue on the real server, and children that are only a table."""

import uuid

import pytest
import structlog

from taskq import commands
from taskq.commands import NewJob
from taskq.connection import connect_async, run_async
from taskq.node.queues import Queues
from taskq.node.table import Table


class TableChild:
    """A child that is only a table and a memory of what it was told."""

    def __init__(self, worker):
        self.worker, self.pid, self.ready = worker, 0, True
        self.table = Table.create(600)
        self.told = set()
        self.heard = []
        self.is_over = False

    @property
    def ended(self):
        return self

    def is_set(self):
        return self.is_over

    def held(self):
        return self.table.read()

    def send(self, message):
        self.heard.append((message.op, message.id, message.epoch))


class Ground:
    """The queue `default` on the test's server, with jobs of a task `t`."""

    def __init__(self, server, raw, q):
        self.server, self.raw, self.q, self.namespace = server, raw, q, q.namespace
        self._requests = {}
        self._children = []

    async def do(self, command):
        return await run_async(self.server, command)

    async def enqueue(self, count, *, due="", expires="", **fields):
        """Add so many jobs; gives their ids."""
        ids = [f"default:{uuid.uuid4()}" for _ in range(count)]
        await self.do(commands.enqueue(self.q, [NewJob(id, "", "t", "async", 0, due, expires, fields) for id in ids]))
        return ids

    async def claim(self, child, limit, *, lease_ms=8_000, fill=True, now=None):
        """Claim for a child, and write its table unless told not to; gives the claimed."""
        number = self._requests[child.worker] = self._requests.get(child.worker, 0) + 1
        options = {"worker": child.worker, "request": number, "lease_ms": lease_ms, "limit": limit}
        claim = await self.do(commands.claim(self.q, **options, free={"async": limit}, now=now))
        if fill:
            for job in claim.jobs:
                child.table.begin(child.table.fill(job.epoch, job.id))
        return claim.jobs

    async def fields(self, id):
        return (await self.do(commands.fetch(self.q, [id])))[0][1]

    async def states(self, ids):
        """The set of states these jobs are in."""
        return {found[1][b"state"].decode() for found in await self.do(commands.fetch(self.q, ids))}

    def lease(self, id):
        """When the job's lease ends (ms), None without one."""
        return self.raw.zscore(self.q.fixed("leases"), id)

    def child(self, worker="n.1"):
        self._children.append(TableChild(worker))
        return self._children[-1]

    def queues(self, *names):
        """The queues a node serves."""
        return Queues(self.server, self.namespace, lambda: names)

    def close(self):
        for child in self._children:
            child.table.close()


@pytest.fixture
async def ground(settings, raw, q):
    server = connect_async(settings, role="node")
    ground = Ground(server, raw, q)
    yield ground
    ground.close()
    await server.aclose()


@pytest.fixture
def lines():
    """What is logged, as events with their fields."""
    with structlog.testing.capture_logs() as captured:
        yield captured


@pytest.fixture
async def nobody(settings):
    """A server that isn't there."""
    from dataclasses import replace

    server = connect_async(replace(settings, url="redis://127.0.0.1:1/0", deadline_ms=100))
    yield server
    await server.aclose()
