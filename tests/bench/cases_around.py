"""The scripts of the registry, of leader and locks, and fsck's, called as in `cases.py`; `CASES` holds all of both."""

from __future__ import annotations

from typing import Any

from taskq import commands
from taskq.commands import Command, fsck
from tests.bench.backlog import LEASE_MS, Backlog
from tests.bench.cases import CASES, case

__all__ = ["CASES"]

# --- the registry


@case("declare")
def _(b: Backlog) -> Command[Any]:
    return commands.declare(b.q, kinds={"t": "async"}, retention={}, now=b.now)


@case("register_queue")
def _(b: Backlog) -> Command[Any]:
    return commands.register_queue(b.c, "default")


@case("queues")
def _(b: Backlog) -> Command[Any]:
    return commands.queues(b.c)


@case("beat")
def _(b: Backlog) -> Command[Any]:
    b.run(_node(b))
    return commands.beat(b.c, node="n", ttl_ms=9000, fields={}, tasks=[("t", "default", "async")], now=b.now)


@case("register_node")
def _node(b: Backlog) -> Command[Any]:
    return commands.register_node(b.c, node="n", ttl_ms=9000, fields={"state": "active"}, now=b.now)


@case("mark_dead")
def _(b: Backlog) -> Command[Any]:
    term = b.run(commands.pulse(b.c, node="n", leads=True, ttl_ms=6_000, now=b.now)).term
    return commands.mark_dead(b.c, node="n", term=term, now=b.now)


@case("forget_nodes")
def _(b: Backlog) -> Command[Any]:
    return commands.forget_nodes(b.c, now=b.now)


@case("nodes")
def _(b: Backlog) -> Command[Any]:
    return commands.nodes(b.c, now=b.now)


@case("task_info")
def _(b: Backlog) -> Command[Any]:
    return commands.task_info(b.c, "t", now=b.now)


@case("depart")
def _(b: Backlog) -> Command[Any]:
    return commands.depart(b.c, "n")


# --- leader and locks


@case("pulse")
def _(b: Backlog) -> Command[Any]:
    return commands.pulse(b.c, node="n", leads=True, ttl_ms=9000, now=b.now)


@case("leader")
def _(b: Backlog) -> Command[Any]:
    return commands.leader(b.c, now=b.now)


@case("order")
def _(b: Backlog) -> Command[Any]:
    return commands.order(b.c, "drain", "n", now=b.now)


@case("resign")
def _(b: Backlog) -> Command[Any]:
    heard = b.run(commands.pulse(b.c, node="n", leads=True, ttl_ms=9000, now=b.now))
    return commands.resign(b.c, node="n", term=heard.term, now=b.now)


@case("lock_acquire")
def _(b: Backlog) -> Command[Any]:
    return commands.lock_acquire(b.c, name=f"l{b.now}", token="a", ttl_ms=1000, now=b.now)


@case("lock_extend")
def _(b: Backlog) -> Command[Any]:
    b.run(commands.lock_acquire(b.c, name="l", token="a", ttl_ms=1000, now=b.now))
    return commands.lock_extend(b.c, name="l", token="a", ttl_ms=1000, now=b.now)


@case("lock_release")
def _(b: Backlog) -> Command[Any]:
    b.run(commands.lock_acquire(b.c, name="l", token="a", ttl_ms=1000, now=b.now))
    return commands.lock_release(b.c, name="l", token="a", now=b.now)


@case("locks")
def _(b: Backlog) -> Command[Any]:
    return commands.locks(b.c, now=b.now)


# --- fsck


@case("scan")
def _(b: Backlog) -> Command[Any]:
    return fsck.scan(b.q, f"{b.q.prefix}*")


@case("members, of a sorted set")
def _(b: Backlog) -> Command[Any]:
    return fsck.members(b.q, "scheduled", count=b.batch)


@case("members, of a stream")
def _(b: Backlog) -> Command[Any]:
    return fsck.members(b.q, "body:async:0", count=b.batch)


@case("why")
def _(b: Backlog) -> Command[Any]:
    return commands.why(b.q, _rows(b)[0].id.decode(), now=b.now)


@case("survey_jobs")
def _(b: Backlog) -> Command[Any]:
    return fsck.survey_jobs(b.q, _rows(b), now=b.now)


@case("survey_lanes")
def _(b: Backlog) -> Command[Any]:
    return fsck.survey_lanes(b.q, [fsck.Lane("async", "0")])


@case("survey_gates")
def _(b: Backlog) -> Command[Any]:
    return fsck.survey_gates(b.q, [fsck.Gate("+"), fsck.Gate("crm", "async")], now=b.now)


@case("mend_gates")
def _(b: Backlog) -> Command[Any]:
    return fsck.mend_gates(b.q, [fsck.Gate("+"), fsck.Gate("crm", "async")], now=b.now)


@case("survey_keys")
def _(b: Backlog) -> Command[Any]:
    return fsck.survey_keys(b.q, ["leases", "meta", "body:async:0"])


@case("mend_jobs")
def _(b: Backlog) -> Command[Any]:
    return fsck.mend_jobs(b.q, _rows(b), lease_ms=LEASE_MS, now=b.now)


@case("mend_lanes")
def _(b: Backlog) -> Command[Any]:
    return fsck.mend_lanes(b.q, [fsck.Lane("async", "0")], now=b.now)


@case("mend_keys")
def _(b: Backlog) -> Command[Any]:
    return fsck.mend_keys(b.q, [fsck.Wanted("leases", "zset", None), fsck.Wanted("body:async:0", "stream", None)])


def _rows(b: Backlog) -> list[fsck.Row]:
    return [fsck.Row(id.encode(), "async:0") for id in b.middle()]
