"""Gates: how many jobs of a lane may run. A lane whose gate is shut parks; whatever opens the gate leads back to it.

The whole keyspace is looked at where a lane parks and returns; elsewhere what is true whatever the route: the smaller
of what is free and what is parked is never out of the claims' way, and who doesn't run holds no slot.
"""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.commands import Buried, Done, Failure, Release, Snoozed, fsck
from tests.lua.room import LEASE_MS, Room, new

CRM = "-:crm"


def say(room: Room, entry: str, **words: str | int) -> commands.Changed:
    """What an operator says of a limit; `until_` for until."""
    told = {name.rstrip("_"): value for name, value in words.items()}
    first = room.do(commands.limit, entry, told)
    cursor = first.cursor
    while cursor != "0":
        cursor = room.do(commands.limit, entry, {}, cursor=cursor).cursor
    return first


def add(room: Room, *names: str, lane: str = CRM, **options) -> None:
    room.do(commands.enqueue, [new(name, **options)._replace(lane=lane) for name in names])


def ran(room: Room, worker: str = "n.1", limit: int = 100) -> list[str]:
    return [job.id.removeprefix("default:") for job in room.claim(worker, limit)]


def complete(room: Room, *names: str) -> None:
    for name in names:
        epoch, worker = room.client.hmget(room.q.job(f"default:{name}"), "epoch", "worker")
        done = [Done(f"default:{name}", int(epoch), b"r")]
        assert room.do(commands.complete, worker=worker, done=done) == ["ok"]


def slots(room: Room, gate: str) -> set[str]:
    return {id.decode().removeprefix("default:") for id in room.client.zrange(room.q.slots(gate), 0, -1)}


def parked(room: Room, gate: str, klass: str = "async") -> list[str]:
    return [name.decode() for name in room.client.zrange(room.q.parked(gate, klass), 0, -1)]


def settled(room: Room, worker: str = "n.1") -> list[str]:
    """What runs once nobody finds more to claim."""
    found: list[str] = []
    for _ in range(300):
        if not room.client.exists(room.q.wake("async")):
            return found
        room.client.delete(room.q.wake("async"))
        found += ran(room, worker)
    raise AssertionError("workers are woken for ever")


def test_a_lane_parks_and_returns(room):
    say(room, "crm", c=1)
    add(room, "a", "b")
    room.look()
    assert ran(room) == ["a"]
    changed = room.changed()
    name = "async:0:-:crm"
    score = 511 * 2**42 + 240  # one job was given to those without a fairness key
    of_jobs = ("claimed:", "meta", "job:", "front:", "leases", "slots", "tags")
    assert {row: value for row, value in changed.items() if not row.startswith(of_jobs)} == {
        f"parked:crm:async {name}": score,
        "parks:crm async": 0,
        "gates crm": room.now + 30_000,
        "lanes:async:0:- " + name: None,
        "groups:async:0 -": None,
        "levels:async 0": None,
    }
    complete(room, "a")
    changed = room.changed()
    job = "job:default:a"
    assert {row: value for row, value in changed.items() if not row.startswith((job, "completed", "prune"))} == {
        "lanes:async:0:- " + name: room.now,
        "groups:async:0 -": 0,
        "levels:async 0": 0,
        f"parked:crm:async {name}": None,
        "parks:crm async": None,
        "gates crm": None,
        "slots:crm default:a": None,
        "leases default:a": None,
        "wake:async 1": room.now,
    }
    assert ran(room) == ["b"]
    assert slots(room, "crm") == {"b"}


def test_no_more_run_than_may_and_the_next_as_one_ends(room):
    say(room, "crm", c=3)
    add(room, *(f"j{i}" for i in range(9)))
    running = settled(room)
    assert running == ["j0", "j1", "j2"]
    done = []
    while running:
        complete(room, running[0])
        done.append(running.pop(0))
        running += settled(room)
        assert len(running) <= 3
        assert slots(room, "crm") == set(running)
    assert done == [f"j{i}" for i in range(9)]
    assert not room.client.exists(room.q.slots("crm"), room.q.fixed("gates"), room.q.parks("crm"))


