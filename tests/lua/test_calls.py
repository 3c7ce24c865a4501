"""What a script costs: how many redis.calls it makes, fixed and for each job. A call costs half a microsecond and more.

Counted inside the script. A figure here may fall; one that has to rise wants a reason in its commit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

from taskq import commands, keys, scripts
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
from taskq.schedules.template import Template
from tests.lua.room import LEASE_MS, Room, new

Build = Callable[[Room, int], Command[Any]]


def enqueued(room: Room, n: int, **options: Any) -> list[str]:
    room.do(commands.enqueue, [new(f"j{i}", **options) for i in range(n)])
    return [f"default:j{i}" for i in range(n)]


def held(room: Room, n: int) -> list[tuple[str, int]]:
    enqueued(room, n)
    return [(job.id, job.epoch) for job in room.claim(limit=n, free={"async": n})]


def ended(room: Room, n: int) -> list[str]:
    done = [Done(*each, b"r") for each in held(room, n)]
    room.do(commands.complete, worker="n.1", done=done)
    room.now += 10**10
    return [each.id for each in done]


def expired(room: Room, n: int) -> None:
    held(room, n)
    room.do(commands.reap, lease_ms=LEASE_MS)
    for _ in range(4):
        room.now += 2000
        room.do(commands.renew, lease_ms=LEASE_MS, held=[])


def _claim(room: Room, n: int) -> Command[Any]:
    enqueued(room, n)
    return commands.claim(
        room.q, worker="n.1", request=1, lease_ms=LEASE_MS, limit=n, free={"async": n, "thread": 1}, now=room.now
    )


def _claim_again(room: Room, n: int) -> Command[Any]:
    command = _claim(room, n)
    room.run(command)
    return command


def _due(room: Room, n: int) -> Command[Any]:
    enqueued(room, n, due="+1")
    return commands.promote(room.q, now=room.now + 1)


def _reap(room: Room, n: int) -> Command[Any]:
    expired(room, n)
    return commands.reap(room.q, lease_ms=LEASE_MS, now=room.now)


def _prune(room: Room, n: int) -> Command[Any]:
    ended(room, n)
    return commands.prune(room.q, now=room.now)


def _clear(room: Room, n: int) -> Command[Any]:
    ended(room, n)
    return commands.clear(room.q, states=["completed"], now=room.now)


def _purge(room: Room, n: int) -> Command[Any]:
    enqueued(room, n)
    return commands.purge(room.q, now=room.now)


def _untarget(room: Room, n: int) -> Command[Any]:
    enqueued(room, n, needs="target=web")
    return commands.untarget(room.q, "async;target=web", why="lost", term=1, now=room.now)


def _withdraw(room: Room, n: int) -> Command[Any]:
    enqueued(room, n)
    room.claim("ext", limit=n, offer_ms=9000)
    return commands.withdraw(room.q, "ext", why="gone", term=1, now=room.now)


def _swept(room: Room, n: int) -> Command[Any]:
    room.do(commands.enqueue, [new(f"j{i}", needs=f"takes.cpu={i + 1}") for i in range(n)])
    room.do(commands.purge)
    return commands.sweep_classes(room.q, idle=[f"async;takes.cpu={i + 1}" for i in range(n)], now=room.now)


def _expire(room: Room, n: int) -> Command[Any]:
    enqueued(room, n, expires="+1")
    return commands.expire(room.q, now=room.now + 1)


def _peek(room: Room, n: int) -> Command[Any]:
    enqueued(room, n)
    return commands.peek(room.q, "available")


def _counts(room: Room, n: int) -> Command[Any]:
    enqueued(room, n)
    return commands.counts(room.q)


def _demand(room: Room, n: int) -> Command[Any]:
    enqueued(room, n)
    return commands.demand(room.q, now=room.now)


def _wait(room: Room, n: int) -> Command[Any]:
    return commands.wait(room.q, enqueued(room, n)[0])


def _start(room: Room, n: int) -> Command[Any]:
    offers = [(job.id, job.epoch) for job in room.claim(limit=n, offer_ms=5000)]
    return commands.start(room.q, worker="n.1", lease_ms=LEASE_MS, offers=offers, now=room.now)


def _on_held(operation: Callable[..., Command[Any]], name: str, row: Callable[..., Any], **options: Any) -> Build:
    def build(room: Room, n: int) -> Command[Any]:
        rows = {name: [row(*each) for each in held(room, n)]}
        return operation(room.q, now=room.now, **rows, **options)

    return build


HOLDER = {"worker": "n.1"}
COSTS: dict[str, tuple[int, int, Build]] = {
    # script: fixed, for each job, what is called
    "enqueue": (14, 3, lambda room, n: commands.enqueue(room.q, [new(f"j{i}") for i in range(n)], now=room.now)),
    "claim": (37, 2, _claim),
    "claim again": (7, 2, _claim_again),
    "classes": (2, 0, lambda room, n: _after(enqueued(room, n), commands.classes(room.q))),
    "renew": (4, 1, _on_held(commands.renew, "held", lambda job, e: Held(job, e, "n.1"), lease_ms=LEASE_MS)),
    "start": (8, 3, lambda room, n: _after(enqueued(room, n), _start(room, n))),
    "report": (1, 2, _on_held(commands.report, "reports", lambda job, e: Reported(job, e, b"p"), **HOLDER)),
    "leases": (2, 1, lambda room, n: _after(held(room, n), commands.leases(room.q, limit=n, now=room.now))),
    "complete": (16, 2, _on_held(commands.complete, "done", lambda job, e: Done(job, e, b"r"), **HOLDER)),
    "fail": (
        14,
        2,
        _on_held(commands.fail, "failures", lambda job, e: Failure(job, e, "retry", 5, "{}", "x"), **HOLDER),
    ),
    "release": (13, 3, _on_held(commands.release, "jobs", lambda job, e: Release(job, e, ""), **HOLDER)),
    "snooze": (
        12,
        2,
        _on_held(commands.snooze, "jobs", lambda i, e: Snoozed(i, e, "snooze", 5, ""), grace_ms=1, **HOLDER),
    ),
    "bury": (18, 3, _on_held(commands.bury, "jobs", lambda job, e: Buried(job, e, "lost"), why="x", **HOLDER)),
    "reap": (19, 3, _reap),
    "promote": (12, 3, _due),
    "expire": (21, 4, _expire),
    "prune": (15, 1, _prune),
    "purge": (30, 2, _purge),
    "sweep_classes": (6, 1, _swept),
    "untarget": (28, 6, _untarget),
    "withdraw": (16, 3, _withdraw),
    "clear": (7, 2, _clear),
    "cancel": (20, 4, lambda room, n: commands.cancel(room.q, enqueued(room, n), now=room.now)),
    "retry": (11, 5, lambda room, n: commands.retry(room.q, ended(room, n), now=room.now)),
    "peek": (10, 1, _peek),
    "entered": (1, 0, lambda room, n: _after(ended(room, n), commands.entered(room.q, "cancelled"))),
    "counts": (16, 0, _counts),
    "demand": (16, 0, _demand),
    "fetch": (0, 1, lambda room, n: commands.fetch(room.q, enqueued(room, n))),
    "wait": (3, 0, _wait),
    "why": (20, 0, lambda room, n: commands.why(room.q, enqueued(room, n)[-1], now=room.now)),
    "wake": (1, 1, lambda room, n: commands.wake(room.q, [f"class{i}" for i in range(n)], now=room.now)),
    "pause": (2, 0, lambda room, n: commands.pause(room.q, now=room.now)),
    "resume": (3, 0, lambda room, n: commands.resume(room.q, now=room.now)),
    "declare": (
        4,
        1,
        lambda room, n: commands.declare(room.q, kinds={f"t{i}": "async" for i in range(n)}, retention={}),
    ),
    "register_queue": (2, 0, lambda room, n: commands.register_queue(_registry(room), "default")),
    "queues": (1, 0, lambda room, n: commands.queues(_registry(room))),
    "register_node": (7, 4, lambda room, n: _node(room, n, commands.register_node)),
    "beat": (5, 4, lambda room, n: _after(room.run(_node(room, 0)), _node(room, n, commands.beat))),
    "mark_dead": (3, 2, lambda room, n: _after(_dead(room, n), _mark(room))),
    "forget_nodes": (3, 2, lambda room, n: _after(_dead(room, n), commands.forget_nodes(_registry(room), silent_ms=9))),
    "depart": (2, 0, lambda room, n: commands.depart(_registry(room), "n")),
    "nodes": (1, 1, lambda room, n: _after(_dead(room, n), commands.nodes(_registry(room), every=True, now=room.now))),
    "task_info": (1, 0, lambda room, n: commands.task_info(_registry(room), "t")),
    "pulse": (4, 0, lambda room, n: _after(_told(room, n), _pulse(room))),
    "resign": (4, 0, lambda room, _: _after(_pulse(room), _resign(room))),
    "leader": (1, 0, lambda room, _: commands.leader(_registry(room), now=room.now)),
    "order": (3, 0, lambda room, _: commands.order(_registry(room), "drain", "*", now=room.now)),
    # n: those who wait and have died.
    "lock_acquire": (15, 4, lambda room, n: _after(_lock(room, n), _acquire(room, "z"))),
    "lock_acquire again": (8, 0, lambda room, n: _after(_lock(room, n), _acquire(room, "held"))),
    "lock_extend": (
        7,
        0,
        lambda room, n: _after(
            _lock(room, n),
            commands.lock_extend(_registry(room), name="l", token="held", ttl_ms=LOCK_MS, now=room.now),
        ),
    ),
    "lock_release": (
        10,
        4,
        lambda room, n: _after(
            _lock(room, n), commands.lock_release(_registry(room), name="l", token="held", now=room.now)
        ),
    ),
    "locks": (6, 0, lambda room, n: _after(_lock(room, n), commands.locks(_registry(room), now=room.now))),
}
COSTS |= {
    # n: reservations that lapsed, or stand there.
    "reserve": (55, 0, lambda room, n: _after(_reserved(room, n, later=9000), _reserve(room, n))),
    "bind": (30, 0, lambda room, n: _after(_reserved(room, n), _bind(room))),
    "release_reservation": (10, 0, lambda room, n: _after(_reserved(room, n), _give(room))),
    "finalize": (8, 0, lambda room, n: _after(_reserved(room, n), commands.finalize(room.q, key="k0", now=room.now))),
    "sweep_reservations": (4, 5, lambda room, n: _after(_reserved(room, n, later=9000), _sweep(room))),
    "sweep_reservations again": (4, 4, lambda room, n: _after(_all_bound(room, n), _sweep(room, "bound"))),
    "reservations": (4, 2, lambda room, n: _after(_all_bound(room, n), commands.reservations(room.q, limit=100))),
    # Those of `taskq fsck`, which nobody waits for.
    "scan": (1, 0, lambda room, n: fsck.scan(room.q, f"{room.q.prefix}*", count=n)),
    "members": (2, 0, lambda room, n: _after(enqueued(room, n), fsck.members(room.q, "body:async:0"))),
    "survey_jobs": (0, 16, lambda room, n: fsck.survey_jobs(room.q, _rows(enqueued(room, n)), now=room.now)),
    "survey_lanes": (1, 15, lambda room, n: fsck.survey_lanes(room.q, _lanes(n))),
    "survey_gates": (
        0,
        5,
        lambda room, n: _after(_parked(room, n), fsck.survey_gates(room.q, _gates(n), now=room.now)),
    ),
    "survey_gates of one": (4, 7, lambda room, n: _after(_under_one(room, n), _survey_one(room))),
    "mend_gates": (20, 9, lambda room, n: _after(_parked(room, n), fsck.mend_gates(room.q, _gates(n), now=room.now))),
    "survey_keys": (0, 2, lambda room, n: fsck.survey_keys(room.q, [f"k{i}" for i in range(n)])),
    "mend_jobs": (
        20,
        16,
        lambda room, n: fsck.mend_jobs(room.q, _rows(ended(room, n)), lease_ms=LEASE_MS, now=room.now),
    ),
    "mend_lanes": (4, 14, lambda room, n: fsck.mend_lanes(room.q, _lanes(n), now=room.now)),
    "mend_keys": (1, 2, lambda room, n: fsck.mend_keys(room.q, [fsck.Wanted(f"k{i}", "hash", 5) for i in range(n)])),
}
LIMITED = "-:crm,mail=%d"


def _parked(room: Room, n: int) -> None:
    """So many keys of a limit that is shut, each with a lane under it."""
    room.run(commands.limit(room.q, "mail", {"c": 0}, now=room.now))
    room.do(commands.enqueue, [new(f"j{i}")._replace(lane=LIMITED % i) for i in range(n)])
    room.claim(limit=n)


def _gates(n: int) -> list[fsck.Gate]:
    return [fsck.Gate(f"mail={i}", "async") for i in range(n)]


def _under_one(room: Room, n: int) -> None:
    """So many lanes under one gate that is shut."""
    room.run(commands.limit(room.q, "mail", {"c": 0}, now=room.now))
    room.do(commands.enqueue, [new(f"j{i}")._replace(lane=f"k{i}:mail") for i in range(n)])
    room.claim(limit=n)


def _survey_one(room: Room) -> Command[Any]:
    return fsck.survey_gates(room.q, [fsck.Gate("mail", "async")], now=room.now)


def _claim_keyed(room: Room, n: int) -> Command[Any]:
    room.do(commands.enqueue, [new(f"j{i}")._replace(lane=f"k{i}:crm") for i in range(n)])
    return commands.claim(room.q, worker="n.1", request=1, lease_ms=LEASE_MS, limit=n, free={"async": n}, now=room.now)


def _claim_parks(room: Room, n: int) -> Command[Any]:
    room.run(commands.limit(room.q, "mail", {"c": 0}, now=room.now))
    room.do(commands.enqueue, [new(f"j{i}")._replace(lane=LIMITED % i) for i in range(n)])
    return commands.claim(room.q, worker="n.1", request=1, lease_ms=LEASE_MS, limit=n, free={"async": n}, now=room.now)


def _waiting(room: Room, n: int) -> Command[Any]:
    enqueued(room, n)
    return commands.reprioritise(room.q, "default:j0", 5, now=room.now)


COSTS |= {
    # A lane for each job, and as many fairness keys: more for each than plain lanes, and no more with more of them.
    "claim keyed": (44, 7, _claim_keyed),
    "claim parks": (30, 10, _claim_parks),
    # Of n keys it looks at 16 a call.
    "limit": (320, 1, lambda room, n: _after(_parked(room, n), commands.limit(room.q, "mail", {"c": 9}, now=room.now))),
    "limits": (16, 6, lambda room, n: _after(_parked(room, n), commands.limits(room.q, now=room.now))),
    "weigh": (2, 1, lambda room, n: commands.weigh(room.q, {f"k{i}": 2 for i in range(n)}, now=room.now)),
    "reprioritise": (21, 0, _waiting),
}
# Called without an injected time, these read the clock once.
CLOCK = {"forget_nodes": 1}


def _reserve(room: Room, n: int) -> Command[Any]:
    return commands.reserve(room.q, token=f"default:{n}", key=f"k{n}", most=1000, ttl_ms=5000, now=room.now)


def _reserved(room: Room, n: int, later: int = 0) -> None:
    for i in range(n):
        assert room.run(_reserve(room, i)).word == "reserved"
    room.now += later


def _bind(room: Room) -> Command[Any]:
    return commands.bind(room.q, token="default:0", job=new("bound"), now=room.now)


def _all_bound(room: Room, n: int) -> None:
    _reserved(room, n)
    for i in range(n):
        room.do(commands.bind, token=f"default:{i}", job=new(f"bound{i}"))


def _give(room: Room) -> Command[Any]:
    return commands.release_reservation(room.q, token="default:0", call="x", now=room.now)


def _sweep(room: Room, which: Literal["unbound", "bound"] = "unbound") -> Command[Any]:
    return commands.sweep_reservations(room.q, which, older_ms=0, limit=100, now=room.now)


def _rows(ids: list[str]) -> list[fsck.Row]:
    return [fsck.Row(id.encode(), "async:0", "1-1") for id in ids]


def _lanes(n: int) -> list[fsck.Lane]:
    return [fsck.Lane("async", str(i)) for i in range(n)]


def _node(
    room: Room, n: int, command: Callable[..., Command[Any]] = commands.register_node, node: str = "n"
) -> Command[Any]:
    tasks = [(f"t{i}", "q", "async") for i in range(n)]
    return command(_registry(room), node=node, ttl_ms=9_000, fields={"state": "active"}, tasks=tasks, now=room.now)


def _dead(room: Room, n: int) -> None:
    for i in range(n):
        room.run(_node(room, 0, node=f"n{i}"))
    room.now += 31_000


def _mark(room: Room) -> Command[Any]:
    return commands.mark_dead(_registry(room), node="n", term=room.run(_pulse(room)).term, now=room.now)


def _told(room: Room, n: int) -> None:
    for _ in range(n):
        room.run(commands.order(_registry(room), "drain", "*", now=room.now))


def _pulse(room: Room) -> Command[Any]:
    return commands.pulse(_registry(room), node="n", leads=True, ttl_ms=6_000, now=room.now)


def _resign(room: Room) -> Command[Any]:
    term = room.run(_pulse(room)).term
    return commands.resign(_registry(room), node="n", term=term, now=room.now)


LOCK_MS = 60_000


def _acquire(room: Room, token: str) -> Command[Any]:
    return commands.lock_acquire(
        _registry(room), name="l", token=token, ttl_ms=LOCK_MS, waits=True, owner="h:1", now=room.now
    )


def _lock(room: Room, n: int) -> None:
    """Held by one, and n died while they waited for it."""
    room.run(_acquire(room, "held"))
    for i in range(n):
        room.run(_acquire(room, f"w{i}"))
    room.now += 10_000


def _said(n: int) -> list[Declared]:
    template = Template("t", "async", 0, "", "", {}).pack()
    return [Declared(f"s{i}", '{"every_ms":1000}', "skip", "default", "t", template) for i in range(n)]


def _declare(room: Room, n: int) -> Command[Any]:
    return commands.declare_schedules(_registry(room), _said(n), now=room.now)


def _declared(room: Room, n: int) -> None:
    room.run(_declare(room, n))


def _steer(room: Room, operation: Callable[..., Command[Any]]) -> Command[Any]:
    return operation(_registry(room), "s0", now=room.now)


def _paused(room: Room) -> None:
    _declared(room, 1)
    room.run(_steer(room, commands.pause_schedule))


def _unseen(room: Room) -> None:
    _declared(room, 1)
    room.now += 200_000


def _run(room: Room) -> Command[Any]:
    return commands.run_schedule(_registry(room), "s0", token="f00d", now=room.now)


def _list(room: Room) -> Command[Any]:
    return commands.schedules(_registry(room), runs=9, now=room.now)


def _due_ones(room: Room, n: int) -> Command[Any]:
    _declared(room, n)
    return commands.due_schedules(_registry(room), node="n", term=room.run(_pulse(room)).term, now=room.now)


def _fire(room: Room, n: int) -> Command[Any]:
    due = room.run(_due_ones(room, 1)).schedules[0]
    times = [room.now + i for i in range(n)]
    at = {"after": room.now, "next": room.now + 1000, "look": room.now + 1000, "now": room.now}
    return commands.fire(_registry(room), node="n", term=room.now, name="s0", revision=due.revision, **at, times=times)


def _fired(room: Room, n: int) -> None:
    room.run(_fire(room, n))


def _messages(room: Room, n: int) -> list[Incoming]:
    return [Incoming(f"s{i}", "due", room.now, room.now, "skip", new(f"s{i}", schedule=f"s{i}")) for i in range(n)]


def _received(room: Room, n: int) -> None:
    room.do(commands.receive, _messages(room, n))


def _receive_again(room: Room, n: int) -> Command[Any]:
    return commands.receive(room.q, _messages(room, n), now=room.now)


def _relayed(room: Room, n: int) -> Command[Any]:
    _fired(room, n)
    waiting = room.run(commands.outbox(_registry(room), "default", now=room.now))
    told = [Relayed(each.entry, b"s0", b"due", each.fields["nominal"], "fired", "j") for each in waiting]
    return commands.relayed(_registry(room), "default", told, now=room.now)


def _after(_: object, command: Command[Any]) -> Command[Any]:
    return command


def _registry(room: Room) -> keys.ClusterKeys:
    return keys.cluster(room.q.namespace)


COSTS |= {
    "declare_schedules": (2, 7, lambda room, n: commands.declare_schedules(_registry(room), _said(n), now=room.now)),
    "declare_schedules again": (2, 5, lambda room, n: _after(_declared(room, n), _declare(room, n))),
    "put_schedule": (8, 0, lambda room, n: commands.put_schedule(_registry(room), _said(1)[0], now=room.now)),
    "pause_schedule": (3, 0, lambda room, n: _after(_declared(room, 1), _steer(room, commands.pause_schedule))),
    "resume_schedule": (4, 0, lambda room, n: _after(_paused(room), _steer(room, commands.resume_schedule))),
    "remove_schedule": (4, 0, lambda room, n: _after(_unseen(room), _steer(room, commands.remove_schedule))),
    "run_schedule": (9, 0, lambda room, n: _after(_declared(room, 1), _run(room))),
    "schedules": (2, 2, lambda room, n: _after(_declared(room, n), _list(room))),
    "due_schedules": (5, 2, _due_ones),
    "fire": (14, 2, _fire),
    "outbox": (1, 1, lambda room, n: _after(_fired(room, n), commands.outbox(_registry(room), "default"))),
    "receive": (22, 4, lambda room, n: commands.receive(room.q, _messages(room, n), now=room.now)),
    "receive again": (8, 3, lambda room, n: _after(_received(room, n), _receive_again(room, n))),
    # Each of n messages of one schedule looks for its run among n.
    "relayed": (5, 4, _relayed),
}


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("n", [1, 60])
def test_a_script_makes_no_more_calls_than_this(room, name, n):
    fixed, each, build = COSTS[name]
    _, counted = room.count(build(room, n))
    assert counted["KEYS"] == counted["SMEMBERS"] * (name != "queues") == 0
    assert counted.total() <= fixed + each * n + CLOCK.get(name, 0), counted


def test_every_script_has_its_figure():
    assert {name.split()[0] for name in COSTS} == set(scripts.names())


def test_the_hottest_scripts_need_two_calls_a_job_and_one_write_a_batch(room):
    """Claim: read and write the record. Finish: the same. All sets are written once a batch."""
    for name in ("claim", "complete"):
        room.client.flushall()
        room.now += 10**6
        _, counted = room.count(COSTS[name][2](room, 100))
        assert counted["HSET"] <= 102
        assert counted["HGETALL"] + counted["HMGET"] <= 103
        assert counted.total() <= 238
        room._requests.clear()
