"""SIGUSR1: the node logs what its workers hold, as their tables say, and each worker logs what it runs, with stacks."""

from __future__ import annotations

from collections.abc import Iterable

from taskq.log import get_logger
from taskq.node.children.child import Child
from taskq.node.doings import running

JOBS_MAX = 250

log = get_logger(__name__)


def ask(node: str, children: Iterable[Child]) -> None:
    """Have everything told."""
    for child in children:
        jobs = running([child])
        log.warning(
            "a worker holds",
            node=node,
            worker=child.worker,
            worker_pid=child.pid,
            ready=child.ready,
            loop_age_ms=child.table.worker_age_ms(),
            jobs=len(jobs),
            first=jobs[:JOBS_MAX],
        )
        child.ask()
