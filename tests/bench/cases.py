"""The scripts of a queue, called as its callers call it beside a backlog: what is needed for a call is put there first.

Each case prepares its call and gives the command that is to be measured. A batch is the same on a queue of any size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taskq import commands
from taskq.commands import Buried, Command, Done, Failure, Held, Release, Snoozed
from tests.bench.backlog import DAY_MS, ERROR, LEASE_MS, Backlog

Case = Callable[[Backlog], Command[Any]]
CASES: dict[str, Case] = {}


def case(title: str) -> Callable[[Case], Case]:
    """Keeps a case under its title."""

    def keep(made: Case) -> Case:
        CASES[title] = made
        return made

    return keep


# --- adding and claiming


@case("enqueue")
def _(b: Backlog) -> Command[Any]:
    return commands.enqueue(b.q, b.new(), now=b.now)


@case("enqueue, for later")
def _(b: Backlog) -> Command[Any]:
    return commands.enqueue(b.q, b.new(due=f"+{DAY_MS}", expires=f"+{2 * DAY_MS}"), now=b.now)


@case("enqueue, sent again")
def _(b: Backlog) -> Command[Any]:
    jobs = b.new()
    b.run(commands.enqueue(b.q, jobs, now=b.now))
    return commands.enqueue(b.q, jobs, now=b.now)


@case("claim")
def _(b: Backlog) -> Command[Any]:
    b.add()
    return b.claim()


@case("claim, asked again")
def _(b: Backlog) -> Command[Any]:
    b.add()
    claim = b.claim()
    b.run(claim)
    return claim


@case("claim, as many are due")
def _(b: Backlog) -> Command[Any]:
    b.add()
    b.add(due="+1000")
    b.now += 1000
    return b.claim()


@case("claim, given back before")
def _(b: Backlog) -> Command[Any]:
    jobs = [Release(job.id, job.epoch, "") for job in b.held()]
    b.run(commands.release(b.q, worker="n.1", jobs=jobs, now=b.now))
    return b.claim()


# --- what holders say


@case("renew")
def _(b: Backlog) -> Command[Any]:
    return commands.renew(b.q, lease_ms=LEASE_MS, held=[Held(job.id, job.epoch, "n.1") for job in b.held()], now=b.now)


@case("complete")
def _(b: Backlog) -> Command[Any]:
    return commands.complete(b.q, worker="n.1", done=[Done(job.id, job.epoch, b"r") for job in b.held()], now=b.now)


@case("fail, to be retried")
def _(b: Backlog) -> Command[Any]:
    failures = [Failure(job.id, job.epoch, "retry", DAY_MS, ERROR, "x") for job in b.held()]
    return commands.fail(b.q, worker="n.1", failures=failures, now=b.now)


@case("fail, for good")
def _(b: Backlog) -> Command[Any]:
    failures = [Failure(job.id, job.epoch, "fail", 0, ERROR, "x") for job in b.held()]
    return commands.fail(b.q, worker="n.1", failures=failures, now=b.now)


@case("release")
def _(b: Backlog) -> Command[Any]:
    return commands.release(b.q, worker="n.1", jobs=[Release(job.id, job.epoch, "") for job in b.held()], now=b.now)


@case("snooze")
def _(b: Backlog) -> Command[Any]:
    jobs = [Snoozed(job.id, job.epoch, "snooze", DAY_MS, "x") for job in b.held()]
    return commands.snooze(b.q, worker="n.1", grace_ms=1000, jobs=jobs, now=b.now)


# --- what nodes do for others


@case("bury")
def _(b: Backlog) -> Command[Any]:
    worker = f"n.{b.now}"
    jobs = [Buried(job.id, job.epoch, "lost") for job in b.held(worker=worker)]
    return commands.bury(b.q, worker=worker, why="SIGKILL", jobs=jobs, now=b.now)


@case("reap")
def _(b: Backlog) -> Command[Any]:
    b.held(lease_ms=1000)
    reap_ms = 4000  # it is quiet for one lease from the first reap on
    for _ in range(3):
        b.run(commands.reap(b.q, lease_ms=reap_ms, limit=b.batch, now=b.now))
        b.now += 1400
    return commands.reap(b.q, lease_ms=reap_ms, limit=b.batch, now=b.now)


@case("promote")
def _(b: Backlog) -> Command[Any]:
    b.add(due="+1000")
    b.now += 1000
    return commands.promote(b.q, limit=b.batch, now=b.now)


@case("expire")
def _(b: Backlog) -> Command[Any]:
    b.add(expires="+1000")
    b.now += 1000
    return commands.expire(b.q, limit=b.batch, now=b.now)


@case("prune")
def _(b: Backlog) -> Command[Any]:
    done = [Done(job.id, job.epoch, b"") for job in b.held()]
    b.run(commands.complete(b.q, worker="n.1", done=done, now=b.now))
    b.now += 15_000
    return commands.prune(b.q, limit=b.batch, now=b.now)


@case("wake")
def _(b: Backlog) -> Command[Any]:
    return commands.wake(b.q, ["async", "thread"], now=b.now)


# --- what people do


@case("cancel, out of the middle")
def _(b: Backlog) -> Command[Any]:
    return commands.cancel(b.q, b.middle(), now=b.now)


@case("cancel, running")
def _(b: Backlog) -> Command[Any]:
    return commands.cancel(b.q, [job.id for job in b.held()], now=b.now)


@case("cancel, scheduled")
def _(b: Backlog) -> Command[Any]:
    return commands.cancel(b.q, b.add(due=f"+{DAY_MS}"), now=b.now)


@case("retry")
def _(b: Backlog) -> Command[Any]:
    return commands.retry(b.q, b.failed(), now=b.now)


@case("purge, available")
def _(b: Backlog) -> Command[Any]:
    b.add()
    return commands.purge(b.q, states=["available"], limit=b.batch, now=b.now)


@case("purge, scheduled")
def _(b: Backlog) -> Command[Any]:
    b.add(due=f"+{DAY_MS}")
    return commands.purge(b.q, states=["scheduled"], limit=b.batch, now=b.now)


@case("clear")
def _(b: Backlog) -> Command[Any]:
    b.failed()
    return commands.clear(b.q, states=["failed"], limit=b.batch, now=b.now)


@case("pause")
def _(b: Backlog) -> Command[Any]:
    return commands.pause(b.q, now=b.now)


@case("resume")
def _(b: Backlog) -> Command[Any]:
    b.run(commands.pause(b.q, now=b.now))
    return commands.resume(b.q, now=b.now)


# --- looking


@case("counts")
def _(b: Backlog) -> Command[Any]:
    return commands.counts(b.q, now=b.now)


@case("demand")
def _(b: Backlog) -> Command[Any]:
    return commands.demand(b.q, now=b.now)


@case("peek, waiting")
def _(b: Backlog) -> Command[Any]:
    b.add()
    return commands.peek(b.q, "available", limit=b.batch, now=b.now)


@case("peek, waiting, deep")
def _(b: Backlog) -> Command[Any]:
    return commands.peek(b.q, "available", offset=max(0, min(2000, b.sizes.waiting - 2 * b.batch)), limit=b.batch)


@case("peek, scheduled, the middle")
def _(b: Backlog) -> Command[Any]:
    b.add(due=f"+{DAY_MS}")
    return commands.peek(b.q, "scheduled", offset=b.sizes.scheduled // 2, limit=b.batch, now=b.now)


@case("peek, failed")
def _(b: Backlog) -> Command[Any]:
    b.failed()
    return commands.peek(b.q, "failed", limit=b.batch, now=b.now)


@case("entered, scheduled, the middle")
def _(b: Backlog) -> Command[Any]:
    return commands.entered(b.q, "scheduled", offset=b.sizes.scheduled // 2)


@case("fetch")
def _(b: Backlog) -> Command[Any]:
    return commands.fetch(b.q, b.middle())


@case("wait")
def _(b: Backlog) -> Command[Any]:
    return commands.wait(b.q, b.middle()[0])
