"""Whose turn it is: keys share by weight, whatever their backlog; nobody is ahead for having been away.

By counting, never by time: every job costs the same, so shares are exact to a turn.
"""

from __future__ import annotations

from collections import Counter

import pytest

from taskq import commands
from tests.lua.room import Room
from tests.lua.test_gates import add, complete, ran, settled


def one(room: Room) -> str:
    (name,) = ran(room, limit=1)
    return name


def shares(room: Room, turns: int, *, limit: int = 1) -> Counter[str]:
    """Whose jobs came: a name begins with its key."""
    found: Counter[str] = Counter()
    while found.total() < turns:
        found.update(name.split("_")[0] for name in ran(room, limit=limit))
    return found


def backlog(room: Room, key: str, n: int, **options) -> None:
    for at in range(0, n, 250):
        add(room, *(f"{key}_{i}" for i in range(at, min(at + 250, n))), lane=f"{key}:", **options)


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_keys_share_evenly_whatever_their_backlog(room, limit):
    backlog(room, "big", 1000)
    backlog(room, "mid", 400)
    backlog(room, "small", 210)
    found = shares(room, 600, limit=limit)
    assert max(found.values()) - min(found.values()) <= limit + 1


@pytest.mark.parametrize("limit", [1, 12, 100])
def test_keys_share_by_weight(room, limit):
    room.do(commands.weigh, {"b": 2, "c": 5})
    for key in "abc":
        backlog(room, key, 1000)
    found = shares(room, 800, limit=limit)
    assert found.total() >= 800
    for key, weight in {"a": 1, "b": 2, "c": 5}.items():
        assert abs(found[key] - found.total() * weight / 8) <= limit + 1, found


def test_a_weight_taken_away_is_one(room):
    room.do(commands.weigh, {"a": 5})
    assert room.do(commands.weigh, {"a": None}).weights == {}
    backlog(room, "a", 50)
    backlog(room, "b", 50)
    assert shares(room, 20) == {"a": 10, "b": 10}


def test_a_newcomer_beside_a_long_backlog_gets_the_next_turns(room):
    backlog(room, "big", 10_000)
    for _ in range(20):
        ran(room, limit=100)
    backlog(room, "new", 3)
    came = [one(room) for _ in range(6)]
    assert [name.split("_")[0] for name in came].count("new") == 3
    assert came[0] == "new_0"


def test_who_has_one_job_at_a_time_gets_its_share_and_no_more(room):
    """With three others waiting it is a quarter, not every second turn."""
    for key in "abc":
        backlog(room, key, 200)
    found: Counter[str] = Counter()
    add(room, "d_0", lane="d:")
    for _ in range(200):
        key = one(room).split("_")[0]
        found[key] += 1
        room.now += 1
        if key == "d":
            add(room, f"d_{found['d']}", lane="d:")
    assert all(45 <= found[key] <= 55 for key in "abcd"), found


def test_jobs_without_a_key_are_one_among_the_others(room):
    add(room, *(f"-_{i}" for i in range(100)), lane="")
    add(room, *(f"-_crm{i}" for i in range(100)), lane="-:crm")
    backlog(room, "a", 200)
    assert shares(room, 60) == {"-": 30, "a": 30}


def test_a_key_has_one_share_over_all_its_lanes(room):
    for i in range(10):
        add(room, *(f"a_{i}x{n}" for n in range(20)), lane=f"a:crm=t{i}")
    backlog(room, "b", 200)
    assert shares(room, 60) == {"a": 30, "b": 30}


def test_a_thousand_keys_each_get_a_turn_before_any_gets_a_second(room):
    for i in range(1000):
        backlog(room, f"k{i:03}", 2)
    found = shares(room, 1000, limit=50)
    assert len(found) == 1000


def test_priority_beats_turns(room):
    backlog(room, "a", 20)
    backlog(room, "b", 20)
    add(room, "a_high0", "a_high1", lane="a:", priority=1)
    assert [one(room), one(room)] == ["a_high0", "a_high1"]


def test_what_a_key_got_at_another_level_holds_nobody_up_here(room):
    """A level far ahead in its own time neither starves those below nor mixes up their order."""
    for key in "abc":
        backlog(room, key, 60)
    shares(room, 9)
    for i in range(300):
        add(room, f"a_high{i}", lane="a:", priority=1)
        assert one(room) == f"a_high{i}"
        if i % 10 == 0:
            one(room)
    found = shares(room, 60)
    assert max(found.values()) - min(found.values()) <= 1, found
    backlog(room, "new", 5)
    assert "new" in shares(room, 4)


def test_a_level_that_lost_its_time_lets_no_newcomer_catch_up(room):
    backlog(room, "a", 1000)
    backlog(room, "b", 1000)
    shares(room, 500, limit=50)
    room.client.delete(room.q.tags("async", 0))
    backlog(room, "c", 100)
    found = shares(room, 30)
    assert found["c"] <= 11, found


