"""What running jobs take of the slots and amounts of nodes: for whoever asks why a job waits, or what is left. Pure.

Nobody counts it anywhere: a lease says who holds the job, its class what it takes. So it is
read, of at most a thousand leases a queue, when somebody looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Any, NamedTuple

from taskq import commands, keys
from taskq.commands import Command, HeldJobs
from taskq.lacking import Node, largest
from taskq.needs import WHOLE, Needs, amount_text, number, of_class

QUEUES_MAX, LEASES_MAX, HOLDERS_MAX = 16, 1000, 5


class Held(NamedTuple):
    """A running job that takes amounts: `takes` in thousandths, of the worker `worker`."""

    id: str
    worker: str
    takes: dict[str, int]


class Short(NamedTuple):
    """An amount of which too little is free: `free` of `whole`, in thousandths; the jobs that hold it."""

    name: str
    free: int
    whole: int
    holders: list[str]


def reads(namespace: str, queue: str, nodes: Iterable[Node]) -> list[Command[HeldJobs]]:
    """The leases of a queue, and of the others that these nodes serve: they take of the same amounts."""
    names = dict.fromkeys([queue, *sorted({name for node in nodes for name in node["queues"]})])
    return [commands.leases(keys.queue(namespace, name), limit=LEASES_MAX) for name in list(names)[:QUEUES_MAX]]


def reads_of(namespace: str, node: Node) -> list[Command[HeldJobs]]:
    """The leases of what a node says it runs, where it has amounts."""
    by_queue: dict[str, list[str]] = {}
    for each in node["stats"]["running"] if node["capacity"] else ():
        if isinstance(each["job"], str) and (queue := keys.queue_of(each["job"])):
            by_queue.setdefault(queue, []).append(each["job"])
    return [commands.leases(keys.queue(namespace, name), ids) for name, ids in by_queue.items()]


def held(pages: Iterable[HeldJobs]) -> list[Held]:
    """Those of these jobs that take any amount."""
    return [each for page in pages for job in page.jobs if (each := _held(job)) is not None]


def _held(job: commands.HeldJob) -> Held | None:
    klass, told, worker = (_text(job.fields.get(name, b"")) for name in (b"class", b"needs", b"worker"))
    if ";" not in klass or job.fields.get(b"state") != b"running":
        return None
    found = of_class(klass, told)
    return Held(job.id, worker, dict(found.takes)) if found and found.takes else None


def running(kind: str, nodes: Sequence[Node], pages: Sequence[HeldJobs], told: int) -> int:
    """How many jobs of an executor kind run on these nodes: by their leases, for a node says it but now and then.

    Args:
        kind: which.
        nodes: where.
        pages: the leases of the queues that the nodes serve.
        told: how many the nodes said; where not all leases were read, it may be more than those.
    """
    ids = {node["id"] for node in nodes}
    count = sum(_runs(job, kind, ids) for page in pages for job in page.jobs)
    is_all = 0 < len(pages) < QUEUES_MAX and all(len(page.jobs) >= page.total for page in pages)
    return count if is_all else max(count, told)


def _runs(job: commands.HeldJob, kind: str, ids: Container[str]) -> bool:
    klass, worker = _text(job.fields.get(b"class", b"async")), _text(job.fields.get(b"worker", b""))
    runs = job.fields.get(b"state") == b"running" and klass.partition(";")[0] == kind
    return runs and worker.rpartition(".")[0] in ids


def short(wanted: Needs, nodes: Sequence[Node], jobs: Sequence[Held]) -> list[Short]:
    """The amounts of which no worker of these nodes has enough free at this moment; nothing while one has all.

    Args:
        wanted: what the job needs.
        nodes: those that could run it.
        jobs: what runs.
    """
    used: dict[str, Counter[str]] = {}
    for job in jobs:
        used.setdefault(job.worker, Counter()).update(job.takes)
    best: dict[str, int] = {}
    for node in nodes:
        whole = largest(node)
        mine = [taken for worker, taken in used.items() if _is_of(node, worker)]
        idle = (node["workers"] or 1) - len(mine)
        for taken in [*mine, *([Counter()] if idle > 0 else [])]:
            free = {name: whole.get(name, 0) - taken[name] for name, _ in wanted.takes}
            if all(free[name] >= each for name, each in wanted.takes):
                return []
            best = {name: max(left, best.get(name, 0)) for name, left in free.items()}
    return [_short(name, nodes, jobs) for name, each in wanted.takes if best.get(name, 0) < each]


def _short(name: str, nodes: Sequence[Node], jobs: Sequence[Held]) -> Short:
    whole = sum(round(node["capacity"].get(name, 0) * WHOLE) for node in nodes)
    free = max(0, whole - _used(nodes, jobs, name))
    return Short(name, free, whole, [job.id for job in _of(nodes, jobs, name)])


def shown(node: Node, jobs: Sequence[Held]) -> dict[str, dict[str, int | float]]:
    """Amount → how much of it is used and free, as people say it."""
    return {
        name: {"used": number(used := _used([node], jobs, name)), "free": number(max(0, round(each * WHOLE) - used))}
        for name, each in node["capacity"].items()
    }


def _is_of(node: Node, worker: str) -> bool:
    return bool(worker.rpartition(".")[0] == node["id"])


def _of(nodes: Sequence[Node], jobs: Sequence[Held], name: str) -> list[Held]:
    return [job for job in jobs if job.takes.get(name) and any(_is_of(node, job.worker) for node in nodes)]


def _used(nodes: Sequence[Node], jobs: Sequence[Held], name: str) -> int:
    return sum(job.takes[name] for job in _of(nodes, jobs, name))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def told(few: Sequence[Short]) -> tuple[str, dict[str, Any]]:
    """A sentence of what is short, and its numbers."""
    holders = list(dict.fromkeys(id for each in few for id in each.holders))
    words = [f"{each.name}: {amount_text(each.free)} of {amount_text(each.whole)} free" for each in few]
    more = len(holders) - HOLDERS_MAX
    by = f", held by {', '.join(holders[:HOLDERS_MAX])}" + (f" and {more} more" if more > 0 else "") if holders else ""
    amounts = {each.name: {"free": number(each.free), "of": number(each.whole)} for each in few}
    return ", ".join(words) + by, {"resources": amounts, "holders": holders[:HOLDERS_MAX]}
