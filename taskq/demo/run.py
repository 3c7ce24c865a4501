"""The demo from its start to its verdict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from taskq.app import TaskQ
from taskq.demo import check, fleet, report, show, tree
from taskq.demo.app import QUEUE, app, read
from taskq.demo.tree import File
from taskq.errors import TaskQError
from taskq.handle import Job
from taskq.record import JobRecord

WORKERS = 2
_LOOK_S = 0.05
_STALL_S = 120.0
_SLICE = 1000


class DemoFailed(TaskQError):
    """The demo can't go on."""


class Killing(NamedTuple):
    """Which worker was killed, and when (ms since 1970: the server is on this machine, and has this clock)."""

    worker: str
    at_ms: float


def run(folder: Path, *, namespace: str, keep: bool) -> bool:
    """Run the demo over a folder; whether every number was right.

    Raises:
        DemoFailed: there is nothing to read, or the node has died.
        TaskQError: the server can't be started, or has died.
    """
    files = tree.files(folder)
    if not files:
        raise DemoFailed(f"there is no file under {folder}: name a folder with files, or none for Python's own library")
    with fleet.server(keep=keep) as server:
        show.say(f"{len(files):,} files under {folder}: a job for each, on {server.url}, {WORKERS} workers")
        app.override(url=server.url, namespace=namespace)
        with fleet.Node("taskq.demo.app:app", server.url, namespace, workers=WORKERS) as node:
            jobs = _enqueue(files)
            killing = _watch(app, node, len(files))
        records = _records(app, jobs)
        app.close()
        began = time.monotonic()
        expected = []
        with show.progress("plain single pass", len(files)) as advance:
            for outcome in check.plain_pass(files):
                expected.append(outcome)
                advance(len(expected))
        plain_s = time.monotonic() - began
        verdict = check.compare(files, expected, records)
        report.figures(verdict, records, plain_s=plain_s)
        report.killed(killing and killing.worker, killing and check.kill_of(records, *killing))
        report.next_steps(server.url, server.pid, namespace, records)
        return verdict.good


def _enqueue(files: Sequence[File]) -> list[Job[object]]:
    jobs: list[Job[object]] = []
    for at in range(0, len(files), _SLICE):
        jobs += app.enqueue_many([read.call(tree.sendable(file.path)) for file in files[at : at + _SLICE]])
    return jobs


def _watch(place: TaskQ, node: fleet.Node, total: int) -> Killing | None:
    """Until every job has ended; half way one worker is killed. None if there was no moment for that."""
    killing: Killing | None = None
    last, since = -1, time.monotonic()
    with show.progress("jobs", total) as advance:
        while True:
            counts = place.inspector.counts(QUEUE)
            done = counts.completed + counts.failed + counts.cancelled
            advance(done)
            if done >= total:
                return killing
            if killing is None and done * 2 >= total:
                killing = _kill(place, node)
            if not node.alive:
                raise DemoFailed(f"the node has died: {node.last_words}")
            if done != last:
                last, since = done, time.monotonic()
            elif time.monotonic() - since > _STALL_S:
                return killing  # what hasn't ended counts as lost
            time.sleep(_LOOK_S)


def _kill(place: TaskQ, node: fleet.Node) -> Killing | None:
    """SIGKILL for the worker that holds most jobs; None if none holds any just now."""
    running = place.inspector.jobs(state="running", queue=QUEUE, limit=100)["data"]
    holders = Counter(str(each["worker"]) for each in running if each["worker"])
    for worker, held in holders.most_common(1):
        at_ms = time.time() * 1000
        if node.kill(worker):
            show.say(f"killed worker {worker} with SIGKILL; it held about {held} jobs")
            return Killing(worker, at_ms)
    return None


def _records(place: TaskQ, jobs: Sequence[Job[object]]) -> list[JobRecord | None]:
    records: list[JobRecord | None] = []
    for at in range(0, len(jobs), _SLICE):
        records += place.client.jobs([job.id for job in jobs[at : at + _SLICE]])
    return records
