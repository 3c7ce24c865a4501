"""reap: expired leases come back, but not while holders couldn't renew."""

from __future__ import annotations

import pytest

from taskq import commands
from tests.lua.room import LEASE_MS, T0


def reap(room, limit=100):
    return room.do(commands.reap, lease_ms=LEASE_MS, limit=limit)


def expired(room, **options):
    """One job whose holder fell silent, while a node watched all the time."""
    epoch = room.held(**options)
    while room.now < T0 + LEASE_MS:
        room.now += 1000
        assert room.now >= T0 + LEASE_MS or reap(room).moved == []
    return epoch


def test_an_expired_lease_ends_the_attempt(room):
    epoch = expired(room)
    room.look()
    assert reap(room) == ([("default:a", "available")], 0, False)
    message = "lease expired: worker n.1"
    assert room.changed() == {
        "job:default:a state": "available",
        "job:default:a error:1": f'{{"at": {room.now}, "message": "{message}", "type": "JobCrashed", "worker": "n.1"}}',
        "job:default:a ended": f"{epoch} reap",
        "leases default:a": None,
        "front:async:0 default:a": T0,
        "levels:async 0": 0,
        "groups:async:0 -": 0,
        "lanes:async:0:- async:0": T0,
        "meta seen": str(room.now),
        "wake:async 1": room.now,
    }


@pytest.mark.parametrize("fields", [{"max_attempts": 1}, {"on_lease_lost": "fail"}], ids=str)
def test_the_last_attempt_fails_and_says_why(room, fields):
    expired(room, **fields)
    assert reap(room).moved == [("default:a", "failed")]
    assert room.job()["reason"] == "lease expired: worker n.1"


def test_a_cancelled_orphan_is_cancelled_not_retried(room):
    epoch = room.held()
    room.do(commands.cancel, ["default:a"])
    room.watched()
    assert room.job()["state"] == "cancelled"
    assert room.job()["ended"] == f"{epoch} reap"


def test_leases_that_hold_are_left_alone(room):
    epoch = expired(room)
    room.do(commands.renew, lease_ms=LEASE_MS, held=[commands.Held("default:a", epoch, "n.1")])
    room.look()
    assert reap(room).moved == []
    assert room.changed() == {}


def test_it_takes_so_many_at_a_time_the_oldest_first(room):
    for name in "abc":
        room.held(name)
        room.now += 1
    while room.now < T0 + LEASE_MS + 2:
        room.now = min(room.now + 1000, T0 + LEASE_MS + 2)
        room.do(commands.renew, lease_ms=LEASE_MS, held=[])
    assert [id for id, _ in reap(room, limit=2).moved] == ["default:a", "default:b"]
    assert [id for id, _ in reap(room, limit=2).moved] == ["default:c"]


def test_those_that_hold_never_stand_in_the_way(room):
    """LOST-08: whatever their number and their place among those that have expired, each pass takes its full number."""
    epochs = {}
    for n in range(80):
        epochs[f"{n:02}"] = room.held(f"{n:02}", worker=f"n.{n}")
    living = [name for n, name in enumerate(epochs) if n % 8 < 5]
    held = [commands.Held(f"default:{name}", epochs[name], f"n.{int(name)}") for name in living]
    while room.now < T0 + LEASE_MS:
        room.now += 1000
        assert room.do(commands.renew, lease_ms=LEASE_MS, held=held) == ["ok"] * 50
    passes = [[id for id, _ in reap(room, limit=7).moved] for _ in range(6)]
    assert [len(each) for each in passes] == [7, 7, 7, 7, 2, 0]
    assert sorted(id for each in passes for id in each) == [f"default:{name}" for name in epochs if name not in living]


# --- after an outage


def test_whoever_finds_that_nobody_could_renew_keeps_quiet_for_one_lease(room):
    epoch = room.held()
    room.now += 60_000
    assert reap(room) == ([], LEASE_MS, False)
    room.now += 2000
    assert reap(room) == ([], LEASE_MS - 2000, False)
    held = [commands.Held("default:a", epoch, "n.1")]
    assert room.do(commands.renew, lease_ms=LEASE_MS, held=held) == ["ok"]
    room.now += LEASE_MS - 2000
    assert reap(room).moved == [], "it is still running, and isn't run again"


def test_a_holder_that_does_not_come_back_is_reaped_after_that(room):
    room.held()
    room.now += 60_000
    reap(room)
    for _ in range(LEASE_MS // 2000):
        room.now += 2000
        moved = reap(room).moved
    assert moved == [("default:a", "available")]


@pytest.mark.parametrize("by", ["claim", "renew"])
def test_claim_and_renew_notice_an_outage_too(room, by):
    room.held()
    room.now += 60_000
    if by == "claim":
        room.claim("n.2")
    else:
        room.do(commands.renew, lease_ms=LEASE_MS, held=[])
    assert reap(room) == ([], LEASE_MS, False)


def test_a_clock_that_went_back_is_an_outage_too(room):
    room.held()
    room.now -= 3_600_000
    assert reap(room) == ([], LEASE_MS, False)
    room.now += 1000
    assert reap(room).quiet_ms == LEASE_MS - 1000


def test_a_quiet_time_from_the_future_does_not_last(room):
    room.held()
    room.client.hset(room.q.fixed("meta"), "quiet_until", T0 + 10**9)
    assert reap(room).quiet_ms == LEASE_MS


def test_three_seconds_of_silence_are_no_outage(room):
    """For a lease of 8 s; the figure scales with the lease."""
    room.watched()
    room.now += 3000
    assert reap(room).quiet_ms == 0
    room.now += 3001
    assert reap(room).quiet_ms == LEASE_MS
    room.now += 2 * LEASE_MS


def test_the_stamp_is_not_written_at_every_call(room):
    reap(room)
    room.look()
    room.now += 200
    reap(room)
    assert room.changed() == {}
    room.now += 100
    reap(room)
    assert room.changed() == {"meta seen": str(room.now)}


# --- marks that are wrong


def test_a_lease_without_a_running_job_is_dropped_and_nothing_else(room):
    room.add("a")
    room.watched()
    room.client.zadd(room.q.fixed("leases"), {"default:a": 1, "default:nobody": 1})
    room.look()
    assert reap(room).moved == [("default:a", "dropped"), ("default:nobody", "dropped")]
    assert room.changed() == {"leases default:a": None, "leases default:nobody": None}


@pytest.mark.parametrize("wrong", [{"lease_ms": 0}, {"lease_ms": "x"}, {"limit": -1}, {"limit": "x"}], ids=str)
def test_wrong_input_changes_nothing(room, wrong):
    room.held()
    room.look()
    with pytest.raises(Exception, match="cannot be"):
        room.do(commands.reap, **({"lease_ms": LEASE_MS, "limit": 1} | wrong))
    assert room.changed() == {}


@pytest.mark.parametrize("when", ["due", "expires"])
def test_it_tells_whether_anything_is_due(room, when):
    """Also while it is quiet."""
    room.watched()
    room.add("a", **{when: "+500"})
    room.now += 499
    assert not reap(room).due
    room.now += 1
    assert reap(room).due
    room.now += 9 * LEASE_MS  # nobody looked: an outage
    late = reap(room)
    assert late.quiet_ms
    assert late.due
    room.do(commands.promote)
    room.do(commands.expire)
    assert not reap(room).due
