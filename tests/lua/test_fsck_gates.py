"""fsck on slots, parked lanes, what leads to them, and reservations: damaged by hand, told, mended."""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.commands import Done
from tests.lua.keyspace import changes
from tests.lua.lead import check, told
from tests.lua.room import LEASE_MS, new

LANE = "-:crm"
PARKED = "parked:crm:async"


def limited(room, *names, most=1, lane=LANE, **options):
    """Jobs under a limit; one runs, and where there are more, their lanes are parked."""
    room.client.hset(room.q.fixed("limits"), "crm", f"c={most}")
    room.add(*names, lane=lane, **options)
    jobs = room.claim()
    room.claim()
    assert told(room) == []
    return jobs


def mended(room, *breaches):
    """Exactly this is told; afterwards nothing is."""
    assert sorted(told(room)) == sorted(breaches)
    assert check(room, repair=True).left.total() == 0
    assert told(room) == []


def finish(room, jobs):
    room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"") for job in jobs])


# --- slots


def test_a_job_that_runs_without_its_slot_gets_it_back(room):
    limited(room, "a", "b")
    before = room.keyspace.dump()
    room.client.delete(room.q.slots("crm"))
    mended(room, ("slot", "default:a"))
    after = {row for row in changes(before, room.keyspace.dump()) if not row.startswith("stats")}
    assert after <= {"slots:crm default:a"}
    assert room.claim() == []


@pytest.mark.parametrize("holder", ["default:b", "default:nobody", "default:done", "junk"])
def test_a_slot_without_a_holder_is_free_and_who_waited_for_it_runs(room, holder):
    (job,) = limited(room, "done")
    finish(room, [job])
    room.client.zadd(room.q.slots("crm"), {holder: 1})
    room.add("b", lane=LANE)
    assert room.claim() == []
    kind = "slot" if holder in {"default:b", "default:done"} else "no record"
    mended(room, (kind, holder))
    assert [job.id for job in room.claim()] == ["default:b"]


def test_a_running_job_holds_no_slot_of_a_gate_that_is_not_its_own(room):
    limited(room, "a")
    room.client.zadd(room.q.slots("mail=x"), {"default:a": 1})
    mended(room, ("slot", "default:a"))
    assert room.client.exists(room.q.slots("crm"))
    assert not room.client.exists(room.q.slots("mail=x"))


# --- what is parked


@pytest.mark.parametrize("lost", ["gates", "parks:crm"])
def test_a_parked_lane_that_nobody_would_find_is_found(room, lost):
    jobs = limited(room, "a", "b")
    room.client.delete(room.q.fixed(lost))
    assert ("unreachable", "crm async") in told(room)
    assert check(room, repair=True).left.total() == 0
    assert told(room) == []
    finish(room, jobs)
    assert [job.id for job in room.claim()] == ["default:b"]


def test_a_lane_that_neither_waits_nor_is_led_to_is_led_to(room):
    limited(room, "a", "b")
    room.client.delete(room.q.fixed(PARKED))
    found = told(room)
    assert ("stale", "crm async") in found
    assert ("unreachable", f"async:0:{LANE}") in found
    assert check(room, repair=True).left.total() == 0
    assert told(room) == []
    room.claim()
    assert PARKED in room.keyspace.dump(), "the next claim parks it"


def test_a_lane_that_is_parked_and_led_to_stands_once(room):
    jobs = limited(room, "a", "b")
    name = f"async:0:{LANE}"
    room.client.zadd(room.q.lanes("async", 0, "-"), {name: 1})
    room.client.zadd(room.q.groups("async", 0), {"-": 0})
    room.client.zadd(room.q.levels("async"), {"0": 0})
    mended(room, ("foreign", "crm async"), ("stale", "crm async"))
    finish(room, jobs)
    assert [job.id for job in room.claim()] == ["default:b"]


def test_what_is_parked_and_is_none_that_waits_goes(room):
    limited(room, "a", "b")
    room.add("other", lane="-:mail")
    room.client.zadd(room.q.fixed(PARKED), {"junk": 1, "thread:0:-:crm": 1, "async:0:-:mail": 1, "async:7:-:crm": 1})
    room.client.zadd(room.q.fixed("parks:crm"), {"thread": 0})
    found = told(room)
    assert ("foreign", "crm async") in found
    assert ("stale", "crm thread") in found
    assert check(room, repair=True).left.total() == 0
    assert told(room) == []
    assert room.keyspace.dump()[PARKED].keys() == {f"async:0:{LANE}"}
    assert [job.id for job in room.claim()] == ["default:other"]


def test_classes_of_a_full_queue_whose_gate_is_looked_at_by_nobody(room):
    room.client.hset(room.q.fixed("limits"), "queue", "c=1")
    room.add("a", "b")
    room.claim()
    assert told(room) == []
    room.client.delete(room.q.fixed("gates"))
    found = told(room)
    assert {kind for kind, _ in found} == {"unreachable"}
    assert check(room, repair=True).left.total() == 0
    assert told(room) == []


# --- reservations


def reserved(room, *, bound=True, key="k"):
    room.do(commands.reserve, token="default:r", key=key, most=1, ttl_ms=60_000)
    if bound:
        room.do(commands.bind, token="default:r", job=new("a"))
    assert told(room) == []


def can_reserve(room, key):
    return room.do(commands.reserve, token="default:s", key=key, most=1, ttl_ms=1000).word


@pytest.mark.parametrize("bound", [True, False])
def test_a_reservation_without_its_record_holds_nothing(room, bound):
    reserved(room, bound=bound)
    room.client.delete(room.q.reservation("default:r"))
    mended(room, ("foreign", "reservations"))
    if not bound:
        assert can_reserve(room, "other") == "reserved"


def test_a_slot_whose_job_is_gone_is_free(room):
    reserved(room)
    room.client.delete(room.q.job("default:a"))
    kinds = {kind for kind, _ in told(room)}
    assert "foreign" in kinds
    assert check(room, repair=True).left.total() == 0
    assert told(room) == []
    assert can_reserve(room, "k") == "reserved"


@pytest.mark.parametrize("bound", [True, False])
def test_a_lost_key_of_a_reservation_that_lives_comes_back(room, bound):
    reserved(room, bound=bound)
    before = room.keyspace.dump()
    room.client.delete(room.q.reserved("k"))
    mended(room, ("foreign", "reservations"))
    assert room.keyspace.dump()["reserved:k"] == before["reserved:k"]
    assert can_reserve(room, "k") == "duplicate"


def test_who_has_lost_its_key_to_another_holds_no_slot(room):
    reserved(room, bound=False)
    room.client.set(room.q.reserved("k"), "default:z", px=LEASE_MS)
    mended(room, ("foreign", "reservations"))
    assert not room.client.exists(room.q.fixed("reservations"))
