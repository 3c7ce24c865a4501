"""fsck: silent about a sound queue, however it came to be; names every breach; sets it right, and nothing else."""

from __future__ import annotations

import random

import pytest

from taskq import commands
from taskq.commands import Done, fsck
from taskq.fsck import markers
from tests.lua.keyspace import changes
from tests.lua.lead import check, lead, told
from tests.lua.room import LEASE_MS, T0
from tests.lua.test_cancel import seed
from tests.lua.test_hostile import JUNK_IDS, STRUCTURES, put, spoil
from tests.lua.tour import STATES, drains, lively, tour

SETS = {"running": "leases"} | {state: state for state in STATES if state not in {"running", "available"}}


def sound(room):
    report = check(room)
    assert (report.found, report.foreign, report.unreadable) == ({}, [], [])
    return report


def only_changes(room, repair, *rows):
    """Calls `repair`; checks that nothing but these rows of the keyspace changed, and that it is sound after."""
    before = room.keyspace.dump()
    report = repair()
    differ = changes(before, room.keyspace.dump())
    assert {row for row in differ if not row.startswith("stats")} == set(rows)
    assert report.left.total() == 0
    sound(room)
    return report


# --- a sound queue


def test_a_sound_queue_is_sound_and_stays_as_it_is(room):
    lively(room)
    before = room.keyspace.dump()
    report = sound(room)
    assert (report.jobs, report.queue) == (len(STATES) + 2, "default")
    check(room, repair=True)
    assert changes(before, room.keyspace.dump()) == {}


def test_it_is_sound_after_every_single_script(room):
    epochs = lively(room)
    from tests.lua.tour import stops

    for command in stops(room, epochs):
        room.run(command)
        report = check(room)
        assert (report.told, report.foreign) == ([], []), command.script.name


def test_mending_what_is_sound_changes_nothing(room):
    lively(room)
    before = room.keyspace.dump()
    rows = [fsck.Row(f"default:{state}".encode()) for state in STATES]
    assert room.do(fsck.mend_jobs, rows, lease_ms=LEASE_MS) == ["sound"] * len(STATES)
    assert changes(before, room.keyspace.dump()) == {}


def test_many_slices(room):
    for at in range(0, 1000, 250):
        room.do(commands.enqueue, [commands.NewJob(f"default:{n}", "", "t", "async", n % 7, "", "", {})
                                   for n in range(at, at + 250)])  # fmt: skip
    room.client.delete(room.q.fixed("levels:async"))
    for priority in range(7):
        room.client.delete(room.q.body(f"async:{priority}"))
    report = check(room)
    assert report.jobs == 1000
    assert report.found == {"nowhere": 1000, "stale": 7}
    assert len(report.told) == 1000
    assert check(room, repair=True).left.total() == 0
    assert len(room.claim(limit=250, free={"async": 250})) == 250
    sound(room)


# --- jobs


@pytest.mark.parametrize("lost", ["key", "member"])
def test_a_running_job_without_a_lease_gets_one(room, lost):
    """STUCK-01: the lease set lost its member, by eviction, restore, failover or hand."""
    epoch = room.held()
    if lost == "key":
        room.client.delete(room.q.fixed("leases"))
    else:
        room.client.zrem(room.q.fixed("leases"), "default:a")
    assert told(room) == [("no lease", "default:a")]
    report = only_changes(room, lambda: check(room, repair=True), "leases default:a")
    assert report.found == {"no lease": 1}
    assert room.client.zscore(room.q.fixed("leases"), "default:a") == room.now + LEASE_MS
    assert room.client.hget(room.q.fixed("stats"), "mended t") == b"1"
    held = [commands.Held("default:a", epoch, "n.1")]
    assert room.do(commands.renew, lease_ms=LEASE_MS, held=held) == ["ok"], "a holder that lives goes on"
    room.watched()
    assert room.job()["state"] == "available", "of one that is dead it is reaped"


