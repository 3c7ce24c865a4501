"""A tour: every script is called once on a queue and its registry, as its callers call it. Whatever stands there, each
must answer, and the reader of each reply must understand it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from taskq import commands, keys, listing
from taskq.commands import (
    Buried,
    Command,
    Declared,
    Done,
    Failure,
    Held,
    Incoming,
    Relayed,
    Release,
    Reported,
    Snoozed,
    fsck,
)
from taskq.fsck import judge
from taskq.nodes import _page as _nodes
from taskq.record.lease import lease_of
from taskq.schedules.schedule import schedule_of
from taskq.schedules.template import Template
from tests.lua.room import LEASE_MS, Room, new
from tests.lua.test_cancel import seed

ACTIVE = {"state": "active"}
TASKS = [("t", "default", "async")]
NEEDS = ("label.gpu=a100;takes.cpu=2", "target=web-1")
UNTARGETED = ("async;target=web-1", f"thread;{'0' * 40}")
STATES = ("scheduled", "retryable", "completed", "failed", "cancelled", "running", "available")
ALL_STATES = (*STATES, "pending")
WAIT_FOR = "default:available"


def lively(room: Room) -> dict[str, int]:
    """A queue with a job in each state, one in front of a lane, and a registered node. Epochs of what runs."""
    c = keys.cluster(room.q.namespace)
    room.run(commands.register_queue(c, "default"))
    room.run(commands.register_node(c, node="n", ttl_ms=9_000, fields=ACTIVE, tasks=TASKS))
    room.do(commands.declare, kinds={"t": "async", "u": "thread"}, retention={"keep_completed": 86_400_000})
    for state in STATES:
        seed(room, state, state, **({} if state == "running" else {"expires": "+10000000"}))
    room.add("threaded", executor="thread")
    room.add("front", priority=1)
    (front,) = room.claim("n.0", limit=1)
    room.do(commands.release, worker="n.0", jobs=[Release(front.id, front.epoch, "")])
    return {"default:running": int(room.job("running")["epoch"])}  # type: ignore[index]


def _said(room: Room) -> Iterator[Command[Any]]:
    """What operators say of limits, tasks and keys, and of a job's priority."""
    q, now = room.q, room.now
    yield commands.limit(q, "crm", {"c": 1, "r": "5/1000/5"}, now=now)
    yield commands.limit(q, "crm=acme", {"until": "+5"}, now=now)
    yield commands.limit(q, "*u", {"paused": 1}, now=now)
    yield commands.limit(q, "queue", {"c": 1000, "age": 60_000}, now=now)
    yield commands.weigh(q, {"acme": 3}, now=now)
    yield commands.enqueue(q, [new(f"keyed{n}")._replace(lane="acme:crm=acme") for n in range(3)], now=now)
    yield commands.limits(q, now=now)
    # On a second tour it may have ended, which is refused.
    yield replace(commands.reprioritise(q, "default:keyed2", 4, now=now), read=lambda reply: reply)
    yield commands.limit(q, "*u", {"paused": ""}, now=now)


