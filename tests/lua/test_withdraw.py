"""Executors that aren't our worker: how long each counts as alive; and offers that one won't start are given back."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from taskq import commands
from taskq.commands import Held, Release, Withdrawn
from taskq.errors import LeadershipLost
from taskq.presence import LIVENESS_MS
from tests.lua.room import LEASE_MS, T0

HOUR_MS = 3_600_000


def alive(room):
    return list(room.do(commands.classes, targets=[commands.EVERY_TARGET]).executors)


def withdraw(room, worker="ext", why="gone", term=T0, **options):
    return room.do(commands.withdraw, worker, why=why, term=term, **options)


def test_one_that_claims_is_alive_for_half_a_minute(room):
    room.claim("n.1")
    assert alive(room) == []
    room.claim("ext", call="c1")
    room.claim("host.7", offer_ms=1)
    room.claim("plain")
    assert sorted(alive(room)) == ["ext", "host.7", "plain"]
    assert room.do(commands.classes).executors == [], "who asks for its own classes is told of no others"
    room.now += LIVENESS_MS
    assert alive(room) == []
    room.claim("ext", call="c2")
    assert room.keyspace.dump()["executors"] == {"ext": T0 + 2 * LIVENESS_MS}


def test_it_is_alive_as_long_as_what_it_holds_and_as_it_renews(room):
    room.add("a")
    (job,) = room.claim("ext")
    held = [Held(job.id, job.epoch, "ext")]
    room.do(commands.renew, lease_ms=HOUR_MS, held=held)
    room.now += HOUR_MS - 1
    assert alive(room) == ["ext"]
    for _ in range(3):
        assert room.do(commands.renew, lease_ms=LEASE_MS, held=held) == ["ok"]
        room.now += LIVENESS_MS - 1
        assert alive(room) == ["ext"]
    room.now += 1
    assert alive(room) == []


def test_a_worker_of_ours_that_renews_is_none(room):
    epoch = room.held("a")
    room.do(commands.renew, lease_ms=LEASE_MS, held=[Held("default:a", epoch, "n.1")])
    assert alive(room) == []


def test_those_that_are_gone_are_forgotten(room):
    for n in range(150):
        room.claim(f"ext{n}")
    room.now += LIVENESS_MS
    room.claim("new")
    assert len(room.keyspace.dump()["executors"]) == 51
    room.claim("new")
    assert list(room.keyspace.dump()["executors"]) == ["new"]


@pytest.mark.parametrize("why, counted", [("gone", {"lapsed": "1"}), ("busy", {"released": "1"})])
def test_what_was_offered_is_back_at_its_place_refunded(room, why, counted):
    room.add("a", "b")
    (job,) = room.claim("ext", limit=1, offer_ms=HOUR_MS)
    assert withdraw(room, why=why) == Withdrawn(1, None)
    record = room.job("a")
    assert (record["state"], record["attempt"]) == ("available", "0")
    assert counted.items() <= record.items()
    assert room.do(commands.start, worker="ext", lease_ms=LEASE_MS, offers=[(job.id, job.epoch)]) == ["lost"]
    assert [each.id for each in room.claim()] == ["default:a", "default:b"]


def test_nothing_else_is_touched(room):
    room.add("started", "theirs", "ours", "offered")
    (started,) = room.claim("ext", limit=1, offer_ms=HOUR_MS)
    room.do(commands.start, worker="ext", lease_ms=LEASE_MS, offers=[(started.id, started.epoch)])
    room.claim("other", limit=1, offer_ms=HOUR_MS)
    room.claim("n.1", limit=1)
    room.claim("ext", limit=1, call="c")
    room.look()
    assert withdraw(room) == Withdrawn(0, None)
    assert room.changed() == {"meta term": str(T0)}


def test_a_leader_of_the_past_is_refused_and_changes_nothing(room):
    room.add("a")
    room.claim("ext", offer_ms=HOUR_MS)
    assert withdraw(room, "nobody", term=T0 + 2) == Withdrawn(0, None)
    room.look()
    for why in ("gone", "busy"):
        with pytest.raises(LeadershipLost):
            withdraw(room, why=why, term=T0 + 1)
    assert room.changed() == {}
    assert withdraw(room, term=T0 + 3) == Withdrawn(1, None)


def test_without_a_term_nobody_may(room):
    with pytest.raises(ResponseError, match="term cannot be"):
        room.raw("withdraw", room.now, "ext", "gone", 0, 9, "")


def test_a_step_is_bounded(room):
    room.add(*(f"a{n}" for n in range(5)))
    room.claim("ext", offer_ms=HOUR_MS)
    room.add("z")
    room.claim("other", offer_ms=2 * HOUR_MS)
    assert withdraw(room, limit=2) == Withdrawn(2, 0)
    assert withdraw(room, limit=4) == Withdrawn(3, 1)
    assert withdraw(room, limit=4, offset=1) == Withdrawn(0, None)


def test_one_that_was_offered_too_often_fails_and_says_so(room):
    room.add("a", max_attempts=1)
    for _ in range(6):
        room.claim("ext", offer_ms=HOUR_MS)
        withdraw(room)
    assert room.job("a")["state"] == "failed"
    assert room.job("a")["reason"].startswith("offer lapsed: worker ext")


def test_its_cancel_and_its_release_count_before(room):
    room.add("a", "b")
    held = room.claim("ext", offer_ms=HOUR_MS)
    room.do(commands.release, worker="ext", jobs=[Release(held[0].id, held[0].epoch, "")])
    room.do(commands.cancel, [held[1].id])
    assert withdraw(room) == Withdrawn(0, None)
