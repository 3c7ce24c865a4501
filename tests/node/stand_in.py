"""A worker without a pipeline: it does what the test asks for, and speaks with its node as a real one does.

The app's name is the part it plays: `<part>` or `<part>:<redis url>,<namespace>,<how many jobs to claim>`.
"""

import os
import signal
import sys
import time
from pathlib import Path

from taskq import commands, keys
from taskq.connection import connect, run
from taskq.node import channel
from taskq.node.channel import Ageing, Begin, Drain, Drained, Failed, Hello, Ready, Recycle, Refused, Stop
from taskq.node.table import Table, now_ms
from taskq.node.tether import Ends, tie, watch
from taskq.settings import Settings


def claim(start, settings, table, limit):
    """Take jobs as a worker does, and write them down; gives slots by id."""
    server = connect(settings, role="worker")
    q = keys.queue(settings.namespace, "default")
    claimed = run(
        server,
        commands.claim(
            q, worker=start.worker, request=1, lease_ms=settings.lease_ms, limit=limit, free={"async": limit}
        ),
    )
    held = {job.id: (table.fill(job.epoch, job.id), job) for job in claimed.jobs}
    for slot, _ in held.values():
        table.begin(slot)
    return server, q, held


def main():  # noqa: C901, PLR0912, PLR0915 (a list of parts to play, each a line or two)
    ends = Ends.from_argv(sys.argv[1:])
    tie(ends.parent_pid)
    table = Table.attach(ends.table_fd)
    watch(ends.pipe_fd, table.beat_thread)
    end = ends.socket()
    start = channel.hear(end)
    part, _, rest = start.app.partition(":")
    if part == "broken":
        channel.say(end, Failed("no module named 'shop'"))
        sys.exit(1)
    if part == "crashes":
        os._exit(3)
    url, namespace, limit = rest.rsplit(",", 2) if rest else ("redis://127.0.0.1:1/0", "none", "0")
    settings = Settings(url=url, namespace=namespace, lease_ms=4_000)
    tasks = {"t": {"queue": "default", "executor": "async", "backoff": "fixed:5000:5000:exact"}}
    channel.say(end, Hello(settings.to_dict(), ["default"], tasks, "0.1.0"))
    while start.hold and not isinstance(channel.hear(end), Begin):
        pass
    channel.say(end, Ready())
    if part == "breaks-later" and start.worker.endswith(".2"):
        channel.say(end, Failed("no module named 'shop'"))
        sys.exit(1)
    server, q, held = claim(start, settings, table, int(limit)) if int(limit) else (None, None, {})
    if part == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if part == "exits":
        sys.exit(5)
    if part == "refused":
        channel.say(end, Refused("default:1"))
    if part in {"bursts", "refused"}:
        channel.say(end, Drained())
        sys.exit(0)
    if part == "lingers":
        channel.say(end, Drained())
    if part == "recycles" and start.worker.endswith(".1"):
        channel.say(end, Recycle("a slot was written off"))
    if part == "ages" and start.worker.endswith(".1"):
        channel.say(end, Ageing("few are left"))
    if part == "overruns" and start.worker.endswith(".1"):
        slow = min(held)
        table.set_hard_deadline(held[slow][0], now_ms() + 300)
    end.settimeout(0.1)
    while True:
        table.beat()
        if part == "ages" and start.worker.endswith(".1") and Path(os.environ["NOW"]).exists():
            channel.say(end, Recycle("none is left", patient=True))
            part = "good"
        try:
            message = channel.hear(end)
        except TimeoutError:
            continue
        if part in {"stubborn", "lingers"}:
            continue
        if message is None:
            sys.exit(4)
        if isinstance(message, Drain) and part in {"finishes", "finishes-late"}:
            time.sleep(0.2 if part == "finishes" else 5.5)
            for id, (slot, job) in held.items():
                run(server, commands.complete(q, worker=start.worker, done=[commands.Done(id, job.epoch, b"")]))
                table.free(slot)
        if isinstance(message, Drain) and part == "waits-for-stop":
            continue
        if isinstance(message, Drain | Stop):
            for id, (slot, job) in held.items() if "finishes" not in part else []:
                run(server, commands.release(q, worker=start.worker, jobs=[commands.Release(id, job.epoch, "")]))
                table.free(slot)
            channel.say(end, Drained())
            sys.exit(0)
        if getattr(message, "op", "") in {"lost", "cancel", "force"}:
            print(f"{message.op} {message.id}", flush=True)  # noqa: T201 (what the test reads)


main()