def test_a_lease_for_ever_ends(room):
    room.held()
    room.client.zadd(room.q.fixed("leases"), {"default:a": T0 * 10})
    assert told(room) == [("long lease", "default:a")]
    only_changes(room, lambda: check(room, repair=True), "leases default:a")


@pytest.mark.parametrize("state", SETS)
def test_a_job_that_stands_nowhere_stands_again_where_its_state_says(room, state):
    seed(room, state)
    before = room.keyspace.dump()
    room.client.delete(room.q.fixed(SETS[state]))
    assert told(room) == [("no lease" if state == "running" else "nowhere", "default:a")]
    assert check(room, repair=True).left.total() == 0
    assert {row: value for row, value in changes(before, room.keyspace.dump()).items() if "stats" not in row} == {}
    sound(room)


def test_a_waiting_job_that_stands_nowhere_goes_to_its_place(room):
    room.add("a", "b", "c")
    room.now += 1000
    room.add("d")
    room.client.delete(room.q.body("async:0"))
    assert sorted(told(room)) == [("nowhere", f"default:{name}") for name in "abcd"] + [("stale", "async:0")]
    assert check(room, repair=True).left.total() == 0
    sound(room)
    assert [job.id for job in room.claim()] == [f"default:{name}" for name in "abcd"]


def test_a_job_that_stands_twice_stands_once(room):
    room.add("a", "b")
    body = room.q.body("async:0")
    room.client.xadd(body, {"id": "default:a"})
    room.client.zadd(room.q.front("async:0"), {"default:a": 1})
    room.client.zadd(room.q.fixed("scheduled"), {"default:a": 1})
    room.client.zadd(room.q.fixed("prune"), {"default:a": 1})
    assert {kind for kind, _ in told(room)} == {"misplaced"}
    assert check(room, repair=True).left.total() == 0
    sound(room)
    assert [job.id for job in room.claim()] == ["default:a", "default:b"]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    "place", ["leases", "scheduled", "failed", "prune", "expiring", "front:async:0", "front:async:9"]
)
def test_a_job_in_a_second_place_leaves_it(room, state, place):
    seed(room, state)
    before = room.keyspace.dump()
    room.client.zadd(room.q.fixed(place), {"default:a": T0}, nx=True)
    wrong = changes(before, room.keyspace.dump())
    if wrong:
        assert "default:a" in {of for _, of in told(room)}
    assert check(room, repair=True).left.total() == 0
    sound(room)
    after = changes(before, room.keyspace.dump())
    assert {row: value for row, value in after.items() if not row.startswith(("stats", "wake", "empty"))} == {}


def test_ids_without_a_record_go(room):
    lively(room)
    for name, kind in STRUCTURES.items():
        if kind == "zset" and not name.startswith(("wake", "levels", "groups", "lanes", "empty")):
            room.client.zadd(room.q.fixed(name), dict.fromkeys(JUNK_IDS, 1))
    room.client.xadd(room.q.body("async:0"), {"id": "nobody"})
    found = check(room).found
    assert found["no record"] == len(JUNK_IDS)
    assert check(room, repair=True).left.total() == 0
    sound(room)


def test_what_is_no_record_becomes_a_failed_job(room):
    for name in "abc":
        room.add(name)
    room.client.delete(room.q.job("default:a"))
    room.client.set(room.q.job("default:a"), "junk")
    room.client.hset(room.q.job("default:b"), "state", "nowhere")
    room.client.hset(room.q.job("default:c"), "created_at", "junk")
    report = check(room)
    assert sorted(breach.kind for breach, _ in report.told) == ["no job", "no job"]
    assert len(report.unreadable) == 2
    assert check(room, repair=True).left.total() == 0
    assert [room.job(name)["state"] for name in "ab"] == ["failed", "failed"]
    assert room.job("a")["reason"] == "BadRecord: this was no job record"
    room.claim()
    assert room.job("c")["reason"] == "BadRecord: the field created_at is no number that can be"
    assert room.client.get(room.q.fixed("aside:job:default:a")) == b"junk"