def stops(room: Room, epochs: dict[str, int], worker: str = "n.9") -> Iterator[Command[Any]]:
    """Every command, to be called one after the other; what a claim gives is finished in each of the ways."""
    q, now = room.q, room.now
    held = [Held(id, epoch, "n.1") for id, epoch in epochs.items()]
    ids = [f"default:{state}" for state in STATES]
    yield commands.renew(q, lease_ms=LEASE_MS, held=held, now=now)
    yield commands.counts(q, now=now)
    yield commands.demand(q, now=now)
    for state in ALL_STATES:
        yield commands.peek(q, state, now=now).then(lambda page: [listing.job_shown(*row) for row in page.records])
        if state != "available":
            yield commands.entered(q, state, now=now)
    yield commands.fetch(q, [*ids, "default:nobody"])
    yield commands.wait(q, WAIT_FOR)
    yield commands.enqueue(q, [new(f"{worker}{n}") for n in range(6)], now=now)
    yield commands.enqueue(q, [new("available", token="x"), new(f"{worker}late", due="+5", expires="+500")], now=now)
    narrow = [new(f"{worker}n{n}")._replace(needs=needs) for n, needs in enumerate(NEEDS)]
    yield commands.enqueue(q, narrow, now=now)
    yield commands.classes(q, targets=["web-1"])
    for klass in UNTARGETED:
        for word in ("busy", "lost"):
            yield commands.untarget(q, klass, why=word, term=room.now, now=now)
    yield from _said(room)
    yield commands.sweep_classes(q, idle=UNTARGETED, now=now)
    yield commands.promote(q, now=now)
    yield commands.expire(q, now=now)
    yield commands.reap(q, lease_ms=LEASE_MS, now=now)
    for request in (1, 2, 2):
        claim = commands.claim(
            q, worker=worker, request=request, lease_ms=LEASE_MS, limit=100, free={"async": 50, "thread": 50}, now=now
        )
        jobs: list[commands.Claimed] = []
        yield claim.then(lambda claim, jobs=jobs: jobs.extend(claim.jobs))
        yield from _ends(room, jobs, worker)
    yield from _offers(room, worker)
    yield commands.cancel(q, ids, partial=True, now=now)
    yield commands.retry(q, ids, partial=True, now=now)
    yield commands.bury(q, worker=worker, why="x", jobs=[], now=now)
    yield commands.purge(q, limit=2, now=now)
    yield commands.prune(q, now=now)
    yield commands.clear(q, states=["completed"], limit=1, now=now)
    yield commands.pause(q, now=now)
    yield commands.resume(q, now=now)
    yield commands.wake(q, ["async"], now=now)
    for id in ids:
        yield commands.why(q, id, now=now)
    yield commands.declare(q, kinds={"t": "async"}, retention={}, now=now)
    yield from _admission(room, worker)
    yield from _fsck(room, ids)
    yield from _registry(room)


def _offers(room: Room, worker: str) -> Iterator[Command[Any]]:
    """Offered, started, told of, and seen."""
    q, now, offers = room.q, room.now, list[tuple[str, int]]()
    yield commands.enqueue(q, [new(f"{worker}offered{n}", expires="+500") for n in range(2)], now=now)
    claim = commands.claim(
        q,
        worker=worker,
        request=1,
        lease_ms=LEASE_MS,
        limit=2,
        free={"async": 2},
        offer_ms=9,
        poller="p",
        call="c",
        now=now,
    )
    yield claim.then(lambda claim: offers.extend((job.id, job.epoch) for job in claim.jobs))
    yield commands.start(q, worker=worker, lease_ms=LEASE_MS, offers=offers, now=now)
    for word in ("busy", "gone"):
        yield commands.withdraw(q, worker, why=word, term=room.now, now=now)
    yield commands.classes(q, targets=[commands.EVERY_TARGET], now=now)
    yield commands.report(q, worker=worker, reports=[Reported(*offer, b"p") for offer in offers], now=now)
    yield commands.leases(q, now=now).then(lambda found: [lease_of(*job, found.now_ms) for job in found.jobs])
    yield commands.leases(q, ["default:available", "default:nobody"], now=now)


def _admission(room: Room, worker: str) -> Iterator[Command[Any]]:
    """Two slots are taken, one is bound, both are given up; one is left to lapse."""
    q, now = room.q, room.now
    for n in range(3):
        yield commands.reserve(q, token=f"default:{worker}{n}", key=f"k{n}", most=1000, ttl_ms=5000, now=now)
    yield commands.bind(q, token=f"default:{worker}0", job=new(f"{worker}bound"), now=now)
    yield commands.reservations(q, now=now)
    yield commands.why(q, f"default:{worker}bound", now=now)
    yield commands.cancel(q, [f"default:{worker}bound"], partial=True, now=now)
    # Whose key was spoilt isn't known, and then nothing is given back.
    for n in range(2):
        release = commands.release_reservation(q, token=f"default:{worker}{n}", call="x", now=now)
        yield replace(release, read=lambda reply: reply)
    yield commands.finalize(q, key="k0", now=now)
    yield commands.sweep_reservations(q, "unbound", now=now)
    yield commands.sweep_reservations(q, "bound", older_ms=0, now=now)


