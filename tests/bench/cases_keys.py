"""The scripts of keys, limits, reservations and executors of their own, called as in `cases.py`; `CASES` holds all."""

from __future__ import annotations

from itertools import count
from typing import Any

from taskq import commands
from taskq.commands import Command, NewJob, Reported
from tests.bench.backlog import LEASE_MS, Backlog
from tests.bench.cases import case
from tests.bench.cases_schedules import CASES

__all__ = ["CASES"]

_LANE_JOBS = 100
"""The backlog of keys is a hundredth of that of jobs: 10,000 lanes of one job each beside a million jobs."""
_numbers = count()


def _keyed(b: Backlog, number: int, lane: str = "k%:", priority: int = 7) -> list[NewJob]:
    jobs = []
    for _ in range(number):
        name = f"k-{next(_numbers)}"
        jobs.append(NewJob(f"default:{name}", "", "t", "async", priority, "", "", {}, lane.replace("%", name)))
    return jobs


def _many_keys(b: Backlog) -> None:
    """Sees that there are so many lanes, at a level that comes first."""
    missing = b.sizes.waiting // _LANE_JOBS + b.batch - b.client.zcard(b.q.groups("async", 7))
    while missing > 0:
        b.run(commands.enqueue(b.q, _keyed(b, min(250, missing)), now=b.now))
        missing -= 250


@case("claim, of many keys")
def _(b: Backlog) -> Command[Any]:
    _many_keys(b)
    return b.claim()


@case("complete, of many keys")
def _(b: Backlog) -> Command[Any]:
    _many_keys(b)
    jobs = b.run(b.claim()).jobs
    done = [commands.Done(job.id, job.epoch, b"") for job in jobs]
    return commands.complete(b.q, worker="n.1", done=done, now=b.now)


@case("limit")
def _(b: Backlog) -> Command[Any]:
    return commands.limit(b.q, "crm", {"c": 5}, now=b.now)


@case("limits")
def _(b: Backlog) -> Command[Any]:
    return commands.limits(b.q, now=b.now)


@case("weigh")
def _(b: Backlog) -> Command[Any]:
    return commands.weigh(b.q, {"acme": 3}, now=b.now)


@case("reprioritise")
def _(b: Backlog) -> Command[Any]:
    return commands.reprioritise(b.q, b.add()[0], -5, now=b.now)


# --- reservations


def _reserve(b: Backlog, name: str) -> Command[Any]:
    return commands.reserve(b.q, token=f"default:{name}", key=name, most=10**9, ttl_ms=60_000, now=b.now)


def _token(b: Backlog) -> str:
    name = f"r-{next(_numbers)}"
    b.run(_reserve(b, name))
    return f"default:{name}"


@case("reserve")
def _(b: Backlog) -> Command[Any]:
    return _reserve(b, f"r-{next(_numbers)}")


@case("bind")
def _(b: Backlog) -> Command[Any]:
    return commands.bind(b.q, token=_token(b), job=_keyed(b, 1, "", 0)[0], now=b.now)


@case("release_reservation")
def _(b: Backlog) -> Command[Any]:
    return commands.release_reservation(b.q, token=_token(b), call="x", now=b.now)


@case("finalize")
def _(b: Backlog) -> Command[Any]:
    return commands.finalize(b.q, key=_token(b).partition(":")[2], now=b.now)


@case("reservations")
def _(b: Backlog) -> Command[Any]:
    return commands.reservations(b.q, limit=1, now=b.now)


@case("sweep_reservations")
def _(b: Backlog) -> Command[Any]:
    return commands.sweep_reservations(b.q, "unbound", now=b.now)


# --- classes, and executors of their own


@case("classes")
def _(b: Backlog) -> Command[Any]:
    return commands.classes(b.q)


@case("sweep_classes")
def _(b: Backlog) -> Command[Any]:
    return commands.sweep_classes(b.q, now=b.now)


@case("untarget")
def _(b: Backlog) -> Command[Any]:
    return commands.untarget(b.q, "async;target=nowhere", why="lost", term=1, now=b.now)


@case("withdraw")
def _(b: Backlog) -> Command[Any]:
    return commands.withdraw(b.q, "nobody", why="gone", term=1, now=b.now)


@case("start")
def _(b: Backlog) -> Command[Any]:
    offers = [(job.id, job.epoch) for job in b.held()]
    return commands.start(b.q, worker="n.1", lease_ms=LEASE_MS, offers=offers, now=b.now)


@case("report")
def _(b: Backlog) -> Command[Any]:
    reports = [Reported(job.id, job.epoch, b"p") for job in b.held()]
    return commands.report(b.q, worker="n.1", reports=reports, now=b.now)


@case("leases")
def _(b: Backlog) -> Command[Any]:
    return commands.leases(b.q, [b.held()[0].id], now=b.now)