def test_what_has_ended_will_go(room):
    seed(room, "completed")
    seed(room, "cancelled", "b")
    room.client.delete(room.q.fixed("prune"))
    room.client.hdel(room.q.job("default:b"), "finished_at")
    assert sorted(told(room)) == [("no prune", "default:a"), ("no prune", "default:b"), ("no time", "default:b")]
    assert check(room, repair=True).left.total() == 0
    sound(room)
    room.now += 86_400_000
    while room.do(commands.prune):
        pass
    assert [name for name in room.keyspace.dump() if name.startswith("job:")] == ["job:default:b"]


@pytest.mark.parametrize("time", ["junk", "-1", "9" * 30, "", "NaN"])
@pytest.mark.parametrize("field", ["finished_at", "expires_at", "scheduled_at", "created_at"])
def test_times_that_are_none_are_bearable(room, time, field):
    for state in STATES:
        seed(room, state, state, **({} if state == "running" else {"expires": "+5000"}))
        room.client.hset(room.q.job(f"default:{state}"), field, time)
    for name in ("scheduled", "retryable", "expiring", "prune", "completed"):
        room.client.delete(room.q.fixed(name))
    assert check(room, repair=True).left.total() == 0
    assert told(room) == []
    drains(room)


def test_what_expires_does(room):
    room.add("a", expires="+1000")
    room.add("b", expires="+1000")
    room.add("c")
    room.client.zadd(room.q.fixed("expiring"), {"default:b": T0 * 2, "default:c": T0})
    room.client.zrem(room.q.fixed("expiring"), "default:a")
    assert sorted(told(room)) == [("expiry", f"default:{name}") for name in "abc"]
    assert check(room, repair=True).left.total() == 0
    sound(room)
    room.now += 1000
    assert room.do(commands.expire) == 2


# --- lanes, markers, keys


@pytest.mark.parametrize("key", ["levels:async", "groups:async:0", "lanes:async:0:-", "classes"])
def test_a_lane_that_nothing_leads_to_is_found_again(room, key):
    room.add("a")
    before = room.keyspace.dump()
    room.client.delete(room.q.fixed(key))
    assert told(room) == [("unreachable", "async:0")]
    assert check(room, repair=True).left.total() == 0
    sound(room)
    differ = changes(before, room.keyspace.dump())
    assert {row for row in differ if not row.startswith(("wake", "meta class_version"))} == set()


def test_what_leads_to_nothing_goes(room):
    room.add("a")
    wrong = {"levels:async": "7", "groups:async:0": "junk", "lanes:async:0:-": "junk", "groups:async:3": "-",
             "lanes:async:4:-": "async:4", "levels:thread": "junk"}  # fmt: skip
    for name, member in wrong.items():
        room.client.zadd(room.q.fixed(name), {member: 1})
    assert {kind for kind, _ in told(room)} == {"stale", "foreign"}
    assert check(room, repair=True).left.total() == 0
    sound(room)
    assert sorted(name for name in room.keyspace.dump() if name.startswith(("levels", "groups", "lanes"))) == [
        "groups:async:0",
        "lanes:async:0:-",
        "levels:async",
    ]


def test_an_empty_body_that_nobody_would_remove(room):
    room.add("a")
    room.claim()
    room.client.delete(room.q.fixed("empty"))
    assert told(room) == [("stale", "async:0")]
    assert check(room, repair=True).left.total() == 0
    room.now += 60_000
    room.do(commands.prune)
    assert "body:async:0" not in room.keyspace.dump()


def test_work_for_which_nobody_is_woken(room):
    room.add("a")
    assert lead(room, markers(room.q)) == []
    room.client.delete(room.q.wake("async"))
    (silent,) = lead(room, markers(room.q))
    assert silent.lane == ("async", "0", "")
    room.do(commands.pause)
    assert lead(room, markers(room.q)) == []