def test_a_limit_is_for_each_key_and_an_override_for_one(room):
    say(room, "crm", c=1)
    say(room, "crm=b", c=2)
    for tenant in "abc":
        add(room, *(f"{tenant}{i}" for i in range(3)), lane=f"-:crm={tenant}")
    assert sorted(settled(room)) == ["a0", "b0", "b1", "c0"]


def test_a_job_passes_all_its_gates_or_none(room):
    say(room, "crm", c=1)
    say(room, "mail", c=1)
    add(room, "both", "both2", lane="-:crm,mail")
    room.now += 1
    add(room, "crm", lane="-:crm")
    add(room, "mail", lane="-:mail")
    order = [settled(room)]
    assert order == [["both"]]
    while order[-1]:
        assert len(slots(room, "crm")) <= 1 >= len(slots(room, "mail"))
        complete(room, *order[-1])
        order.append(sorted(settled(room)))
    assert sorted(order[1:3]) == [["both2"], ["crm", "mail"]]


def test_a_lane_that_parks_elsewhere_passes_the_slot_on(room):
    """It was led to by one gate, and stops at the other: who waits for the first must be led there instead."""
    say(room, "a", c=1)
    say(room, "b", c=1)
    add(room, "holds_a", lane="-:a")
    add(room, "holds_b", lane="-:b")
    assert sorted(settled(room)) == ["holds_a", "holds_b"]
    add(room, "ab", lane="-:a,b", priority=5)
    add(room, "a2", lane="-:a")
    assert settled(room) == []
    complete(room, "holds_a")
    assert settled(room) == ["a2"]


def test_an_emptied_lane_passes_the_slot_on(room):
    say(room, "crm", c=1)
    add(room, "holds")
    settled(room)
    add(room, "first", priority=5)
    add(room, "second")
    assert settled(room) == []
    complete(room, "holds")
    assert parked(room, "crm") == ["async:0:-:crm"]
    room.do(commands.cancel, ["default:first"])
    assert settled(room) == ["second"]


def test_a_parked_lane_that_was_emptied_takes_no_ones_turn(room):
    say(room, "crm", c=1)
    add(room, "holds")
    settled(room)
    add(room, "first", priority=5)
    add(room, "second")
    settled(room)
    room.do(commands.cancel, ["default:first"])
    complete(room, "holds")
    assert settled(room) == ["second"]


@pytest.mark.parametrize("wait", ["complete", "fail", "retry", "release", "snooze", "bury", "reap", "cancelled"])
def test_who_runs_no_more_holds_no_slot(room, wait):
    say(room, "crm", c=1)
    add(room, "a", lane="acme:crm,!account=1")
    (job,) = room.claim()
    add(room, "b", lane="acme:crm,!account=2")
    assert settled(room) == []
    held = {"worker": "n.1"}
    if wait == "complete":
        complete(room, "a")
    elif wait in {"fail", "retry"}:
        verb = "fail" if wait == "fail" else "retry"
        room.do(commands.fail, failures=[Failure(job.id, job.epoch, verb, 60_000, "{}", "x")], **held)
    elif wait == "release":
        room.do(commands.release, jobs=[Release(job.id, job.epoch, "")], **held)
    elif wait == "snooze":
        room.do(commands.snooze, jobs=[Snoozed(job.id, job.epoch, "snooze", 60_000, "")], grace_ms=0, **held)
    elif wait == "bury":
        room.do(commands.bury, worker="n.1", why="died", jobs=[Buried(job.id, job.epoch, "lost")])
    elif wait == "reap":
        room.watched()
    else:
        room.do(commands.cancel, [job.id])
        room.do(commands.release, jobs=[Release(job.id, job.epoch, "")], **held)
        assert room.job("a")["state"] == "cancelled"
    assert slots(room, "crm") == set()
    assert slots(room, "!account=1") == set()
    assert len(settled(room, "n.2")) == 1


def test_lowering_admits_nobody_until_enough_have_left(room):
    say(room, "crm", c=4)
    add(room, *(f"j{i}" for i in range(8)))
    assert len(settled(room)) == 4
    say(room, "crm", c=2)
    for name in ("j0", "j1"):
        complete(room, name)
        assert settled(room) == []
    complete(room, "j2")
    assert settled(room) == ["j4"]


