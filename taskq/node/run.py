"""The node's life: start workers, learn from their hello where Redis is, turn the loops, end on a signal.

Order at the end: workers leave first, renewed until the last is gone; then the loops stop; the record goes last.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace

from taskq import keys, scripts
from taskq.connection import connect_async
from taskq.errors import Unavailable, did_you_mean
from taskq.log import get_logger
from taskq.node.ask import ask
from taskq.node.beat import Beat
from taskq.node.channel import Fired, Hello
from taskq.node.children.allotment import Allotment
from taskq.node.children.burial import Undertaker
from taskq.node.children.child import COMMAND, Child, is_stopped
from taskq.node.children.cores import Cores
from taskq.node.children.memory import Memory
from taskq.node.children.supervisor import Supervisor
from taskq.node.children.warden import Warden
from taskq.node.doings import doings, ranging
from taskq.node.fit import unfit
from taskq.node.health import Health, PortRefused, answering
from taskq.node.leader.census import Census
from taskq.node.leader.lead import Leader
from taskq.node.leader.relay import Relay
from taskq.node.leader.scaler import Scaler
from taskq.node.leader.schedules import Schedules
from taskq.node.leader.strays import Strays
from taskq.node.leader.targets import Targets
from taskq.node.loop import Outage, turn
from taskq.node.options import NodeOptions
from taskq.node.orders import Orders
from taskq.node.queues import Queues
from taskq.node.registry import Registry
from taskq.node.sweeps.janitor import Janitor
from taskq.node.sweeps.keeper import EVERY_MS, LEASE_PARTS, Keeper
from taskq.node.sweeps.reaper import Reaper
from taskq.node.timetable import Timetable
from taskq.schedules import Run
from taskq.settings import Settings

STAGGER_S = 0.15

log = get_logger(__name__)


def run(app: str, options: NodeOptions | None = None, *, command: Sequence[str] = COMMAND) -> int:
    """Serve `app` (`module[:attribute]`) until a signal, or in a burst until nothing is left. Call it in the main
    thread. Gives the exit code: 0 if every job ended or was given back by its worker, 1 if a process had to be killed
    or the app can't be served (the reason is then on stderr, in one line where Redis is the reason: see `fit`).
    """
    scripts.read()
    return asyncio.run(serve(app, options or NodeOptions(), command=command))


def new_node_id() -> str:
    """`<host>-<pid>-<6 hex>`: new at each start, readable, safe in a key."""
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:48] or "host"
    return f"{host}-{os.getpid()}-{secrets.token_hex(3)}"


async def serve(app: str, options: NodeOptions, *, command: Sequence[str] = COMMAND) -> int:
    """As `run`, on a running loop."""
    node = new_node_id()
    supervisor = Supervisor(app, node, options, command=command)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.drain)
    loop.add_signal_handler(signal.SIGUSR1, lambda: ask(node, supervisor.children))
    health = Health(
        state=lambda: _unready(supervisor),
        busy=lambda: any(each.held() for each in supervisor.children),
        stopped=lambda: [each.worker for each in supervisor.children if is_stopped(each.pid)],
    )
    try:
        async with answering(health, options.health_port):
            await _serve(app, node, options, supervisor, health=health)
    except PortRefused as error:
        supervisor.give_up(str(error))
    if supervisor.failure:
        sys.stderr.write(f"taskq: {supervisor.failure.rstrip()}\n")
    return 1 if supervisor.failure or supervisor.killed else 0


async def _serve(app: str, node: str, options: NodeOptions, supervisor: Supervisor, *, health: Health) -> None:
    """From the first worker's start to the last one's end."""
    watching = [
        asyncio.create_task(turn("beat", Beat(lambda: supervisor.children).step, seen=health)),
        asyncio.create_task(
            turn("warden", Warden(lambda: supervisor.children, wedged_ms=options.wedged_ms).step, seen=health)
        ),
    ]
    if options.max_memory:
        watching.append(
            asyncio.create_task(turn("memory", Memory(lambda: supervisor.children, options.max_memory).step))
        )
    workers = asyncio.create_task(supervisor.run())
    hello: asyncio.Future[Hello] | asyncio.Task[None] = supervisor.hello
    await asyncio.wait([workers, hello], return_when=asyncio.FIRST_COMPLETED)
    if supervisor.hello.done():
        settings = Settings.from_dict(supervisor.hello.result().settings)
        if why := await unfit(settings, Outage(), supervisor.ending):
            supervisor.give_up(why)
        elif not supervisor.ending.is_set():
            for queue, hint in strangers(options.queues, supervisor.hello.result()):
                more = {"hint": hint} if hint else {}
                log.warning("no task of the app goes to this queue", app=app, queue=queue, **more)
            await _with_redis(settings, node, options, supervisor, workers, health=health)
    await workers
    for task in watching:
        task.cancel()


def _unready(supervisor: Supervisor) -> str:
    """Why this node claims nothing; '' if it does."""
    if supervisor.ending.is_set():
        return "it ends"
    if supervisor.resting:
        return "it drains"
    claims = any(child.ready and not is_stopped(child.pid) for child in supervisor.children)
    return "" if claims else "no worker claims"


def strangers(asked: Sequence[str], hello: Hello) -> list[tuple[str, str]]:
    """The queues of `-q` to which none of the app's tasks goes by itself, each with the name that may have been meant.

    Others may send jobs there nevertheless, so it is no error.
    """
    own = {str(task["queue"]) for task in hello.tasks.values()} | {each[3] for each in hello.schedules}
    return [(queue, did_you_mean(queue, own).strip(" ()")) for queue in asked if queue not in own]


def tell(children: Sequence[Child], run: Run) -> None:
    """Has one worker tell the app's observers of a firing; nobody, if none of them has any."""
    for child in children:
        if child.ready and child.hello is not None and child.hello.observes:
            child.send(Fired(run.to_dict()))
            return