def _ends(room: Room, jobs: list[commands.Claimed], worker: str) -> Iterator[Command[Any]]:
    """Half of what was claimed is finished well, the rest in all the other ways."""
    q, now, half = room.q, room.now, len(jobs) // 2
    yield commands.complete(q, worker=worker, done=[Done(job.id, job.epoch, b"r") for job in jobs[:half]], now=now)
    rest = jobs[half:]
    failures = [Failure(job.id, job.epoch, ("retry", "fail")[n % 2], 5, "{}", "x") for n, job in enumerate(rest[:2])]
    yield commands.fail(q, worker=worker, failures=failures, now=now)
    yield commands.release(q, worker=worker, jobs=[Release(job.id, job.epoch, "") for job in rest[2:3]], now=now)
    snoozed = [Snoozed(job.id, job.epoch, ("snooze", "unknown")[n % 2], 5, "x") for n, job in enumerate(rest[3:5])]
    yield commands.snooze(q, worker=worker, grace_ms=1000, jobs=snoozed, now=now)
    yield commands.bury(q, worker=worker + "x", why="x", jobs=[Buried(job.id, job.epoch, "lost") for job in rest[5:]])


def _fsck(room: Room, ids: list[str]) -> Iterator[Command[Any]]:
    q, now = room.q, room.now
    rows = [fsck.Row(id.encode(), lane, entry) for id in ids for lane in ("", "async:0") for entry in ("", "1-1")]
    lanes = [fsck.Lane("async", "0"), fsck.Lane("async", "1"), fsck.Lane("thread", "0"), fsck.Lane("", "x")]
    yield fsck.scan(q, f"{q.prefix}*")
    for name in ("leases", "body:async:0", "front:async:1", "levels:async", "nothing"):
        yield fsck.members(q, name)
    yield fsck.survey_jobs(q, rows, now=now).then(lambda facts: [list(judge.of_job(each)) for each in facts])
    yield fsck.survey_lanes(q, lanes).then(lambda facts: [list(judge.of_lane(each)) for each in facts])
    yield fsck.survey_keys(q, ["leases", "meta"])
    gates = [fsck.Gate("+"), fsck.Gate("crm", "async"), fsck.Gate("queue", "async"), fsck.Gate("", "x")]
    yield fsck.survey_gates(q, gates, now=now).then(lambda facts: [list(judge.of_gate(each)) for each in facts])
    yield fsck.mend_gates(q, gates, now=now)
    yield fsck.mend_jobs(q, rows, lease_ms=LEASE_MS, now=now)
    yield fsck.mend_lanes(q, lanes, now=now)
    yield fsck.mend_keys(q, [fsck.Wanted("leases", "zset", None), fsck.Wanted("claimed:n.9", "hash", 5000)])


def _registry(room: Room) -> Iterator[Command[Any]]:
    c = keys.cluster(room.q.namespace)
    yield commands.queues(c)
    yield commands.nodes(c, every=True).then(lambda found: _nodes(found, 9, 0, leader="n"))
    yield commands.task_info(c, "t")
    yield commands.register_node(c, node="n", ttl_ms=9_000, fields=ACTIVE, tasks=TASKS)
    yield commands.beat(c, node="n", ttl_ms=9_000, fields=ACTIVE, tasks=TASKS)
    yield commands.register_queue(c, "default")
    yield commands.order(c, "drain", "*", by="somebody")
    yield commands.pulse(c, node="n", leads=True, ttl_ms=6_000)
    yield commands.leader(c).then(listing.leader)
    yield from _dead(room, c)
    yield commands.forget_nodes(c)
    yield commands.depart(c, "n")
    yield commands.resign(c, node="n", term=1)
    yield from _locks(c)
    yield from _schedules(room, c)