def test_raising_leads_to_all_that_may_run_now_in_bounded_steps(room):
    say(room, "crm", c=0)
    for i in range(200):
        add(room, f"j{i}", lane=f"t{i}:crm")
    assert settled(room) == []
    assert len(parked(room, "crm")) == 200
    room.look()
    first = room.do(commands.limit, "crm", {"c": 150})
    assert first.changed
    assert len(parked(room, "crm")) == 200 - 64
    assert len(settled(room)) == 150
    assert len(slots(room, "crm")) == 150


def test_raising_a_limit_raises_it_for_every_key(room):
    say(room, "crm", c=0)
    for i in range(100):
        add(room, f"j{i}", lane=f"-:crm=t{i}")
    assert settled(room) == []
    assert room.client.zcard(room.q.fixed("gates")) == 100
    say(room, "crm", c=1)
    assert len(settled(room)) == 100
    assert not room.client.exists(room.q.fixed("gates"))


def test_pausing_a_key_stops_its_jobs_and_no_others(room):
    add(room, "a0", "a1", lane="acme:")
    add(room, "b0", lane="bolt:")
    say(room, "@acme", paused=1)
    assert settled(room) == ["b0"]
    room.now += 1
    add(room, "a2", lane="acme:")
    assert settled(room) == []
    say(room, "@acme", paused="")
    assert settled(room) == ["a0", "a1", "a2"]


def test_a_paused_task_waits_whatever_it_was_enqueued_as(room):
    add(room, "a0", lane="", task="mail.send")
    add(room, "b0", lane="", task="other")
    add(room, "a1", lane="acme:crm", task="mail.send")
    say(room, "*mail.send", paused=1)
    assert settled(room) == ["b0"]
    add(room, "a2", lane="", task="mail.send")
    assert settled(room) == []
    say(room, "*mail.send", paused="")
    assert sorted(settled(room)) == ["a0", "a1", "a2"]
    assert room.client.hgetall(room.q.fixed("limits")) == {}


def test_a_task_limited_while_it_has_jobs(room):
    add(room, *(f"j{i}" for i in range(5)), lane="", task="t")
    say(room, "*t", c=2)
    assert settled(room) == ["j0", "j1"]
    assert slots(room, "*t") == {"j0", "j1"}
    complete(room, "j0")
    assert settled(room) == ["j2"]


def test_a_key_that_is_blocked_waits_and_returns_by_itself(room):
    say(room, "crm=acme", until_="+5000")
    add(room, "a", lane="-:crm=acme")
    add(room, "b", lane="-:crm=bolt")
    assert settled(room) == ["b"]
    room.now += 4_999
    assert ran(room) == []
    room.now += 1
    assert ran(room) == ["a"]
    assert room.client.hgetall(room.q.fixed("limits")) == {}


@pytest.mark.parametrize("entry", ["crm", "crm=x", "@acme", "*t", "queue"])
def test_a_block_that_nobody_waits_for_leaves_nothing(room, entry):
    say(room, entry, until_="+5000")
    room.now += 6_000
    room.claim()
    room.claim()
    assert room.client.hgetall(room.q.fixed("limits")) == {}
    assert not room.client.exists(room.q.fixed("gates"))


@pytest.mark.parametrize("entry, lane", [("crm", CRM), ("crm=x", "-:crm=x"), ("@acme", "acme:"), ("*t", "-:*t")])
def test_a_block_whose_last_waiter_leaves_passes_by_itself_too(room, entry, lane):
    say(room, entry, until_="+5000")
    add(room, "a", lane=lane)
    assert ran(room) == []
    room.do(commands.cancel, ["default:a"])
    assert ran(room) == []
    room.now += 6_000
    assert ran(room) == []
    assert room.client.hgetall(room.q.fixed("limits")) == {}
    assert not room.client.exists(room.q.fixed("gates"))


@pytest.mark.parametrize("entry", ["crm", "queue"])
def test_a_block_that_ends_as_a_job_does_passes_by_itself_too(room, entry):
    add(room, "a", "b")
    assert ran(room, limit=1) == ["a"]
    say(room, entry, until_="+5000")
    assert ran(room) == []
    room.now += 6_000
    complete(room, "a")
    assert settled(room) == ["b"]
    assert room.client.hgetall(room.q.fixed("limits")) == {}
    assert not room.client.exists(room.q.fixed("gates"))


