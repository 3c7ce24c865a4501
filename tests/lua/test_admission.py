"""Admission: a slot of the queue is taken before there is a job; the job that is bound to it starts without another.

After each way that a bound job can go, nothing of its reservation holds anything: `slots:+` and `reserved:` are empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from taskq import commands
from taskq.commands import Bound, Buried, Claimed, Done, Failure, Release, Reserved, Snoozed
from taskq.commands.admission import fingerprint
from taskq.errors import AdmissionConflict, AdmissionNotFound, DuplicateJob, ServerFull
from taskq.keys import QueueKeys
from tests.lua.lead import check, told
from tests.lua.room import LEASE_MS, T0, Room, new
from tests.lua.test_fsck import sound
from tests.lua.test_full import full

TTL_MS = 5000


def reserve(room: Room, name: str = "r", key: str = "k", most: int = 9, **options: Any) -> Reserved:
    answer: Reserved = room.do(
        commands.reserve, token=f"default:{name}", key=key, most=most, **{"ttl_ms": TTL_MS, **options}
    )
    return answer


def bind(room: Room, job: commands.NewJob | None = None, name: str = "r") -> Bound:
    answer: Bound = room.do(commands.bind, token=f"default:{name}", job=job or new("a"))
    return answer


def bound(room: Room, **options: Any) -> None:
    assert reserve(room).word == "reserved"
    assert bind(room, new("a", **options)).word in {"available", "scheduled"}


def release(room: Room, name: str = "r", call: str = "x") -> None:
    room.do(commands.release_reservation, token=f"default:{name}", call=call)


def limited(room: Room, most: int) -> None:
    room.client.hset(room.q.fixed("limits"), "queue", f"c={most}")


def ran(room: Room, worker: str = "n.1", limit: int = 100) -> list[str]:
    return [job.id.removeprefix("default:") for job in room.claim(worker, limit)]


def holds_nothing(room: Room) -> bool:
    """No reservation holds a slot or a key."""
    found = room.keyspace.dump()
    return not [name for name in found if name in {"slots:+", "reservations"} or name.startswith("reserved:")]


# --- reserve


def test_a_reservation_takes_a_slot_and_a_key(room):
    room.look()
    assert reserve(room) == ("reserved", T0 + TTL_MS)
    assert room.changed() == {
        "reservation:default:r key": "k",
        "reservation:default:r created_at": str(T0),
        "reservation:default:r expires_at": str(T0 + TTL_MS),
        "reservations default:r": T0 + TTL_MS,
        "reserved:k": "default:r",
    }
    assert TTL_MS < room.keyspace.ttls["reserved:k"] <= TTL_MS + 60_000
    assert TTL_MS < room.keyspace.ttls["reservation:default:r"] <= TTL_MS + 60_000


def test_the_same_token_again_is_the_same_call(room):
    reserve(room, most=1)
    room.look()
    room.now += 1000
    assert reserve(room, most=1) == ("reserved", T0 + TTL_MS)
    assert room.changed() == {}


def test_one_reservation_a_key_and_that_is_told_first(room):
    reserve(room, most=1)
    room.look()
    assert reserve(room, "r2", "k", most=1) == ("duplicate", 0)
    assert reserve(room, "r2", "k", most=9) == ("duplicate", 0)
    assert reserve(room, "r2", "other", most=1) == ("no_capacity", 1)
    assert room.changed() == {}


def test_what_takes_slots(room):
    """What others say they have, what runs, what is reserved, what is bound and waits; not what only waits."""
    room.add("waits")
    assert reserve(room, "r0", "k0", most=3, outside=3) == ("no_capacity", 3)
    room.add("x", priority=5)
    assert ran(room, limit=1) == ["x"]
    reserve(room, "r1", "k1")
    reserve(room, "r2", "k2")
    bind(room, new("bound"), "r2")
    assert reserve(room, "r3", "k3", most=3) == ("no_capacity", 3)
    assert reserve(room, "r3", "k3", most=4, outside=1) == ("no_capacity", 4)
    assert ran(room, limit=1) == ["bound"]
    assert reserve(room, "r3", "k3", most=3) == ("no_capacity", 3)
    room.now += TTL_MS
    assert reserve(room, "r3", "k3", most=3).word == "reserved"


def test_a_limit_that_was_lowered_gives_nothing_while_more_are_taken(room):
    for n in range(3):
        reserve(room, f"r{n}", f"k{n}", most=3)
    assert reserve(room, "r9", "k9", most=1) == ("no_capacity", 3)


def test_what_lapsed_holds_nothing_and_goes_with_the_next(room):
    for n in range(20):
        reserve(room, f"r{n}", f"k{n}", most=20)
    room.now += TTL_MS
    assert reserve(room, "new", "k7", most=1) == ("reserved", room.now + TTL_MS)
    with pytest.raises(AdmissionNotFound):
        bind(room, name="r7")
    left = room.keyspace.dump()["reservations"]
    assert len(left) == 20 - 8 - 1 + 1, "so many a call, and whoever held the key"
    while room.do(commands.sweep_reservations, "unbound")[0]:
        pass
    assert room.keyspace.dump()["reservations"] == {"default:new": room.now + TTL_MS}
    assert room.keyspace.dump()["reserved:k7"] == "default:new"


def test_a_key_is_free_again_once_its_job_has_had_its_first_attempt(room):
    bound(room)
    assert reserve(room, "r2").word == "duplicate"
    (job,) = room.claim()
    assert reserve(room, "r2").word == "duplicate"
    room.do(commands.fail, worker="n.1", failures=[Failure(job.id, job.epoch, "retry", 9000, "{}", "no")])
    assert reserve(room, "r2").word == "reserved"


@pytest.mark.parametrize(
    "wrong",
    [
        {"most": 0},
        {"outside": -1},
        {"ttl_ms": 0},
        {"ttl_ms": 86_400_001},
        {"key": ""},
        {"key": "a b"},
        {"key": "k" * 65},
        {"name": "a b"},
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(room, wrong):
    room.look()
    with pytest.raises(Exception, match="cannot be"):
        reserve(room, **wrong)
    assert room.changed() == {}


# --- bind


def test_bind_makes_one_waiting_job_above_all_others(room):
    reserve(room)
    room.look()
    room.now += 10
    assert bind(room, new("a", payload=b"1", priority=-5)) == ("available", "default:a")
    changed = room.changed()
    assert changed["job:default:a lane"] == "-:+k"
    assert changed["job:default:a state"] == "available"
    assert {row: value for row, value in changed.items() if not row.startswith(("job:", "classes", "meta"))} == {
        "front:async:512:-:+k default:a": room.now,
        "lanes:async:512:- async:512:-:+k": room.now,
        "groups:async:512 -": 0,
        "levels:async 512": 512,
        "reservation:default:r job": "default:a",
        "reservation:default:r print": fingerprint(new("a", payload=b"1", priority=-5)),
        "reservation:default:r word": "available",
        "reservations default:r": None,
        "reserved:k": "default:r default:a",
        "slots:+ default:r": room.now,
        "wake:async 1": room.now,
    }
    assert "reserved:k" not in room.keyspace.ttls
    assert sound(room)


def test_bind_again_is_the_same_call_whatever_became_of_the_job(room):
    reserve(room)
    first = bind(room, new("a", payload=b"1"))
    room.look()
    assert bind(room, new("b", payload=b"1")) == first
    assert room.changed() == {}
    (job,) = room.claim()
    assert bind(room, new("c", payload=b"1")) == first
    room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"")])
    room.look()
    assert bind(room, new("d", payload=b"1")) == first
    assert room.changed() == {}
    assert room.job("b") is None
    assert 80_000_000 < room.keyspace.ttls["reservation:default:r"] <= 86_400_000


@pytest.mark.parametrize(
    "other",
    [
        {"payload": b"2"},
        {"payload": b"1", "task": "u"},
        {"payload": b"1", "priority": 1},
        {"payload": b"1", "due": "+5"},
        {"payload": b"1", "once": "t:k finished existing"},
        {"payload": b"1", "token": "x"},
        {"payload": b"1", "timeout": 5},
    ],
)
def test_other_content_is_a_conflict(room, other):
    reserve(room)
    bind(room, new("a", payload=b"1"))
    room.look()
    with pytest.raises(AdmissionConflict, match="reservation default:r is bound to job default:a"):
        bind(room, new("b", **other))
    assert room.changed() == {}


def test_who_made_the_call_is_no_content():
    assert fingerprint(new("a", executor="")) == fingerprint(new("b", executor="thread"))
    assert fingerprint(new("a", x="1", y="2")) != fingerprint(new("a", x="12", y=""))


def test_what_lapsed_or_never_was_is_not_found(room):
    reserve(room)
    room.now += TTL_MS
    room.look()
    for token in ("r", "nobody"):
        with pytest.raises(AdmissionNotFound, match=f"no reservation default:{token}"):
            bind(room, name=token)
    assert room.changed() == {}


def test_one_that_lost_its_key_to_another_is_not_found(room):
    reserve(room)
    room.client.set(room.q.reserved("k"), "default:other")
    with pytest.raises(AdmissionNotFound):
        bind(room)


def test_a_job_for_later_keeps_its_slot_until_then(room):
    bound(room, due="+50000")
    room.now += 40_000
    assert reserve(room, "r2", "k2", most=1) == ("no_capacity", 1)
    assert reserve(room, "r2").word == "duplicate"
    limited(room, 1)
    room.now += 10_000
    assert ran(room) == ["a"]


def test_at_maxmemory_it_is_refused_and_the_reservation_stays(room, run):
    reserve(room)
    room.look()
    with full(room.client):
        with pytest.raises(ServerFull, match="maxmemory"):
            run(commands.bind(room.q, token="default:r", job=new("a"), now=room.now))
        assert room.changed() == {}
        assert run(commands.reserve(room.q, token="default:r2", key="k2", most=9, ttl_ms=9, now=room.now))
        run(commands.release_reservation(room.q, token="default:r2", call="x", now=room.now))
    assert bind(room).word == "available"
    with full(room.client):
        assert run(commands.bind(room.q, token="default:r", job=new("z"), now=room.now)) == ("available", "default:a")


def test_a_unique_key_that_is_anothers_ends_it_or_refuses_the_call(room):
    room.add("z", once="t:u finished existing")
    reserve(room)
    room.look()
    with pytest.raises(DuplicateJob) as caught:
        bind(room, new("a", once="t:u finished raise"))
    assert caught.value.owner == "default:z"
    assert room.changed() == {}
    job = new("a", once="t:u finished existing")
    assert bind(room, job) == bind(room, job) == ("existing", "default:z")
    assert holds_nothing(room)
    assert room.job("a") is None
    release(room)


def test_an_own_id_that_is_taken_is_that_job(room):
    room.add("z", token="x")
    reserve(room)
    assert bind(room, new("z", token="y")) == ("existing", "default:z")
    assert holds_nothing(room)


def test_a_job_that_is_replaced_holds_the_slot_of_the_call_that_replaces_it(room):
    once = "t:u finished replace"
    room.add("z", once=once, payload=b"1", due="+50000")
    reserve(room)
    assert bind(room, new("a", once=once, payload=b"2")) == ("replaced", "default:z")
    assert room.keyspace.dump()["reserved:k"] == "default:r default:z"
    # Another call that replaces it leaves it where it is ...
    assert room.do(commands.enqueue, [new("b", once=once, payload=b"3")]) == ["replaced default:z"]
    assert room.job("z")["lane"] == "-:+k"
    # ... and another reservation takes the place of the first.
    reserve(room, "r2", "k2")
    assert bind(room, new("c", once=once, payload=b"4"), "r2") == ("replaced", "default:z")
    found = room.keyspace.dump()
    assert found["slots:+"] == {"default:r2": room.now}
    assert "reserved:k" not in found
    assert sound(room)
    limited(room, 1)
    assert [job.fields[b"payload"] for job in room.claim()] == [b"4"]


# --- the claim


def test_a_bound_job_starts_though_the_queue_is_full_and_an_unbound_one_never_does(room):
    limited(room, 2)
    room.add("x", "y", "z", priority=511)
    assert ran(room, limit=1) == ["x"]
    reserve(room, most=2)
    assert ran(room) == [], "the reservation has the other slot"
    bind(room, new("a", priority=-512))
    assert ran(room) == ["a"]
    assert ran(room) == []
    assert reserve(room, "r2", "k2", most=2) == ("no_capacity", 2)
    done = [Done("default:a", int(room.job()["epoch"]), b"")]
    assert room.do(commands.complete, worker="n.1", done=done) == ["ok"]
    assert ran(room) == ["y"]
    assert ran(room) == []


def test_both_kinds_in_one_claim(room):
    limited(room, 3)
    room.add(*"uvwxyz")
    for n in range(2):
        reserve(room, f"r{n}", f"k{n}", most=3)
        bind(room, new(f"bound{n}", executor=("async", "thread")[n]), f"r{n}")
    assert sorted(ran(room)) == ["bound0", "bound1", "u"]
    assert ran(room) == []


def test_lanes_that_have_aged_do_not_stand_in_its_way(room):
    """An old lane may count as more than any level; a full queue still finds what has its slot."""
    limited(room, 1)
    room.client.hset(room.q.fixed("meta"), "age_ms", 1)
    room.add("x", priority=511)
    room.now += 3_600_000
    bound(room)
    assert ran(room, limit=1) == ["a"]
    assert ran(room) == []


def test_another_priority_leaves_it_where_it_is(room):
    bound(room)
    room.add("x", priority=511)
    assert room.do(commands.reprioritise, "default:a", priority=-512) == "available"
    assert sound(room)
    assert ran(room, limit=1) == ["a"]


def test_a_reservation_that_lapses_or_is_given_back_frees_its_slot_of_the_queue(room):
    limited(room, 1)
    room.add("x", "y")
    reserve(room)
    answer = room.do(commands.claim, worker="n.2", request=1, lease_ms=LEASE_MS, limit=9, free={"async": 9})
    assert not answer.jobs
    assert answer.next_ms == TTL_MS, "a worker is told when to look again"
    room.look()
    release(room)
    assert room.client.exists(room.q.wake("async")), "and somebody is woken"
    assert ran(room) == ["x"]
    room.do(commands.complete, worker="n.1", done=[Done("default:x", int(room.job("x")["epoch"]), b"")])
    reserve(room, "r2")
    assert ran(room) == []
    room.now += TTL_MS
    assert ran(room) == ["y"]


def test_a_cancelled_one_frees_its_slot_of_the_queue(room):
    limited(room, 1)
    room.add("x")
    bound(room)
    room.do(commands.pause)
    room.do(commands.resume)
    assert ran(room, limit=0) == []
    room.look()
    assert room.do(commands.cancel, ["default:a"]) == ["removed"]
    assert ran(room) == ["x"]


def test_the_queues_rate_and_pause_hold_a_bound_job_too(room):
    room.client.hset(room.q.fixed("limits"), "queue", "c=1 r=1/1000/1")
    room.add("x")
    assert ran(room) == ["x"]
    bound(room)
    assert ran(room) == []
    room.now += 1000
    room.do(commands.pause)
    room.do(commands.resume)
    assert ran(room) == ["a"]


@pytest.mark.parametrize("lane", ["-:crm", "acme:crm", "acme:", "-:!one,crm"])
def test_its_own_limits_hold_it_and_come_back_with_its_retry(room, lane):
    room.client.hset(room.q.fixed("limits"), "crm", "c=1")
    room.client.hset(room.q.fixed("limits"), mapping={"@": 1, "@acme": "paused=1"})
    if "crm" in lane:
        room.client.hdel(room.q.fixed("limits"), "@acme")
        room.add("first", lane="-:crm")
        assert ran(room) == ["first"]
    bound(room, lane=lane)
    assert ran(room) == []
    assert sound(room)
    if "crm" in lane:
        room.do(commands.complete, worker="n.1", done=[Done("default:first", int(room.job("first")["epoch"]), b"")])
    else:
        room.client.hdel(room.q.fixed("limits"), "@acme")
        room.now += 30_000
    (job,) = room.claim()
    assert job.id == "default:a"
    room.do(commands.release, worker="n.1", jobs=[Release(job.id, job.epoch, "")])
    assert room.job()["lane"] == lane
    assert sound(room)
    assert ran(room) == ["a"]


def test_a_task_that_is_paused_holds_it_and_its_slot(room):
    bound(room)
    room.client.hset(room.q.fixed("limits"), mapping={"*": 1, "*t": "paused=1"})
    assert ran(room) == []
    assert room.job()["lane"] == "-:*t,+k"
    assert reserve(room, "r2", "k2", most=1) == ("no_capacity", 1)
    assert sound(room)
    room.client.hdel(room.q.fixed("limits"), "*", "*t")
    room.now += 30_000
    (job,) = room.claim()
    room.do(commands.release, worker="n.1", jobs=[Release(job.id, job.epoch, "")])
    assert room.job()["lane"] == "-:*t"


def test_a_plain_job_costs_nothing_more(room):
    """What has no keys asks for no reservation."""
    room.add("a", "b")
    command = commands.claim(
        room.q, worker="n.1", request=1, lease_ms=LEASE_MS, limit=9, free={"async": 9}, now=room.now
    )
    _, counted = room.count(command)
    assert not {"GET", "ZCOUNT"} & counted.keys()


def test_why_says_nothing_of_the_queues_slots_to_one_that_has_its_own(room):
    limited(room, 1)
    bound(room)
    room.add("x")
    assert room.do(commands.why, "default:x").word == "whole"
    assert room.do(commands.why, "default:a").word == "turn"
    room.client.hset(room.q.fixed("limits"), "queue", f"c=1 until={room.now + 1000}")
    shut = room.do(commands.why, "default:a")
    assert (shut.word, shut.facts["gate"]) == ("whole", "queue")


# --- the ends


def completed(room: Room, job: Claimed) -> None:
    room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"")])


def failed(room: Room, job: Claimed) -> None:
    room.do(commands.fail, worker="n.1", failures=[Failure(job.id, job.epoch, "fail", 0, "{}", "no")])


def cancelled_while_running(room: Room, job: Claimed) -> None:
    room.do(commands.cancel, [job.id])
    room.do(commands.release, worker="n.1", jobs=[Release(job.id, job.epoch, "")])


def exhausted(room: Room, job: Claimed) -> None:
    room.do(commands.bury, worker="n.1", why="SIGKILL", jobs=[Buried(job.id, job.epoch, "lost")])


def cancelled(room: Room) -> None:
    assert room.do(commands.cancel, ["default:a"]) == ["removed"]


def purged(room: Room) -> None:
    room.do(commands.purge)


def expired(room: Room) -> None:
    room.now += 100_000
    assert room.do(commands.expire) == 1


def expired_at_a_claim(room: Room) -> None:
    room.now += 100_000
    assert room.claim() == []


def damaged(room: Room) -> None:
    room.client.hset(room.q.job("default:a"), "created_at", "nan")
    assert room.claim() == []


def condemned(room: Room) -> None:
    room.client.hset(room.q.job("default:a"), "state", "nowhere")
    assert room.claim() == []


@pytest.mark.parametrize("end", [completed, failed, cancelled_while_running, exhausted])
@pytest.mark.parametrize("keep", [None, 0])
def test_every_end_of_a_running_one_frees_all(room, end: Callable[[Room, Claimed], None], keep):
    bound(room, max_attempts=1, **({} if keep is None else {"keep": keep}))
    (job,) = room.claim()
    assert room.keyspace.dump()["slots:+"] == {"default:r": -room.now}
    end(room, job)
    assert holds_nothing(room)
    assert reserve(room, "r2", most=1).word == "reserved"


@pytest.mark.parametrize("end", [cancelled, purged, expired, expired_at_a_claim, damaged, condemned])
@pytest.mark.parametrize("due", ["", "+80000"])
@pytest.mark.parametrize("keep", [None, 0])
def test_every_end_of_a_waiting_one_frees_all(room, end: Callable[[Room], None], due, keep):
    bound(room, expires="+90000", due=due, **({} if keep is None else {"keep": keep}))
    if due and end in {damaged, condemned}:
        room.now += 80_000
        room.do(commands.promote)
    end(room)
    assert holds_nothing(room)
    assert (room.job() or {"lane": ""})["lane"] == ""
    assert reserve(room, "r2", most=1).word == "reserved"


def released(room: Room, job: Claimed) -> None:
    room.do(commands.release, worker="n.1", jobs=[Release(job.id, job.epoch, "")])


def snoozed(room: Room, job: Claimed) -> None:
    room.do(commands.snooze, worker="n.1", grace_ms=1000, jobs=[Snoozed(job.id, job.epoch, "snooze", 50, "")])


def to_be_retried(room: Room, job: Claimed) -> None:
    room.do(commands.fail, worker="n.1", failures=[Failure(job.id, job.epoch, "retry", 50, "{}", "no")])


def reaped(room: Room, _job: Claimed) -> None:
    room.watched()


def buried(room: Room, job: Claimed) -> None:
    room.do(commands.bury, worker="n.1", why="SIGKILL", jobs=[Buried(job.id, job.epoch, "refund")])


@pytest.mark.parametrize("leaves", [released, snoozed, to_be_retried, reaped, buried])
def test_after_its_first_attempt_it_takes_a_slot_like_any_job(room, leaves: Callable[[Room, Claimed], None]):
    bound(room, max_attempts=3)
    (job,) = room.claim()
    leaves(room, job)
    assert holds_nothing(room)
    assert room.job()["lane"] == ""
    limited(room, 1)
    room.add("x", priority=5)
    room.now += 50
    room.do(commands.promote)
    assert ran(room, "n.2") == ["x"]
    assert ran(room, "n.2") == []
    assert sound(room)
    assert 80_000_000 < room.keyspace.ttls["reservation:default:r"] <= 86_400_000


def test_a_retry_by_hand_begins_without_it(room):
    bound(room)
    cancelled(room)
    assert room.do(commands.retry, ["default:a"]) == ["available"]
    assert room.job()["lane"] == ""
    assert holds_nothing(room)
    assert ran(room) == ["a"]


# --- release, finalize, cleanup


def test_an_unbound_one_is_given_back_once(room):
    reserve(room)
    room.look()
    release(room, call="1")
    assert room.changed() == {
        "reservation:default:r released": "1",
        "reservations default:r": None,
        "reserved:k": None,
    }
    release(room, call="1")
    for token in ("r", "nobody"):
        with pytest.raises(AdmissionNotFound):
            release(room, token, call="2")
    with pytest.raises(AdmissionNotFound):
        bind(room)
    assert reserve(room, "r2", most=1).word == "reserved"


def test_one_that_lapsed_is_not_found(room):
    reserve(room)
    room.now += TTL_MS
    with pytest.raises(AdmissionNotFound):
        release(room)


def test_a_bound_one_only_when_its_job_lives_no_more(room):
    bound(room)
    for _ in range(2):
        room.look()
        with pytest.raises(AdmissionConflict, match="bound to job default:a, which lives"):
            release(room)
        assert room.changed() == {}
        claimed = room.claim()
    room.do(commands.release, worker="n.1", jobs=[Release(job.id, job.epoch, "") for job in claimed])
    cancelled_now = room.do(commands.cancel, ["default:a"], partial=True)
    assert cancelled_now == ["requested"]
    room.watched()
    assert room.job()["state"] == "cancelled"
    release(room)
    assert holds_nothing(room)


def test_one_whose_job_is_gone_is_given_back(room):
    bound(room)
    room.client.delete(room.q.job("default:a"))
    release(room)
    assert holds_nothing(room)


def test_finalize_frees_what_an_attempt_left_and_else_does_nothing(room):
    reserve(room)
    room.look()
    for key in ("nobody", ""):
        assert room.do(commands.finalize, key=key) is False
    assert room.changed() == {}
    bind(room)
    assert room.do(commands.finalize, key="k") is False
    room.claim()
    room.look()
    assert room.do(commands.finalize, key="k") is False
    assert room.changed() == {}
    room.client.delete(room.q.job("default:a"))
    assert room.do(commands.finalize, key="k") is True
    assert holds_nothing(room)
    assert room.do(commands.finalize, key="k") is False


def test_finalize_frees_one_that_no_job_was_bound_to(room):
    limited(room, 1)
    reserve(room)
    room.add("x")
    assert ran(room) == []
    assert room.do(commands.finalize, key="k") is True
    assert room.do(commands.finalize, key="k") is False
    assert holds_nothing(room)
    assert sound(room)
    for call in (bind, release):
        with pytest.raises(AdmissionNotFound):
            call(room)
    assert ran(room, "n.2") == ["x"], "who waited for its slot is led to it"
    assert reserve(room, "s").word == "reserved", "its key is free"


def cleanup(room: Room, older_ms: int | None = None) -> int:
    return sum(room.do(commands.sweep_reservations, which, older_ms=older_ms)[0] for which in ("unbound", "bound"))


def test_cleanup_takes_what_is_too_old_and_what_lapsed(room):
    reserve(room, "old", "k0", ttl_ms=100_000)
    reserve(room, "lapsed", "k1", ttl_ms=1001)
    room.now += 1000
    reserve(room, "young", "k2", ttl_ms=100_000)
    assert cleanup(room) == 0
    room.now += 1
    assert cleanup(room) == 1
    assert cleanup(room, 1002) == 0
    assert cleanup(room, 1001) == 1
    assert room.keyspace.dump()["reservations"] == {"default:young": room.now + 99_999}
    with pytest.raises(AdmissionNotFound):
        bind(room, name="old")


def test_cleanup_leaves_what_lives_and_takes_what_is_left_of_the_dead(room):
    for n in range(6):
        reserve(room, f"r{n}", f"k{n}")
        bind(room, new(f"j{n}", due=("+90000", "")[n % 2]), f"r{n}")
    (running,) = room.claim(limit=1)
    assert cleanup(room, 0) == 0
    room.client.delete(room.q.job("default:j0"), room.q.job(running.id), room.q.reservation("default:r2"))
    room.client.zadd(room.q.slots("+"), {"default:orphan": room.now})
    assert cleanup(room, 0) == 4
    assert cleanup(room, 0) == 0
    found = room.keyspace.dump()
    assert found["slots:+"].keys() == {"default:r3", "default:r4", "default:r5"}
    # Of a reservation whose record was lost its job is known by the key alone.
    assert {name for name in found if name.startswith("reserved:")} == {f"reserved:k{n}" for n in (2, 3, 4, 5)}


def test_cleanup_takes_a_slot_whose_key_is_anothers(room):
    bound(room)
    room.client.set(room.q.reserved("k"), "default:other default:b")
    assert cleanup(room, 0) == 1
    found = room.keyspace.dump()
    assert "slots:+" not in found
    assert found["reserved:k"] == "default:other default:b"
    room.client.delete(room.q.reserved("k"))


def test_cleanup_gives_a_living_job_its_key_back(room):
    bound(room)
    room.client.delete(room.q.reserved("k"))
    assert cleanup(room) == 0
    assert room.keyspace.dump()["reserved:k"] == "default:r default:a"


def test_cleanup_goes_on_where_it_was(room):
    for n in range(5):
        reserve(room, f"r{n}", f"k{n}", ttl_ms=1000 * (1 + n % 2))
    room.now += 1000
    sweep = commands.sweep_reservations
    assert room.do(sweep, "unbound", limit=2) == (2, 2)
    assert room.do(sweep, "unbound", limit=2) == (1, 2)
    assert room.do(sweep, "unbound", limit=2, skip=1) == (0, 1)


# --- looking


def test_reservations_are_shown_while_they_hold_something(room):
    reserve(room, "r0", "k0")
    reserve(room, "r1", "k1", ttl_ms=9000)
    reserve(room, "r2", "k2", ttl_ms=1)
    reserve(room, "r3", "k3")
    bind(room, new("a"), "r3")
    room.now += 1
    at = str(T0)
    rows = [
        ("default:r1", "k1", at, str(T0 + 9000), "", ""),
        ("default:r0", "k0", at, str(T0 + TTL_MS), "", ""),
        ("default:r3", "k3", at, str(T0 + TTL_MS), "default:a", "available"),
    ]
    room.look()
    assert room.do(commands.reservations) == (3, rows)
    assert room.do(commands.reservations, limit=1, offset=1) == (3, rows[1:2])
    assert room.do(commands.reservations, limit=2, offset=1) == (3, rows[1:])
    assert room.do(commands.reservations, limit=2, offset=9) == (3, [])
    assert room.changed() == {}


def test_fsck_takes_a_key_that_is_held_for_nothing(room):
    bound(room)
    assert sound(room)
    room.client.delete(room.q.job("default:a"), room.q.front("async:512:-:+k"))
    assert ("unowned", "reserved:k") in told(room)
    check(room, repair=True)
    assert "reserved:k" not in room.keyspace.dump()


def test_the_keys_say_whose_they_are(q: QueueKeys):
    assert q.reserved("k").endswith("{default}:reserved:k")