def test_tags_that_time_has_passed_are_forgotten(room):
    for i in range(100):
        backlog(room, f"k{i}", 1)
        complete(room, one(room))
    assert room.client.zcard(room.q.tags("async", 0)) < 20
    assert room.client.pttl(room.q.tags("async", 0)) > 0


# --- ageing


def aged(room: Room, ms: int | str) -> None:
    room.do(commands.limit, "queue", {"age": ms})


def test_a_waiting_lane_gains_a_level_each_time(room):
    aged(room, 60_000)
    add(room, "old", lane="", priority=-1)
    room.now += 59_999
    add(room, "fresh0", lane="")
    assert one(room) == "fresh0"
    room.now += 1
    add(room, "fresh1", lane="")
    add(room, "high", lane="", priority=1)
    assert [one(room), one(room)] == ["high", "fresh1"]
    room.now += 60_000
    add(room, "fresh2", lane="", priority=0)
    assert one(room) == "old"


def test_without_ageing_a_lower_level_waits(room):
    aged(room, 60_000)
    aged(room, "")
    add(room, "old", lane="", priority=-1)
    room.now += 10**7
    add(room, "fresh", lane="")
    assert [one(room), one(room)] == ["fresh", "old"]
    assert room.client.hget(room.q.fixed("meta"), "age_ms") is None


def test_ageing_counts_over_classes_and_keys(room):
    aged(room, 1000)
    add(room, "old", lane="a:crm", priority=-3, executor="thread")
    room.now += 5_000
    add(room, "fresh", lane="b:", priority=1)
    assert [one(room), one(room)] == ["old", "fresh"]
    assert settled(room) == []


# --- reprioritise


@pytest.mark.parametrize("lane", ["", "acme:crm"])
def test_a_waiting_job_goes_to_its_new_level_at_its_place(room, lane):
    room.do(commands.limit, "crm", {"c": 5})
    for name in "abc":
        add(room, name, lane=lane)
        room.now += 10
    add(room, "d", lane=lane, priority=2)
    assert room.do(commands.reprioritise, "default:c", 2) == "available"
    assert room.do(commands.reprioritise, "default:a", -4) == "available"
    assert room.job("c")["priority"] == "2"
    assert [one(room) for _ in range(4)] == ["c", "d", "b", "a"]
    assert not room.client.exists(room.q.levels("async"))


@pytest.mark.parametrize("lane", ["", "acme:crm"])
def test_reprioritise_changes_the_structures_and_nothing_else(room, lane):
    add(room, "a", lane=lane)
    room.look()
    room.do(commands.reprioritise, "default:a", 7)
    changed = room.changed()
    keys = f":{lane}" if lane else ""
    group = "acme" if lane else "-"
    first = "front" if lane else "body"
    gone = {f"lanes:async:0:{group} async:0{keys}", f"groups:async:0 {group}", "levels:async 0"}
    assert {row for row, value in changed.items() if value is None} >= gone
    assert changed[f"front:async:7{keys} default:a"] == room.now
    assert changed["job:default:a priority"] == "7"
    assert changed["levels:async 7"] == 7
    assert changed["wake:async 1"] == room.now
    assert room.told["reprioritised"] == ["default:a"]
    assert f"{first}:async:0{keys}" not in room.keyspace.dump() or first == "body"
    room.do(commands.reprioritise, "default:a", 0)
    assert "priority" not in room.job("a")


def test_a_parked_job_that_gets_another_priority_waits_there(room):
    room.do(commands.limit, "crm", {"c": 1})
    add(room, "holds", "a", "b", lane="-:crm")
    assert settled(room) == ["holds"]
    room.do(commands.reprioritise, "default:b", 9)
    assert settled(room) == []
    complete(room, "holds")
    assert settled(room) == ["b"]
    room.do(commands.reprioritise, "default:a", 3)
    complete(room, "b")
    assert settled(room) == ["a"]
    assert not room.client.exists(room.q.fixed("gates"))


def test_a_job_that_does_not_wait_in_a_lane_keeps_it_for_its_next_time(room):
    add(room, "later", lane="", due="+1000")
    held = room.held("runs")
    for name, state in {"later": "scheduled", "runs": "running"}.items():
        assert room.do(commands.reprioritise, f"default:{name}", 5) == state
    room.do(commands.release, worker="n.1", jobs=[commands.Release("default:runs", held, "")])
    add(room, "other", lane="", priority=4)
    assert [one(room), one(room)] == ["runs", "other"]
    room.now += 1000
    add(room, "last", lane="", priority=4)
    assert [one(room), one(room)] == ["later", "last"]


def test_an_ended_job_and_one_that_is_not_there_are_refused(room):
    from taskq.errors import InvalidTransition, JobNotFound

    room.held("a")
    complete(room, "a")
    room.look()
    with pytest.raises(InvalidTransition, match="is completed"):
        room.do(commands.reprioritise, "default:a", 5)
    with pytest.raises(JobNotFound):
        room.do(commands.reprioritise, "default:none", 5)
    assert room.changed() == {}
