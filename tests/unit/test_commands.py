"""Operations as values: the right script, keys and arguments by the names in its header, and a reader. No Redis."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from taskq import commands, keys, scripts
from taskq.commands import (
    Buried,
    Claim,
    Claimed,
    Counts,
    Declared,
    Done,
    Failure,
    Held,
    Incoming,
    NewJob,
    Page,
    Purged,
    Reaped,
    Relayed,
    Release,
    Snoozed,
)
from taskq.commands.admission import fingerprint
from taskq.errors import InvalidTransition, JobAlreadyExists, JobNotFound, LeadershipLost, NodeNotFound

Q = keys.queue("ns", "email")
C = keys.cluster("ns")
JOB = NewJob("email:1", "token", "t", "async", 5, "+10", "", {"payload": b"\x00", "keep": 0})
DECLARED = Declared("s", "{}", "skip", "email", "t", b"\x91")
LEADER = {"node": "n", "term": 6}

CALLS: dict[str, commands.Command[Any]] = {
    "enqueue": commands.enqueue(Q, [JOB, JOB], exists="raise", now=7),
    "claim": commands.claim(
        Q,
        worker="w",
        request=3,
        lease_ms=8000,
        limit=2,
        free={"async": 2, "thread": 1, "+gpu": 9},
        narrow={"async;takes.gpu=1": {"async": 1, "+gpu": 1000}},
        now=7,
    ),
    "classes": commands.classes(Q, targets=["web-1"]),
    "renew": commands.renew(Q, lease_ms=8000, held=[Held("email:1", 9, "w")], now=7),
    "complete": commands.complete(Q, worker="w", done=[Done("email:1", 9, b"r")], now=7),
    "fail": commands.fail(Q, worker="w", failures=[Failure("email:1", 9, "retry", 5, "{}", "why")], now=7),
    "release": commands.release(Q, worker="w", jobs=[Release("email:1", 9, "thread")], now=7),
    "snooze": commands.snooze(Q, worker="w", grace_ms=5, jobs=[Snoozed("email:1", 9, "snooze", 5, "")], now=7),
    "bury": commands.bury(Q, worker="w", why="SIGKILL", jobs=[Buried("email:1", 9, "lost")], now=7),
    "reap": commands.reap(Q, lease_ms=8000, limit=5, now=7),
    "promote": commands.promote(Q, limit=5, now=7),
    "expire": commands.expire(Q, limit=5, now=7),
    "prune": commands.prune(Q, limit=5, now=7),
    "wake": commands.wake(Q, {"async": 1}, now=7),
    "why": commands.why(Q, "email:1", now=7),
    "start": commands.start(Q, worker="w", lease_ms=8000, offers=[("email:1", 9)], now=7),
    "report": commands.report(Q, worker="w", reports=[commands.Reported("email:1", 9, b"p")], now=7),
    "leases": commands.leases(Q, ["email:1"], offset=4, limit=5, now=7),
    "sweep_classes": commands.sweep_classes(Q, idle=["async;takes.cpu=1"], limit=5, now=7),
    "untarget": commands.untarget(Q, "async;target=web-1", why="lost", term=9, limit=5, now=7),
    "withdraw": commands.withdraw(Q, "x", why="busy", term=9, offset=2, limit=5, now=7),
    "reserve": commands.reserve(Q, token="email:r", key="k", most=3, outside=1, ttl_ms=9, now=7),
    "bind": commands.bind(Q, token="email:r", job=JOB, now=7),
    "release_reservation": commands.release_reservation(Q, token="email:r", call="f00d", now=7),
    "finalize": commands.finalize(Q, key="k", now=7),
    "sweep_reservations": commands.sweep_reservations(Q, "bound", older_ms=9, skip=4, limit=5, now=7),
    "reservations": commands.reservations(Q, offset=4, limit=5, now=7),
    "cancel": commands.cancel(Q, ["email:1"], running=False, force=True, partial=True, token="f00d", now=7),
    "retry": commands.retry(Q, ["email:1"], partial=True, token="f00d", now=7),
    "pause": commands.pause(Q, now=7),
    "resume": commands.resume(Q, now=7),
    "purge": commands.purge(Q, states=["available"], limit=5, now=7),
    "clear": commands.clear(Q, states=["failed"], older_than_ms=9, before_ms=6, limit=5, now=7),
    "peek": commands.peek(Q, "failed", offset=1, limit=2, now=7),
    "entered": commands.entered(Q, "failed", offset=1, limit=2, now=7),
    "counts": commands.counts(Q, now=7),
    "demand": commands.demand(Q, now=7),
    "fetch": commands.fetch(Q, ["email:1"]),
    "wait": commands.wait(Q, "email:1"),
    "declare": commands.declare(
        Q, kinds={"t": "async"}, retention={"keep_failed": 9}, limits={"crm": "c=2"}, by_call=True, age_ms=5, now=7
    ),
    "register_queue": commands.register_queue(C, "email"),
    "queues": commands.queues(C),
    "register_node": commands.register_node(
        C, node="n", ttl_ms=5, fields={"pid": 1}, known=commands.Registered(2, 6), now=7
    ),
    "beat": commands.beat(C, node="n", ttl_ms=5, fields={"pid": 1}, tasks=[("t", "email", "async")], now=7),
    "mark_dead": commands.mark_dead(C, node="n", term=6, limit=9, now=7),
    "forget_nodes": commands.forget_nodes(C, silent_ms=8, limit=9, now=7),
    "depart": commands.depart(C, "n"),
    "nodes": commands.nodes(C, node="n", limit=6, offset=1, now=7),
    "task_info": commands.task_info(C, "t", now=7),
    "pulse": commands.pulse(C, node="n", leads=True, ttl_ms=5, after="1-1", now=7),
    "resign": commands.resign(C, node="n", term=6, now=7),
    "leader": commands.leader(C, now=7),
    "order": commands.order(C, "drain", "*", by="me", more="{}", term=6, now=7),
    "lock_acquire": commands.lock_acquire(
        C, name="l", token="f00d", ttl_ms=9, waits=True, place="8", owner="h:1", job="email:1", now=7
    ),
    "lock_extend": commands.lock_extend(C, name="l", token="f00d", ttl_ms=9, now=7),
    "lock_release": commands.lock_release(C, name="l", fence=8, now=7),
    "locks": commands.locks(C, name="l", offset=1, limit=2, now=7),
}
CALLS |= {
    "declare_schedules": commands.declare_schedules(C, [DECLARED], declared_at=5, now=7),
    "put_schedule": commands.put_schedule(C, DECLARED, now=7),
    "pause_schedule": commands.pause_schedule(C, "s", now=7),
    "resume_schedule": commands.resume_schedule(C, "s", now=7),
    "remove_schedule": commands.remove_schedule(C, "s", now=7),
    "run_schedule": commands.run_schedule(C, "s", token="f00d", now=7),
    "schedules": commands.schedules(C, name="s", offset=1, limit=2, runs=3, now=7),
    "due_schedules": commands.due_schedules(C, **LEADER, limit=4, now=7),
    "fire": commands.fire(C, **LEADER, name="s", revision=8, after=9, next=None, look=10, times=[5, 6], now=7),
    "outbox": commands.outbox(C, "email", after="1-1", limit=4, now=7),
    "receive": commands.receive(Q, [Incoming("s", "due", 5, 6, "skip", JOB)], term=6, now=7),
    "relayed": commands.relayed(C, "email", [Relayed("1-1", b"s", b"due", b"5", "fired", "j")], again_ms=4, now=7),
}
OF_THE_CLUSTER = {
    *("register_queue", "queues", "beat", "depart", "nodes", "task_info"),
    *("register_node", "mark_dead", "forget_nodes", "pulse", "resign", "leader", "order"),
    *("lock_acquire", "lock_extend", "lock_release", "locks"),
    *(f"{verb}_schedule" for verb in ("put", "pause", "resume", "remove", "run")),
    *("declare_schedules", "due_schedules", "schedules", "fire", "outbox", "relayed"),
}
ARGUMENTS: dict[str, list[Any]] = {
    "enqueue": [
        7,
        "raise",
        *["email:1", "token", "t", "async", "", 5, "+10", "", "", "", 2, "payload", b"\x00", "keep", 0] * 2,
    ],
    "claim": [
        *(7, "w", 3, 8000, 2, 0, "", "", 3, "async", 2, "thread", 1, "+gpu", 9),
        *("async;takes.gpu=1", 2, "async", 1, "+gpu", 1000),
    ],
    "classes": ["", "web-1"],
    "renew": [7, 8000, "email:1", 9, "w"],
    "complete": [7, "w", "email:1", 9, b"r"],
    "fail": [7, "w", "email:1", 9, "retry", 5, "{}", "why"],
    "release": [7, "w", "email:1", 9, "thread"],
    "snooze": [7, "w", 5, "email:1", 9, "snooze", 5, ""],
    "bury": [7, "w", "SIGKILL", "email:1", 9, "lost", 0],
    "reap": [7, 8000, 5],
    "promote": [7, 5],
    "expire": [7, 5],
    "prune": [7, 5],
    "wake": [7, "async"],
    "why": [7, "email:1"],
    "start": [7, "w", 8000, "email:1", 9],
    "report": [7, "w", "email:1", 9, b"p"],
    "leases": [7, 4, 5, "email:1"],
    "sweep_classes": [7, 5, "async;takes.cpu=1"],
    "untarget": [7, "async;target=web-1", "lost", 5, 9],
    "withdraw": [7, "x", "busy", 2, 5, 9],
    "reserve": [7, "email:r", "k", 3, 1, 9],
    "bind": [
        7,
        "email:r",
        fingerprint(JOB),
        *["email:1", "token", "t", "async", "", 5, "+10", "", "", "", 2, "payload", b"\x00", "keep", 0],
    ],
    "release_reservation": [7, "email:r", "f00d"],
    "finalize": [7, "k"],
    "sweep_reservations": [7, "bound", 9, 4, 5],
    "reservations": [7, 4, 5],
    "cancel": [7, 0, 1, 1, "f00d", "email:1"],
    "retry": [7, 1, "f00d", "email:1"],
    "pause": [7],
    "resume": [7],
    "purge": [7, 5, "available"],
    "clear": [7, 9, 6, 5, "failed"],
    "peek": [7, "failed", 1, 2],
    "entered": [7, "failed", 1, 2],
    "counts": [7],
    "demand": [7],
    "fetch": ["", "email:1"],
    "wait": ["", "email:1"],
    "declare": [7, 1, 1, "call", 5, "keep_failed", 9, "crm", "c=2", "t", "async"],
    "register_queue": ["", "email"],
    "queues": [""],
    "register_node": [7, "n", 5, 30_000, 2, 6, 1, "pid", 1],
    "beat": [7, "n", 5, 30_000, 1, "pid", 1, "t", "email", "async", "", ""],
    "mark_dead": [7, "n", 6, 30_000, 9],
    "forget_nodes": [7, 8, 9],
    "depart": ["", "n"],
    "nodes": [7, "n", 30_000, 6, 1],
    "task_info": [7, "t"],
    "pulse": [7, "n", 1, 5, "1-1"],
    "resign": [7, "n", 6],
    "leader": [7],
    "order": [7, "drain", "*", "me", "{}", 6],
    "lock_acquire": [7, "l", "f00d", 9, 1, "8", "h:1", "email:1"],
    "lock_extend": [7, "l", "f00d", 9],
    "lock_release": [7, "l", "", 8],
    "locks": [7, "l", 1, 2],
    "declare_schedules": [7, 5, *DECLARED],
    "put_schedule": [7, *DECLARED],
    "pause_schedule": [7, "s"],
    "resume_schedule": [7, "s"],
    "remove_schedule": [7, "s"],
    "run_schedule": [7, "s", "f00d"],
    "schedules": [7, "s", 1, 2, 3],
    "due_schedules": [7, "n", 6, 4],
    "fire": [7, "n", 6, "s", 8, 9, "", 10, 5, 6],
    "outbox": [7, "email", "1-1", 4],
    "receive": [
        7,
        6,
        "s",
        "due",
        5,
        6,
        "skip",
        *["email:1", "", "t", "async", "", 5, "+10", "", "", ""],
        2,
        "payload",
        b"\x00",
        "keep",
        0,
    ],
    "relayed": [7, "email", 4, "1-1", b"s", b"due", b"5", "fired", "j"],
}


# What `fsck` looks and mends with: its operations have tests of their own, in tests/lua/test_fsck.py.
CALLS |= {
    "limit": commands.limit(Q, "crm=acme", {"c": 5, "until": "+30"}, task="t", now=7),
    "limits": commands.limits(Q, cursor="3", now=7),
    "weigh": commands.weigh(Q, {"acme": 3, "bolt": None}, now=7),
    "reprioritise": commands.reprioritise(Q, "email:1", -5, now=7),
}
ARGUMENTS |= {
    "limit": [7, "crm=acme", "", "t", "c", 5, "until", "+30"],
    "limits": [7, "3"],
    "weigh": [7, "0", "acme", 3, "bolt", ""],
    "reprioritise": [7, "email:1", -5],
}
FSCK = {
    "members",
    "scan",
    *(f"{verb}_{what}" for verb in ("mend", "survey") for what in ("gates", "jobs", "keys", "lanes")),
}


def test_every_script_has_its_operation():
    assert set(CALLS) == set(scripts.names()) - FSCK


@pytest.mark.parametrize("name", CALLS)
def test_it_calls_the_script_of_its_name(name):
    assert CALLS[name].script == scripts.load(name)


@pytest.mark.parametrize("name", CALLS)
def test_its_keys_are_those_of_the_header_with_the_prefix_first(name):
    call, prefix = CALLS[name], "ns:{_}:" if name in OF_THE_CLUSTER else "ns:{email}:"
    assert call.keys == (prefix, *(prefix + key for key in call.script.keys[1:]))


@pytest.mark.parametrize("name", CALLS)
def test_its_arguments_stand_where_the_header_has_them(name):
    assert CALLS[name].args == ARGUMENTS[name]


@pytest.mark.parametrize("name", CALLS)
def test_the_servers_clock_is_the_default(name):
    """Tests give a time, nobody else does."""
    operation = getattr(commands, name)
    if "now" in inspect.signature(operation).parameters:
        assert inspect.signature(operation).parameters["now"].default is None
    assert scripts.load(name).args[0] == "now"


def test_only_what_adds_jobs_waits_for_replicas():
    assert {name for name, call in CALLS.items() if call.durable} == {"enqueue", "bind"}
    assert CALLS["enqueue"].durable == ("email:1", "email:1")


def test_an_argument_that_the_header_has_must_be_given():
    with pytest.raises(KeyError):
        commands.command.build("reap", Q, int, {"now": None})


# --- readers


def test_enqueue_reads_words_or_raises():
    assert CALLS["enqueue"].read([b"ok", b"available", b"existing"]) == ["available", "existing"]
    with pytest.raises(JobAlreadyExists, match="email:1"):
        CALLS["enqueue"].read([b"exists", b"email:1"])


def test_claim_reads_jobs_whole():
    flat = [b"task", b"t", b"payload", b"\xff\x00"]
    read = CALLS["claim"].read([b"ok", [[b"email:1", b"1800000000000", 2, flat]], 15, 3, 9])
    job = Claimed("email:1", 1_800_000_000_000, 2, {b"task": b"t", b"payload": b"\xff\x00"})
    assert read == Claim("ok", [job], 15, 3, 9)
    assert CALLS["claim"].read([b"paused", [], -1, 0, 9]) == Claim("paused", [], None, 0, 9)


@pytest.mark.parametrize("name", ["renew", "complete", "fail", "release", "snooze"])
def test_holders_hear_a_word_for_each(name):
    assert CALLS[name].read([b"ok", b"lost"]) == ["ok", "lost"]


def test_bury_and_reap_read_moves():
    assert CALLS["bury"].read([b"email:1", b"available", b"email:2", b"failed"]) == [
        ("email:1", "available"),
        ("email:2", "failed"),
    ]
    assert CALLS["reap"].read([b"250", b"1"]) == Reaped([], 250, due=True)
    assert CALLS["reap"].read([b"0", b"0", b"email:1", b"failed"]) == Reaped([("email:1", "failed")], 0, due=False)


@pytest.mark.parametrize("name", ["cancel", "retry"])
def test_refusals_are_errors_that_name_the_job_and_both_states(name):
    assert CALLS[name].read([b"ok", b"missing"]) == ["missing"]
    with pytest.raises(JobNotFound, match="email:1"):
        CALLS[name].read([b"refused", b"email:1", b"missing", b""])
    target = "cancelled" if name == "cancel" else "available"
    with pytest.raises(InvalidTransition, match=f"email:1.*running.*{target}") as caught:
        CALLS[name].read([b"refused", b"email:1", b"running", b"running"])
    assert (caught.value.from_state, caught.value.to_state) == ("running", target)


def test_looking_reads_records():
    flat = [b"task", b"t"]
    assert CALLS["peek"].read([7, b"email:1", flat, b"email:2", []]) == Page(7, [("email:1", {b"task": b"t"})])
    assert CALLS["fetch"].read([flat]) == [("email:1", {b"task": b"t"})]
    assert CALLS["fetch"].read([[]]) == [None]
    assert CALLS["wait"].read(flat) == {b"task": b"t"}
    assert CALLS["wait"].read([]) is None


def test_counts_reads_all_states():
    names = ["pending", "scheduled", "retryable", "completed", "failed", "cancelled", "running", "available", "lanes"]
    reply: list[Any] = [each for n, name in enumerate(names) for each in (name.encode(), n)]
    reply += [b"pauses", 2]
    assert CALLS["counts"].read([*reply, b"paused", b"0"]) == Counts(0, 1, 7, 6, 2, 3, 4, 5, paused=False, pauses=2)
    assert CALLS["counts"].read([*reply, b"paused", b"1800000000000"]).paused


def test_the_rest_reads_plain_values():
    assert CALLS["purge"].read([3, 5]) == Purged(3, 5)
    assert [CALLS[name].read(1) for name in ("pause", "resume", "register_queue", "depart")] == [True] * 4
    assert [CALLS[name].read(3) for name in ("promote", "expire", "prune", "clear")] == [3] * 4
    assert CALLS["declare"].read([3, b"crm", b"c=2"]) == commands.Declaration(3, {"crm": "c=2"})
    assert CALLS["queues"].read([b"b", b"a"]) == ["a", "b"]
    assert CALLS["nodes"].read([3, b"7", [[b"id", b"n"]]]) == (3, 7, [{"id": "n"}])
    assert CALLS["register_node"].read([b"2", b"7"]) == (2, 7)
    assert CALLS["mark_dead"].read([b"ok", b"n"]) == ["n"]
    assert CALLS["forget_nodes"].read(2) == 2
    assert CALLS["demand"].read([b"7", 1, 2, b"3", b"4", b"5"]) == (7, 1, 2, 3, 4, 5)
    assert CALLS["leader"].read([b"n", b"8", b"7", b"9"]) == ("n", 8, 7, 9)
    assert CALLS["pulse"].read([b"n", b"8", 5, b"7", b"1-1", [[b"verb", b"drain", b"to", b"*", b"at", b"6"], []]]) == (
        "n", 8, 5, 7, "1-1", (("drain", "*", "", "", 6),),
    )  # fmt: skip
    with pytest.raises(LeadershipLost):
        CALLS["mark_dead"].read([b"lost"])
    for word in (b"unknown", b"dead"):
        with pytest.raises(NodeNotFound):
            CALLS["beat"].read(word)
    assert CALLS["task_info"].read([]) is None
    known = [b"queue", b"email", b"last_seen", b"5"]
    assert CALLS["task_info"].read(known) == {"queue": "email", "last_seen": "5"}
    assert CALLS["task_info"].read(known[:2]) is None, "damaged"


def test_an_answer_may_be_changed_further():
    call = CALLS["pause"].then(lambda changed: "now" if changed else "already")
    assert (call.read(1), call.read(0)) == ("now", "already")
    assert call.args == CALLS["pause"].args
    assert CALLS["enqueue"].then(len).durable == CALLS["enqueue"].durable
