"""One worker process: `python -m taskq.node.worker`, started by its node and by nobody else.

It loads APP, says hello, and from then on claims jobs, runs them and tells Redis how they ended. The node renews its
leases, passes on verdicts, and asks it to drain. Here the parts are put together and seen to their end; each part has a
file of its own: claimer, desk, pipeline, executors, committer.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from taskq import __version__, keys, needs, scripts
from taskq import log as logs
from taskq.app import TaskQ, load_app
from taskq.commands import Claimed
from taskq.connection import connect_async
from taskq.current import _current
from taskq.keys import QueueKeys
from taskq.log import get_logger
from taskq.node import channel
from taskq.node.channel import (
    Ageing,
    Begin,
    Capacity,
    Channel,
    Drain,
    Drained,
    Failed,
    Fired,
    Hello,
    Limits,
    Ready,
    Recycle,
    Refused,
    Rest,
    Slots,
    Start,
    Stop,
    Verdict,
)
from taskq.node.loop import Outage
from taskq.node.table import Table
from taskq.node.tether import Ends, die, tie, watch
from taskq.node.worker import burst, forked, turning
from taskq.node.worker.account import Account
from taskq.node.worker.claimer import NODE_AGE_MS, Claimer
from taskq.node.worker.committer import Committer
from taskq.node.worker.desk import Desk
from taskq.node.worker.executors import Threads
from taskq.node.worker.known import known_tasks
from taskq.node.worker.load import complaint, greeting
from taskq.node.worker.observers import Teller
from taskq.node.worker.outcome import Ending
from taskq.node.worker.pipeline import Pipeline
from taskq.node.worker.quota import Quota
from taskq.node.worker.runners import Runners
from taskq.node.worker.running import Running
from taskq.node.worker.running import Stop as Why
from taskq.node.worker.stall import BEAT_S, Stall
from taskq.settings import parse_url
from taskq.task import Task

log = get_logger(__name__)


class Worker:
    """The parts of one worker, put together.

    Args:
        start: what the node wants.
        hello: what was told of APP.
        app: the user's application, loaded.
        table: shared with the node.
        node: the channel to it.
    """

    def __init__(self, start: Start, hello: Hello, app: TaskQ, table: Table, node: Channel) -> None:
        settings = app.settings
        queues = {name: keys.queue(settings.namespace, name) for name in hello.queues}
        slots = {"async": start.concurrency, "thread": start.threads}
        slots |= {f"+{name}": amount for name, amount in (start.capacity or {}).items()}
        apart = parse_url(settings.url).kind == "cluster"
        self.desk = Desk(table, known_tasks(app.tasks.values()))
        self.stall = Stall(self.desk.held.values)
        outage = Outage(apart=apart, excused=self.stall.explains)
        self._start = start
        self._table = table
        self._node = node
        self._teller = Teller(app.observers, asyncio.get_running_loop())
        self._may_begin = asyncio.Event()
        self._recycling = False
        self._dismissed = asyncio.Event()
        if not start.hold:
            self._may_begin.set()
        self.server = connect_async(settings, role="worker")
        self.threads = Threads(start.threads, asyncio.get_running_loop())
        self.committer = Committer(
            self.server.run_many,
            queues,
            worker=start.worker,
            grace_ms=settings.unknown_grace_ms,
            settled=self.desk.settled,
            refused=self._refused,
            outage=outage,
        )
        self.claimer = Claimer(
            self.server,
            list(queues.values()),
            slots,
            worker=start.worker,
            place=needs.Place(start.labels, start.capacity, {start.node, start.host} - {""}),
            lease_ms=settings.lease_ms,
            start=self._start_jobs,
            room=lambda: min(table.room, self.quota.left),
            node_age_ms=table.node_age_ms,
            gone=self._declared_dead,
            outage=outage,
            weights=start.weights,
            kinds=kinds_of(app.tasks.values()),
            apart=apart,
        )
        self.claimer.limit(start.limits)
        self.quota = Quota(start.max_jobs, ageing=self._ageing, used_up=self._used_up)
        pipeline = Pipeline(
            threads=self.threads,
            middleware=app.middleware,
            types=app.types,
            worker=start.worker,
            max_bytes=settings.max_payload,
            begun=self._begun,
            finish=self._finish,
        )
        self.desk.serve(run=Runners(pipeline.run).start, commit=self.committer.add, freed=self.claimer.freed)

    async def serve(self) -> None:
        """Claim and run jobs until asked to leave; return with nothing left in hand."""
        loop = asyncio.get_running_loop()
        beside = [loop.create_task(self._listen()), loop.create_task(self._beat())]
        await self._may_begin.wait()
        claiming = loop.create_task(self.claimer.run(), name="claim")
        self._node.send(Ready())
        self.quota.begins()
        if self._start.burst:
            beside.append(loop.create_task(self._burst()))
        await claiming  # one that fails is a fault of ours: the worker dies of it, and is replaced
        await self.desk.empty.wait()
        await self.committer.flush()
        if self._recycling:
            # Who is gone before its node has taken leave of it is followed as one that died: after a pause.
            await self._dismissed.wait()
        for task in beside:
            task.cancel()
        await asyncio.wait(beside)  # the channel has one reader at a time, and is read once more below
        # The connection that finishes travel on closes last.
        await self.server.aclose()
        self.threads.close()
        await self._node.take_leave(Drained())

    def leave(self, grace_ms: int) -> None:
        """Claim no more; after `grace_ms` stop what still runs. Said again, it can only shorten the grace.

        A job is released once its code has stopped. One that can't be stopped keeps this worker waiting, and the node
        ends it with the process.
        """
        self._dismissed.set()
        self.desk.close()
        self.claimer.stop()
        asyncio.get_running_loop().call_later(grace_ms / 1000, self.desk.halt_all, Why.SHUTDOWN)

    async def _listen(self) -> None:
        while (message := await self._node.receive()) is not None:
            match message:
                case Begin():
                    self._may_begin.set()
                    self.claimer.go_on()
                case Rest():
                    self.claimer.rest()
                case Capacity(amounts=amounts):
                    self.claimer.endow(amounts)
                case Limits(slots=limits):
                    self.claimer.limit(limits)
                case Slots(concurrency=concurrency):
                    self.claimer.resize("async", concurrency)
                case Verdict(op=op, id=id, epoch=epoch):
                    self.desk.verdict(op, id, epoch)
                case Fired(run=run):
                    self._teller.hear(run)
                case Drain() | Stop():
                    self.leave(message.grace_ms if isinstance(message, Drain) else 0)
        die()  # the node is gone: nobody renews, and what is still running will be run by others

    async def _beat(self) -> None:
        while True:
            self._table.beat()
            self.stall.beat()
            if self._table.node_age_ms() > NODE_AGE_MS:
                self.desk.check_leases()
            await asyncio.sleep(BEAT_S)

    async def _burst(self) -> None:
        await burst.until_done(self.claimer, self.desk)
        self.leave(self._start.grace_ms)

    def _start_jobs(
        self, queue: QueueKeys, claimed: list[Claimed], until_ms: int, free: Mapping[str, int] | None = None
    ) -> dict[str, int]:
        taken = self.desk.start(queue, claimed, until_ms, free)
        self.quota.took(len(claimed))
        return taken

    def _begun(self, job: Running) -> None:
        self.desk.begun(job)
        self.quota.began()

    def _finish(self, job: Running, ending: Ending | None) -> None:
        if job.current is None:
            self.quota.gave_back()
        self.desk.finish(job, ending)

    def _ageing(self) -> None:
        self._node.send(Ageing(f"of {self._start.max_jobs} jobs it may run few are left"))

    def _used_up(self) -> None:
        self.claimer.stop()
        self._recycle(f"it has run {self._start.max_jobs} jobs", patient=True)

    def _recycle(self, reason: str, *, patient: bool = False) -> None:
        self._recycling = True
        self._node.send(Recycle(reason, patient))

    def _refused(self, job_id: str) -> None:
        """A finish was given up. It may be the job's fault or this process's, such as one without descriptors left:
        another takes its place.
        """
        self._node.send(Refused(job_id))
        if not self.claimer.stopping:
            self.claimer.stop()
            self._recycle("Redis refuses what it finishes")

    def _declared_dead(self) -> None:
        """Redis says that this worker was buried: whatever it holds, others have it now."""
        self.desk.close()
        self.desk.halt_all(Why.LOST)
        self._recycle("it was declared dead while it lived")


def kinds_of(tasks: Iterable[Task[..., Any]]) -> dict[str, set[str]]:
    """Queue → the executor kinds that its tasks need."""
    kinds: dict[str, set[str]] = {}
    for task in tasks:
        kinds.setdefault(task.queue, set()).add(task.executor)
    return kinds


def job_of_a_line() -> dict[str, object] | None:
    """What every line of a log that is written inside a job carries. Asked at each line, so that jobs pay nothing."""
    job = _current.get()
    if job is None:
        return None
    return {"job_id": job.id, "task": job.task, "attempt": job.attempt, "queue": job.queue}


async def serve(start: Start, hello: Hello, app: TaskQ, *, table: Table, ends: Ends, account: Account) -> int:
    """Be a worker of `app`. Gives the exit code."""
    forked.mark(asyncio.get_running_loop())
    node = await Channel.open(ends.socket())
    node.send(hello)
    worker = Worker(start, hello, app, table, node)
    account.of(start.worker, asyncio.get_running_loop(), worker.desk.held.values)
    await worker.serve()
    return 0


def _import_structlog() -> None:
    """Spare each worker 4 MB: structlog loads rich where it is installed, for a look that we don't use."""
    absent = "rich" not in sys.modules
    if absent:
        sys.modules["rich"] = None  # type: ignore[assignment] # as Python marks what can't be imported
    importlib.import_module("structlog")
    if absent:
        del sys.modules["rich"]


def main() -> int:
    """Started by the node: see `taskq.node.children.child`."""
    _import_structlog()
    scripts.read()
    ends = Ends.from_argv(sys.argv[1:])
    tie(ends.parent_pid)
    end = ends.socket()
    try:
        table = Table.attach(ends.table_fd)
    except ValueError:
        text = f"the node runs another taskq than is installed now ({__version__}): restart the node"
        channel.say(end, Failed(text))
        return 1
    account = Account()
    watch(ends.pipe_fd, table.beat_thread, account.tell)
    start = channel.hear(end)
    if not isinstance(start, Start):
        return 1
    try:
        app = load_app(start.app, start.flags)
        app.load()
        hello = greeting(app, start.queues)
    except BaseException as error:  # noqa: BLE001 (user code: a module that calls sys.exit() is a mistake like any other)
        channel.say(end, Failed(complaint(start.app, error)))
        return 1
    # What is loaded by now stays; and jobs make little cyclic garbage, for which looking 30 times less often does.
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    logs.setup(**start.log)
    logs.carry(job_of_a_line)
    end.detach()
    return turning.run(serve(start, hello, app, table=table, ends=ends, account=account))