@pytest.mark.parametrize("words", [{"c": 1}, {"r": "1/1000/1"}, {"until_": "+1000"}], ids=str)
def test_the_queues_gate_is_forgotten_with_the_last_that_it_turned_away(room, words):
    say(room, "queue", **words)
    room.add("a", "b")
    room.add("c", executor="thread")
    ran(room)
    parks = {b"async", b"thread"}
    assert set(room.client.zrange(room.q.parks("queue"), 0, -1)) == parks
    assert room.client.zscore(room.q.fixed("gates"), "queue")
    room.look()
    room.now += 1_000
    if "c" in words:
        complete(room, "a")
    else:
        room.do(commands.limit, "else", {"c": "1"})  # who says anything looks at the gates whose time has come
    assert not room.client.exists(room.q.parks("queue"), room.q.fixed("gates"))
    assert parks <= {each.encode() for each in ("async", "thread") if room.client.exists(room.q.wake(each))}


def test_a_queue_limited_as_a_whole(room):
    say(room, "queue", c=2)
    add(room, *(f"j{i}" for i in range(4)), lane="")
    assert settled(room) == ["j0", "j1"]
    complete(room, "j0")
    assert settled(room) == ["j2"]
    say(room, "queue", c="")
    assert settled(room) == ["j3"]


def test_a_queue_with_a_rate(room):
    say(room, "queue", r="2/1000/2")
    add(room, *(f"j{i}" for i in range(5)), lane="")
    assert settled(room) == ["j0", "j1"]
    room.now += 500
    assert ran(room) == ["j2"]
    assert ran(room) == []


def test_what_code_declares_holds_again_after_a_reset(room):
    room.run(commands.declare(room.q, kinds={}, retention={}, limits={"crm": "c=1"}))
    add(room, *(f"j{i}" for i in range(4)))
    assert say(room, "crm", c=3)[:3] == (True, "0", True)
    assert len(settled(room)) == 3
    room.run(commands.declare(room.q, kinds={}, retention={}, limits={"crm": "c=2"}))
    complete(room, "j0")
    assert len(settled(room)) == 1
    say(room, "crm", c="")
    complete(room, "j1")
    assert settled(room) == []
    say(room, "crm", c="none")
    add(room, "k0", "k1")
    assert len(settled(room)) == 2


def declare(room: Room, by_call: bool = False, **limits: str) -> None:
    room.do(commands.declare, kinds={}, retention={}, limits=limits, by_call=by_call)


def test_other_numbers_in_code_hold_at_once(room):
    declare(room, crm="c=1")
    add(room, "a0", "a1", "a2", lane="-:crm=a")
    add(room, "b0", "b1", lane="-:crm=b")
    add(room, "j0", "j1", "j2")
    assert sorted(settled(room)) == ["a0", "b0", "j0"]
    room.client.delete(room.q.wake("async"))
    declare(room, crm="c=1")
    assert not room.client.exists(room.q.wake("async")), "the same again opens nothing"
    declare(room, crm="c=2")
    assert room.client.exists(room.q.wake("async"))
    assert sorted(settled(room)) == ["a1", "b1", "j1"]
    assert settled(room) == []


def test_numbers_of_a_call_count_until_code_says_some(room):
    declare(room, by_call=True, crm="c=1")
    add(room, *(f"j{i}" for i in range(9)))
    assert settled(room) == ["j0"]
    declare(room, by_call=True, crm="c=2")
    assert settled(room) == ["j1"]
    declare(room, crm="c=4 r=100/1000/9")
    assert settled(room) == ["j2", "j3"]
    declare(room, by_call=True, crm="c=9")
    assert settled(room) == []
    assert room.client.hget(room.q.fixed("limits"), "crm") == f"c=4 r=100/1000/9 at={room.now}".encode()
    say(room, "crm", c=5)
    declare(room, by_call=True, crm="c=1")
    assert settled(room) == ["j4"]


def test_a_call_unsays_no_number_of_another(room):
    """Two tasks share a name, one for how many at once and one for a rate: each call says its own task's alone."""
    declare(room, by_call=True, crm="c=2")
    declare(room, by_call=True, crm="r=3/3600000/3")
    declare(room, by_call=True, crm="c=2")
    add(room, *(f"j{i}" for i in range(9)))
    assert settled(room) == ["j0", "j1"]
    complete(room, "j0")
    complete(room, "j1")
    assert settled(room) == ["j2"]
    declare(room, by_call=True, crm="c=9 r=5/3600000/5")
    assert room.client.hget(room.q.fixed("limits"), "crm") == b"c=9 r=5/3600000/5 by=call"
    declare(room, crm="c=1")
    assert room.client.hget(room.q.fixed("limits"), "crm") == f"c=1 at={room.now}".encode()