def test_a_unique_key_that_nobody_owns_goes_and_a_missing_one_comes_back(room):
    room.add("a", once="t:a finished existing")
    room.add("b", once="t:b started existing")
    room.add("c", once="t:c within/900000 existing")
    room.add("d", once="t:d throttle/900000 existing", keep=0)
    assert sound(room)
    room.now += 1000
    room.client.delete(room.q.job("default:a"), room.q.unique("t:b"), room.q.unique("t:c"))
    assert ("unowned", "unique:t:a") in told(room)
    assert {("unowned", "default:b"), ("unowned", "default:c")} <= set(told(room))
    assert check(room, repair=True).left.total() == 0
    found = room.keyspace.dump()
    assert "unique:t:a" not in found
    assert found["unique:t:b"] == "default:b"
    assert found["unique:t:c"] == f"default:c {T0 + 900_000}", "no longer than from when it was made"
    room.client.delete(room.q.unique("t:c"))
    room.now = T0 + 900_000
    sound(room)


def test_no_key_is_taken_from_its_owner(room):
    room.add("a", once="t:a finished existing")
    room.client.delete(room.q.unique("t:a"))
    room.add("b", once="t:a finished existing")
    assert sound(room)
    assert room.keyspace.dump()["unique:t:a"] == "default:b"


def test_short_lived_keys_get_their_ttl(room):
    room.held()
    names = ("claimed:n.1", f"stats:{T0 // 60000}", "aside:x")
    room.client.set(room.q.fixed("aside:x"), 1)
    for name in names:
        room.client.persist(room.q.fixed(name))
    assert sorted(told(room)) == sorted(("no ttl", name) for name in names)
    assert check(room, repair=True).left.total() == 0
    assert all(room.client.pttl(room.q.fixed(name)) > 0 for name in names)
    assert check(room).aside == ["aside:x"]


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_key_of_the_wrong_kind_is_told_and_put_aside(room, name):
    lively(room)
    put(room.client, room.q.fixed(name), "string")
    report = check(room)
    assert ("wrong kind", name) in [(breach.kind, breach.of) for breach, _ in report.told]
    assert room.client.get(room.q.fixed(name)) == b"junk", "looking changes nothing"
    report = check(room, repair=True)
    assert (report.left.total(), report.aside) == (0, [f"aside:{name}"])
    assert told(room) == []
    drains(room)


def test_foreign_keys_are_told_and_left_alone(room):
    room.client.set(room.q.fixed("somebody:else"), 1)
    room.client.hset(room.q.fixed("\x1b[31m"), "a", 1)
    report = check(room, repair=True)
    assert (report.found.total(), report.foreign) == (0, ["\x1b[31m", "somebody:else"])
    assert room.client.delete(room.q.fixed("somebody:else"), room.q.fixed("\x1b[31m")) == 2


# --- everything at once


@pytest.mark.parametrize("seed_", range(20))
def test_any_damage_at_all_is_repaired(room, seed_):
    draw = random.Random(seed_)
    epochs = lively(room)
    for turn in range(2):
        for _ in range(draw.randrange(1, 12)):
            spoil(room, draw)
        if draw.random() < 0.5:
            tour(room, epochs, f"n.t{turn}")
    before = room.keyspace._client.dbsize()
    check(room)
    assert room.client.dbsize() == before
    report = check(room, repair=True)
    assert report.left.total() == 0, report.told
    assert told(room) == []
    room.client.hdel(room.q.fixed("meta"), "paused")
    drains(room)
    assert told(room) == []
    room.client.flushall()


@pytest.mark.parametrize("key", [*STRUCTURES, *(f"job:default:{state}" for state in STATES)])
def test_each_single_missing_key_is_repaired(room, key):
    """CONN-11: whatever an eviction takes, afterwards everything that still has a record runs to its end."""
    lively(room)
    room.client.delete(room.q.fixed(key))
    assert check(room, repair=True).left.total() == 0
    assert told(room) == []
    for n in range(4):
        room.watched()
        jobs = room.claim(f"n.e{n}")
        room.do(commands.complete, worker=f"n.e{n}", done=[Done(job.id, job.epoch, b"") for job in jobs])
        room.now += 4000
        room.do(commands.promote)
    counts = room.do(commands.counts)
    assert counts.running == counts.available == counts.scheduled == counts.retryable == 0
    assert told(room) == []
