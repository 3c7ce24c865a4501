"""Every script of lua/, called as its callers call it beside a backlog: what is needed for a call is put there first.

Each case prepares its call and gives the command that is to be measured. A batch is the same on a queue of any size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taskq import commands
from taskq.commands import Buried, Command, Done, Failure, Held, Release, Snoozed, fsck
from tests.bench.backlog import DAY_MS, ERROR, LEASE_MS, Backlog

Case = Callable[[Backlog], Command[Any]]
CASES: dict[str, Case] = {}


def _case(title: str) -> Callable[[Case], Case]:
    def keep(case: Case) -> Case:
        CASES[title] = case
        return case

    return keep


# --- adding and claiming


@_case("enqueue")
def _(b: Backlog) -> Command[Any]:
    return commands.enqueue(b.q, b.new(), now=b.now)


@_case("enqueue, for later")
def _(b: Backlog) -> Command[Any]:
    return commands.enqueue(b.q, b.new(due=f"+{DAY_MS}", expires=f"+{2 * DAY_MS}"), now=b.now)


@_case("enqueue, sent again")
def _(b: Backlog) -> Command[Any]:
    jobs = b.new()
    b.run(commands.enqueue(b.q, jobs, now=b.now))
    return commands.enqueue(b.q, jobs, now=b.now)


@_case("claim")
def _(b: Backlog) -> Command[Any]:
    b.add()
    return b.claim()


@_case("claim, asked again")
def _(b: Backlog) -> Command[Any]:
    b.add()
    claim = b.claim()
    b.run(claim)
    return claim


@_case("claim, as many are due")
def _(b: Backlog) -> Command[Any]:
    b.add()
    b.add(due="+1000")
    b.now += 1000
    return b.claim()


@_case("claim, given back before")
def _(b: Backlog) -> Command[Any]:
    jobs = [Release(job.id, job.epoch, "") for job in b.held()]
    b.run(commands.release(b.q, worker="n.1", jobs=jobs, now=b.now))
    return b.claim()


# --- what holders say


@_case("renew")
def _(b: Backlog) -> Command[Any]:
    return commands.renew(b.q, lease_ms=LEASE_MS, held=[Held(job.id, job.epoch, "n.1") for job in b.held()], now=b.now)


@_case("complete")
def _(b: Backlog) -> Command[Any]:
    return commands.complete(b.q, worker="n.1", done=[Done(job.id, job.epoch, b"r") for job in b.held()], now=b.now)


@_case("fail, to be retried")
def _(b: Backlog) -> Command[Any]:
    failures = [Failure(job.id, job.epoch, "retry", DAY_MS, ERROR, "x") for job in b.held()]
    return commands.fail(b.q, worker="n.1", failures=failures, now=b.now)


@_case("fail, for good")
def _(b: Backlog) -> Command[Any]:
    failures = [Failure(job.id, job.epoch, "fail", 0, ERROR, "x") for job in b.held()]
    return commands.fail(b.q, worker="n.1", failures=failures, now=b.now)


@_case("release")
def _(b: Backlog) -> Command[Any]:
    return commands.release(b.q, worker="n.1", jobs=[Release(job.id, job.epoch, "") for job in b.held()], now=b.now)


@_case("snooze")
def _(b: Backlog) -> Command[Any]:
    jobs = [Snoozed(job.id, job.epoch, "snooze", DAY_MS, "x") for job in b.held()]
    return commands.snooze(b.q, worker="n.1", grace_ms=1000, jobs=jobs, now=b.now)


# --- what nodes do for others


@_case("bury")
def _(b: Backlog) -> Command[Any]:
    worker = f"n.{b.now}"
    jobs = [Buried(job.id, job.epoch, "lost") for job in b.held(worker=worker)]
    return commands.bury(b.q, worker=worker, why="SIGKILL", jobs=jobs, now=b.now)


@_case("reap")
def _(b: Backlog) -> Command[Any]:
    b.held(lease_ms=1000)
    reap_ms = 4000  # it is quiet for one lease from the first reap on
    for _ in range(3):
        b.run(commands.reap(b.q, lease_ms=reap_ms, limit=b.batch, now=b.now))
        b.now += 1400
    return commands.reap(b.q, lease_ms=reap_ms, limit=b.batch, now=b.now)


@_case("promote")
def _(b: Backlog) -> Command[Any]:
    b.add(due="+1000")
    b.now += 1000
    return commands.promote(b.q, limit=b.batch, now=b.now)


@_case("expire")
def _(b: Backlog) -> Command[Any]:
    b.add(expires="+1000")
    b.now += 1000
    return commands.expire(b.q, limit=b.batch, now=b.now)


@_case("prune")
def _(b: Backlog) -> Command[Any]:
    done = [Done(job.id, job.epoch, b"") for job in b.held()]
    b.run(commands.complete(b.q, worker="n.1", done=done, now=b.now))
    b.now += 15_000
    return commands.prune(b.q, limit=b.batch, now=b.now)


@_case("wake")
def _(b: Backlog) -> Command[Any]:
    return commands.wake(b.q, ["async", "thread"], now=b.now)


# --- what people do


@_case("cancel, out of the middle")
def _(b: Backlog) -> Command[Any]:
    return commands.cancel(b.q, b.middle(), now=b.now)


@_case("cancel, running")
def _(b: Backlog) -> Command[Any]:
    return commands.cancel(b.q, [job.id for job in b.held()], now=b.now)


@_case("cancel, scheduled")
def _(b: Backlog) -> Command[Any]:
    return commands.cancel(b.q, b.add(due=f"+{DAY_MS}"), now=b.now)


@_case("retry")
def _(b: Backlog) -> Command[Any]:
    return commands.retry(b.q, b.failed(), now=b.now)


@_case("purge, available")
def _(b: Backlog) -> Command[Any]:
    b.add()
    return commands.purge(b.q, states=["available"], limit=b.batch, now=b.now)


@_case("purge, scheduled")
def _(b: Backlog) -> Command[Any]:
    b.add(due=f"+{DAY_MS}")
    return commands.purge(b.q, states=["scheduled"], limit=b.batch, now=b.now)


@_case("clear")
def _(b: Backlog) -> Command[Any]:
    b.failed()
    return commands.clear(b.q, states=["failed"], limit=b.batch, now=b.now)


@_case("pause")
def _(b: Backlog) -> Command[Any]:
    return commands.pause(b.q, now=b.now)


@_case("resume")
def _(b: Backlog) -> Command[Any]:
    b.run(commands.pause(b.q, now=b.now))
    return commands.resume(b.q, now=b.now)


# --- looking


@_case("counts")
def _(b: Backlog) -> Command[Any]:
    return commands.counts(b.q, now=b.now)


@_case("peek, waiting")
def _(b: Backlog) -> Command[Any]:
    b.add()
    return commands.peek(b.q, "available", limit=b.batch, now=b.now)


@_case("peek, waiting, deep")
def _(b: Backlog) -> Command[Any]:
    return commands.peek(b.q, "available", offset=max(0, min(5000, b.sizes.waiting - 2 * b.batch)), limit=b.batch)


@_case("peek, scheduled, the middle")
def _(b: Backlog) -> Command[Any]:
    b.add(due=f"+{DAY_MS}")
    return commands.peek(b.q, "scheduled", offset=b.sizes.scheduled // 2, limit=b.batch, now=b.now)


@_case("peek, failed")
def _(b: Backlog) -> Command[Any]:
    b.failed()
    return commands.peek(b.q, "failed", limit=b.batch, now=b.now)


@_case("fetch")
def _(b: Backlog) -> Command[Any]:
    return commands.fetch(b.q, b.middle())


@_case("wait")
def _(b: Backlog) -> Command[Any]:
    return commands.wait(b.q, b.middle()[0])


# --- the registry


@_case("declare")
def _(b: Backlog) -> Command[Any]:
    return commands.declare(b.q, kinds={"t": "async"}, retention={}, now=b.now)


@_case("register_queue")
def _(b: Backlog) -> Command[Any]:
    return commands.register_queue(b.c, "default")


@_case("queues")
def _(b: Backlog) -> Command[Any]:
    return commands.queues(b.c)


@_case("beat")
def _(b: Backlog) -> Command[Any]:
    return commands.beat(b.c, node="n", ttl_ms=9000, fields={"a": 1}, tasks=[("t", "default", "async")], now=b.now)


@_case("nodes")
def _(b: Backlog) -> Command[Any]:
    return commands.nodes(b.c, now=b.now)


@_case("task_info")
def _(b: Backlog) -> Command[Any]:
    return commands.task_info(b.c, "t", now=b.now)


@_case("depart")
def _(b: Backlog) -> Command[Any]:
    return commands.depart(b.c, "n")


# --- leader and locks


@_case("pulse")
def _(b: Backlog) -> Command[Any]:
    return commands.pulse(b.c, node="n", leads=True, ttl_ms=9000, now=b.now)


@_case("leader")
def _(b: Backlog) -> Command[Any]:
    return commands.leader(b.c, now=b.now)


@_case("order")
def _(b: Backlog) -> Command[Any]:
    return commands.order(b.c, "drain", "n", now=b.now)


@_case("resign")
def _(b: Backlog) -> Command[Any]:
    heard = b.run(commands.pulse(b.c, node="n", leads=True, ttl_ms=9000, now=b.now))
    return commands.resign(b.c, node="n", term=heard.term, now=b.now)


@_case("lock_acquire")
def _(b: Backlog) -> Command[Any]:
    return commands.lock_acquire(b.c, name=f"l{b.now}", token="a", ttl_ms=1000, now=b.now)


@_case("lock_extend")
def _(b: Backlog) -> Command[Any]:
    b.run(commands.lock_acquire(b.c, name="l", token="a", ttl_ms=1000, now=b.now))
    return commands.lock_extend(b.c, name="l", token="a", ttl_ms=1000, now=b.now)


@_case("lock_release")
def _(b: Backlog) -> Command[Any]:
    b.run(commands.lock_acquire(b.c, name="l", token="a", ttl_ms=1000, now=b.now))
    return commands.lock_release(b.c, name="l", token="a", now=b.now)


@_case("locks")
def _(b: Backlog) -> Command[Any]:
    return commands.locks(b.c, now=b.now)


# --- fsck


@_case("scan")
def _(b: Backlog) -> Command[Any]:
    return fsck.scan(b.q, f"{b.q.prefix}*")


@_case("members, of a sorted set")
def _(b: Backlog) -> Command[Any]:
    return fsck.members(b.q, "scheduled", count=b.batch)


@_case("members, of a stream")
def _(b: Backlog) -> Command[Any]:
    return fsck.members(b.q, "body:async:0", count=b.batch)


@_case("survey_jobs")
def _(b: Backlog) -> Command[Any]:
    return fsck.survey_jobs(b.q, _rows(b), now=b.now)


@_case("survey_lanes")
def _(b: Backlog) -> Command[Any]:
    return fsck.survey_lanes(b.q, [fsck.Lane("async", "0")])


@_case("survey_keys")
def _(b: Backlog) -> Command[Any]:
    return fsck.survey_keys(b.q, ["leases", "meta", "body:async:0"])


@_case("mend_jobs")
def _(b: Backlog) -> Command[Any]:
    return fsck.mend_jobs(b.q, _rows(b), lease_ms=LEASE_MS, now=b.now)


@_case("mend_lanes")
def _(b: Backlog) -> Command[Any]:
    return fsck.mend_lanes(b.q, [fsck.Lane("async", "0")], now=b.now)


@_case("mend_keys")
def _(b: Backlog) -> Command[Any]:
    return fsck.mend_keys(b.q, [fsck.Wanted("leases", "zset", None), fsck.Wanted("body:async:0", "stream", None)])


def _rows(b: Backlog) -> list[fsck.Row]:
    return [fsck.Row(id.encode(), "async:0") for id in b.middle()]