def test_a_clock_set_back_holds_nobody_for_long(room):
    say(room, "crm", r="1/1000/1")
    add(room, "a", "b")
    assert settled(room) == ["a"]
    assert ran(room) == []
    room.now -= 3_600_000
    for _ in range(3):
        ran(room)
    room.now += 1000
    assert ran(room) == ["b"]


def test_a_dear_job_is_not_passed_by_for_ever(room):
    """Cheap ones keep coming: each would take the one token that there is."""
    say(room, "crm", r="1/100/5")
    add(room, *(f"c{i}" for i in range(5)), lane="-:crm")
    settled(room)
    add(room, "dear", lane="-:crm#4")
    order: list[str] = []
    for i in range(30):
        add(room, f"x{i}", lane="-:crm")
        room.now += 100
        order += ran(room) + settled(room)
    assert "dear" in order[:6]


def test_a_job_dearer_than_the_burst_takes_all_of_it(room):
    say(room, "crm", r="1/100/2")
    add(room, "dear", lane="-:crm#5")
    assert settled(room) == ["dear"]
    add(room, "next", lane="-:crm")
    room.now += 99
    assert ran(room) == []
    room.now += 1
    assert ran(room) == ["next"]


def test_fsck_finds_nothing_wrong_with_parked_lanes(room):
    say(room, "crm", c=1)
    add(room, "a", "b", lane="acme:crm")
    settled(room)
    ids = [fsck.Row(f"default:{name}".encode(), "async:0:acme:crm", "") for name in "ab"]
    assert room.do(fsck.mend_jobs, ids, lease_ms=LEASE_MS) == ["sound", "sound"]


@pytest.mark.parametrize("wait_ms,told", [(500, "0.5"), (1_500, "1.5"), (3_600_000, "3600")])
def test_who_waited_too_long_for_a_lock_says_how_long(room, wait_ms, told):
    add(room, "a", lane="-:!x")
    assert ran(room) == ["a"]
    add(room, "b", lane="-:!x", lock_wait=str(wait_ms))
    room.now += wait_ms + 1
    assert room.do(commands.expire, limit=10) == 1
    assert room.job("b")["reason"] == f"lock x was not free within {told} s"


def test_of_two_versions_of_the_code_the_one_that_was_said_later_counts(room):
    """Each says it again every minute, and the numbers don't change with each."""
    began = room.now
    said = {"old": (began, "c=1", 5), "new": (began + 90_000, "c=3", 9)}

    def declare(who):
        since, numbers, most = said[who]
        limits, kept = {"crm": numbers}, {"max_completed": most}
        return room.do(commands.declare, kinds={}, retention=kept, limits=limits, age_ms=room.now - since).later

    def stands():
        numbers = room.client.hget(room.q.fixed("limits"), "crm").decode().partition(" at=")[0]
        return numbers, int(room.client.hget(room.q.fixed("meta"), "max_completed"))

    assert declare("old") == {}
    room.now += 90_000
    assert declare("new") == {}
    for _ in range(3):
        room.now += 60_000
        assert declare("old") == {"crm": "c=3"}
        assert stands() == ("c=3", 9)
        assert declare("new") == {}
        assert stands() == ("c=3", 9)
    said["old"] = (room.now, "c=1", 5)  # it was started again: a roll-back
    assert declare("old") == {}
    assert declare("new") == {"crm": "c=1"}
    assert stands() == ("c=1", 5)


def test_a_clock_that_was_set_back_holds_no_numbers_for_ever(room):
    room.do(commands.declare, kinds={}, retention={"max_completed": 5}, limits={"crm": "c=1"})
    room.now -= 3_600_000
    room.do(commands.declare, kinds={}, retention={"max_completed": 9}, limits={"crm": "c=3"})
    assert room.client.hget(room.q.fixed("limits"), "crm").startswith(b"c=3 ")
    assert room.client.hget(room.q.fixed("meta"), "max_completed") == b"9"