def _schedules(room: Room, c: keys.ClusterKeys) -> Iterator[Command[Any]]:
    """Declared, put, steered, fired by a leader and by hand, relayed twice."""
    template = Template("t", "async", 0, "", "", {"payload": b""}).pack()
    said = [Declared(name, '{"every_ms":1000}', "skip", "default", "t", template) for name in ("s", "s2")]
    yield commands.declare_schedules(c, said, now=room.now)
    yield commands.put_schedule(c, said[0], now=room.now)
    yield commands.pause_schedule(c, "s", now=room.now)
    yield commands.resume_schedule(c, "s", now=room.now)
    terms: list[int] = []
    pulse = commands.pulse(c, node="n", leads=True, ttl_ms=6_000, now=room.now)
    yield pulse.then(lambda answer: terms.append(answer.term))
    term = terms[0] if terms else 1  # who may not ask isn't told
    due: list[commands.DueSchedule] = []
    look = commands.due_schedules(c, node="n", term=term, now=room.now)
    yield look.then(lambda answer: due.extend(answer.schedules))
    at = {"after": room.now, "next": room.now + 1000, "look": room.now + 1000, "now": room.now}
    for each in [*due, commands.DueSchedule("s", "{}", "default", 0, 0, 1)]:
        proof = {"name": each.name, "revision": each.revision}
        yield commands.fire(c, node="n", term=term, **proof, **at, times=[room.now])
    yield commands.run_schedule(c, "s", token="f00d", now=room.now)
    waiting: list[commands.Outgoing] = []
    yield commands.outbox(c, "default").then(waiting.extend)
    job = new("fired", schedule="s")
    messages = [Incoming(name, "due", room.now, room.now, "skip", job) for name in ("s", "s2", "s")]
    yield commands.receive(room.q, messages, term=term, now=room.now)
    told = [Relayed(each.entry, b"s", b"due", str(room.now).encode(), "fired", "j") for each in waiting]
    yield commands.relayed(c, "default", told, again_ms=5, now=room.now)
    yield commands.schedules(c, runs=9).then(
        lambda found: [schedule_of(each, found.now_ms) for each in found.schedules]
    )
    yield commands.remove_schedule(c, "s", now=room.now)
    yield commands.resign(c, node="n", term=term, now=room.now)


def _dead(room: Room, c: keys.ClusterKeys) -> Iterator[Command[Any]]:
    """Whoever leads looks for the dead."""
    led: list[commands.Leader] = []
    yield commands.leader(c).then(led.append)
    node, term = (led[0].node, led[0].term) if led else ("n", 1)  # who may not look isn't told
    yield commands.mark_dead(c, node=node, term=term)


def _locks(c: keys.ClusterKeys) -> Iterator[Command[Any]]:
    """Held by one, waited for by two, given up by one of them, taken away."""
    for token in ("a", "b", "c", "a", "c"):
        yield commands.lock_acquire(c, name="l", token=token, ttl_ms=60_000, waits=True, owner="h:1")
    yield commands.lock_extend(c, name="l", token="a", ttl_ms=60_000)
    yield commands.locks(c).then(lambda found: listing.page_of_locks(found, 50, 0))
    yield commands.lock_release(c, name="l", token="b")
    yield commands.lock_release(c, name="l", token="a")
    yield commands.lock_acquire(c, name="l", token="d", ttl_ms=60_000)
    yield commands.lock_release(c, name="l", fence=1)


def tour(room: Room, epochs: dict[str, int], worker: str = "n.9") -> None:
    """Calls them all."""
    for command in stops(room, epochs, worker):
        room.run(command)


def drains(room: Room) -> None:
    """Whatever was done to the queue, new jobs run, and what is left of the others ends or stands still: none spins."""
    room.add("canary")
    claimed = []
    for n in range(20):
        room.now += 100_000
        room.do(commands.promote)
        jobs = room.claim(f"n.d{n}")
        claimed += [job.id for job in jobs]
        done = [Done(job.id, job.epoch, b"") for job in jobs]
        words = room.do(commands.complete, worker=f"n.d{n}", done=done)
        assert words == ["ok"] * len(done)
        room.watched()
        if not jobs and n > 1:
            break
    assert not jobs, f"there is no end: {claimed}"
    assert "default:canary" in claimed
