"""The scripts of schedules, called as in `cases.py`; `CASES` holds all."""

from __future__ import annotations

from typing import Any

from taskq import commands
from taskq.commands import Command, Declared, DueSchedule, Incoming, Relayed
from taskq.schedules.template import Template
from tests.bench.backlog import Backlog
from tests.bench.cases import case
from tests.bench.cases_around import CASES

__all__ = ["CASES"]

_TEMPLATE = Template("t", "async", 0, "", "", {"payload": b""})
_SAID = Declared("s", '{"every_ms":1000}', "skip", "default", "t", _TEMPLATE.pack())


@case("declare_schedules")
def _declare(b: Backlog) -> Command[Any]:
    return commands.declare_schedules(b.c, [_SAID], now=b.now)


@case("put_schedule")
def _(b: Backlog) -> Command[Any]:
    return commands.put_schedule(b.c, _SAID._replace(name="by-hand"), now=b.now)


@case("pause_schedule")
def _(b: Backlog) -> Command[Any]:
    b.run(_declare(b))
    b.run(commands.resume_schedule(b.c, "s", now=b.now))
    return commands.pause_schedule(b.c, "s", now=b.now)


@case("resume_schedule")
def _(b: Backlog) -> Command[Any]:
    b.run(_declare(b))
    b.run(commands.pause_schedule(b.c, "s", now=b.now))
    return commands.resume_schedule(b.c, "s", now=b.now)


@case("remove_schedule")
def _(b: Backlog) -> Command[Any]:
    b.run(commands.put_schedule(b.c, _SAID._replace(name="gone"), now=b.now))
    return commands.remove_schedule(b.c, "gone", now=b.now)


@case("run_schedule")
def _(b: Backlog) -> Command[Any]:
    _fresh(b)
    return commands.run_schedule(b.c, "fired", token="f00d", now=b.now)


@case("schedules")
def _(b: Backlog) -> Command[Any]:
    _fresh(b)
    return commands.schedules(b.c, name="fired", runs=9, now=b.now)


@case("due_schedules")
def _due(b: Backlog) -> Command[Any]:
    _fresh(b)
    return commands.due_schedules(b.c, node="n", term=_term(b), now=b.now)


@case("fire")
def _fire(b: Backlog) -> Command[Any]:
    found = b.run(_due(b)).schedules
    each = next(each for each in found if each.name == "fired")
    return _firing(b, each)


@case("outbox")
def _(b: Backlog) -> Command[Any]:
    b.run(_fire(b))
    return commands.outbox(b.c, "default", now=b.now)


@case("relayed")
def _(b: Backlog) -> Command[Any]:
    b.run(_fire(b))
    (each,) = b.run(commands.outbox(b.c, "default", now=b.now))
    told = Relayed(each.entry, b"fired", b"due", each.fields["nominal"], "fired", "x")
    return commands.relayed(b.c, "default", [told], now=b.now)


@case("receive")
def _(b: Backlog) -> Command[Any]:
    job = _TEMPLATE.job("default", "s", "due", b.now)
    b.client.unlink(b.q.fixed("fired"), b.q.job(job.id))
    return commands.receive(b.q, [Incoming("s", "due", b.now, b.now, "skip", job)], now=b.now)


def _term(b: Backlog) -> int:
    term: int = b.run(commands.pulse(b.c, node="n", leads=True, ttl_ms=6_000, now=b.now)).term
    return term


def _fresh(b: Backlog) -> None:
    """A schedule that was just put, and nothing on its way."""
    b.client.unlink(b.c.outbox("default"), b.c.runs("fired"), b.c.schedule("fired"), b.c.fixed("schedules"))
    b.run(commands.put_schedule(b.c, _SAID._replace(name="fired"), now=b.now))


def _firing(b: Backlog, each: DueSchedule) -> Command[Any]:
    proof = {"name": each.name, "revision": each.revision, "node": "n", "term": _term(b)}
    at = {"after": b.now, "next": b.now + 1000, "look": b.now + 1000, "now": b.now}
    return commands.fire(b.c, **proof, **at, times=[b.now])