async def _with_redis(
    settings: Settings,
    node: str,
    options: NodeOptions,
    supervisor: Supervisor,
    workers: asyncio.Task[None],
    *,
    health: Health,
) -> None:
    """Turn the loops that need Redis until the last worker is gone and buried."""
    # A connection that swallows calls must be given up while there is still time to renew on another one.
    patient_ms = min(settings.deadline_ms, EVERY_MS, settings.lease_ms // LEASE_PARTS)
    server = connect_async(replace(settings, deadline_ms=patient_ms), role="node")
    supervisor.undertaker.set_result(Undertaker(server, settings.namespace))
    supervisor.begin()
    outage = Outage()

    def children() -> list[Child]:
        return supervisor.children

    queues = Queues(server, settings.namespace, lambda: supervisor.queues)

    def resting() -> bool:
        return supervisor.resting or supervisor.ending.is_set()

    allotment = Allotment(
        options.ranges,
        lambda: supervisor.options.total,
        others=lambda: any(queue not in options.ranges for queue in supervisor.queues),
        children=lambda: [child for child in supervisor.children if child.ready and not child.leaving.is_set()],
    )

    cores = Cores(children)

    def told() -> dict[str, str | int]:
        now = supervisor.options
        slots = {"async": now.concurrency, "thread": now.threads}
        state = "draining" if resting() else "active"
        given = allotment.shown() | ranging(now, cores.used, queues=supervisor.queues)
        return doings(children(), state=state, workers=now.workers, concurrency=slots, scaling=given)

    cluster = keys.cluster(settings.namespace)
    timetable = Timetable(queues, cluster, hello=lambda: supervisor.latest)
    registry = Registry(
        queues, settings, node, options, hello=lambda: supervisor.latest, doings=told, lost=timetable.soon
    )
    orders = Orders(supervisor, allotment, registry.soon)
    leader = Leader(queues, cluster, node, obey=orders.obey, would_lead=lambda: not resting())
    census = Census(queues, cluster, node, term=lambda: leader.term)
    relay = Relay(queues, settings.namespace, leader, tell=lambda run: tell(supervisor.children, run))
    steps = {
        "keeper": Keeper(queues, children, lease_ms=settings.lease_ms).step,
        "registry": registry.step,
        "timetable": timetable.step,
        "leader": leader.step,
        "schedules": Schedules(queues, cluster, node, leader, relay=relay.begin).step,
        "reaper": Reaper(queues, lease_ms=settings.lease_ms).step,
        "janitor": Janitor(queues).step,
        "census": census.step,
        "strays": Strays(queues, cluster, lease_ms=settings.lease_ms, term=lambda: leader.term).step,
        "targets": Targets(queues, cluster, term=lambda: leader.term).step,
        "scaler": Scaler(queues, cluster, settings.namespace, node, term=lambda: leader.term).step,
        **({"allotment": allotment.step} if options.ranges else {}),
        "cores": cores.step,
    }
    # Only the reaper asks every queue every second. They begin one after the other, and so share a connection.
    loops = [
        asyncio.create_task(turn(name, step, outage, heals=name == "reaper", after_s=number * STAGGER_S, seen=health))
        for number, (name, step) in enumerate(steps.items())
    ]
    log.info("node started", node=node, queues=supervisor.queues, workers=options.workers)
    try:
        await workers
    finally:
        for task in loops:
            task.cancel()
        await asyncio.wait(loops)
        await relay.close()
        await leader.resign()
        with contextlib.suppress(Unavailable):
            await registry.depart()
        await server.aclose()
        log.info("node ended", node=node)
