"""`why`: which gate of the claim holds a job, with its numbers. It changes nothing, and says what a claim would do."""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.commands import Done, Failure, Snoozed
from tests.lua.room import LEASE_MS, T0, Room


def why(room: Room, name: str = "a") -> tuple[str, dict[str, str]]:
    room.look()
    shut = room.do(commands.why, f"default:{name}")
    assert room.changed() == {}
    assert shut.now_ms == room.now
    return shut.word, shut.facts


def limit(room: Room, **gates: str) -> None:
    room.client.hset(room.q.fixed("limits"), mapping=gates)


def test_nobody_knows_it(room):
    assert why(room) == ("missing", {})


def test_what_is_no_record(room):
    room.client.set(room.q.job("default:a"), "x")
    assert why(room)[0] == "damaged"


def test_it_has_ended(room):
    epoch = room.held()
    room.now += 5
    room.do(commands.fail, worker="n.1", failures=[Failure("default:a", epoch, "fail", 0, "{}", "no such user")])
    assert why(room) == ("ended", {"state": "failed", "at": str(T0 + 5), "reason": "no such user"})


def test_it_runs(room):
    room.held()
    word, facts = why(room)
    assert word == "running"
    assert facts == {"state": "running", "worker": "n.1", "started_at": str(T0), "attempt": "1", "offered": "",
                     "cancel": "", "lease": str(T0 + LEASE_MS)} | {"started_at": facts["started_at"]}  # fmt: skip


def test_an_offer_that_lapsed_before_says_nothing_of_who_runs_it_now(room):
    room.add("a")
    room.claim("ext", offer_ms=9)
    assert why(room)[1]["offered"] == "1"
    room.do(commands.withdraw, "ext", why="busy", term=1)
    room.claim("n.1")
    assert (why(room)[1]["worker"], why(room)[1]["offered"]) == ("n.1", "")


def test_it_waits_for_its_time(room):
    room.add("a", due="+500")
    assert why(room) == ("due", {"state": "scheduled", "at": str(T0 + 500), "attempt": "0", "unknown": ""})
    epoch = room.held("b")
    room.do(commands.snooze, worker="n.1", grace_ms=1, jobs=[Snoozed("default:b", epoch, "snooze", 70, "")])
    assert why(room, "b")[1]["at"] == str(T0 + 70)


def test_who_was_given_it_knew_no_such_task(room):
    epoch = room.held()
    jobs = [Snoozed("default:a", epoch, "unknown", 70, "UnknownTask: no task t here")]
    room.do(commands.snooze, worker="n.1", grace_ms=1000, jobs=jobs)
    assert why(room)[1] | {"at": str(T0 + 70), "unknown": "UnknownTask: no task t here"} == why(room)[1]


def test_slots_of_the_queue_that_are_reserved_are_told_apart(room):
    limit(room, queue="c=2")
    room.held("b")
    room.do(commands.reserve, token="default:r", key="k", most=9, ttl_ms=1000)
    room.add("a")
    word, facts = why(room)
    assert (word, facts["held"], facts["most"], facts["reserved"]) == ("whole", "2", "2", "1")
    assert facts["holders"] == "default:b"


def test_what_is_free_of_a_rate_is_kept_for_who_came_first(room):
    limit(room, crm="r=10/1000/5")
    room.held("b", lane="-:crm#3")
    room.add("dear", lane="-:crm#5", priority=1)
    room.add("a", lane="-:crm")
    assert room.claim() == []
    word, facts = why(room)
    assert (word, facts["gate"], facts["kind"]) == ("gate", "crm", "saving")
    assert why(room, "dear")[1]["kind"] == "rate"


def test_its_queue_is_paused(room):
    room.add("a")
    room.do(commands.pause)
    assert why(room) == ("paused", {"state": "available", "at": str(T0)})


def test_the_queue_is_at_its_limit(room):
    limit(room, queue="c=1")
    room.held("b")
    room.add("a")
    assert why(room) == (
        "whole",
        {"state": "available", "gate": "queue", "kind": "limit", "held": "1", "most": "1", "at": "",
         "holders": "default:b", "reserved": "0"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "lane, gates, gate, kind",
    [
        ("-:crm=acme", {"crm": "c=1"}, "crm=acme", "limit"),
        ("-:crm=acme", {"crm": "c=5", "crm=acme": "c=1"}, "crm=acme", "limit"),
        ("-:!account=7", {}, "!account=7", "lock"),
        ("-:a,crm=acme", {"a": "c=9", "crm": "c=1"}, "crm=acme", "limit"),
    ],
)
def test_a_limit_or_a_lock_is_taken(room, lane, gates, gate, kind):
    if gates:
        limit(room, **gates)
    room.held("b", lane=lane)
    room.add("a", lane=lane)
    word, facts = why(room)
    assert (word, facts["gate"], facts["kind"], facts["holders"]) == ("gate", gate, kind, "default:b")
    assert (facts["held"], facts["most"]) == ("1", "1")
    assert room.claim() == []
    assert why(room)[0] == "gate", "parked, it says the same"


def test_a_rate_is_spent(room):
    limit(room, crm="r=10/1000/1")
    room.held("b", lane="-:crm")
    room.add("a", lane="-:crm")
    word, facts = why(room)
    assert (word, facts["kind"], facts["at"]) == ("gate", "rate", str(T0 + 100))
    room.now += 100
    assert why(room)[0] == "turn"
    assert len(room.claim()) == 1


@pytest.mark.parametrize("gates, kind", [({"crm": "paused=1"}, "paused"), ({"crm": f"until={T0 + 70}"}, "blocked")])
def test_a_limit_is_paused_or_blocked(room, gates, kind):
    limit(room, **gates)
    room.add("a", lane="-:crm")
    word, facts = why(room)
    assert (word, facts["gate"], facts["kind"]) == ("gate", "crm", kind)


@pytest.mark.parametrize("all_of_it, key, by", [(70, 60, "crm"), (60, 70, "crm=acme"), (None, 70, "crm=acme")])
def test_a_block_names_what_it_was_said_of_and_the_longest_counts(room, all_of_it, key, by):
    limit(room, **({"crm": f"until={T0 + all_of_it}"} if all_of_it else {}), **{"crm=acme": f"until={T0 + key}"})
    room.add("a", lane="-:crm=acme")
    word, facts = why(room)
    assert (word, facts["kind"], facts["by"].removeprefix("op:")) == ("gate", "blocked", by)
    assert facts["at"] == str(T0 + 70)


def test_its_task_or_its_key_is_paused(room):
    limit(room, **{"*": "1", "@": "1", "*t": "paused=1", "@acme": "paused=1"})
    room.add("a")
    room.add("b", task="u", lane="acme:")
    assert why(room)[1] | {"gate": "*t", "kind": "paused"} == why(room)[1]
    assert why(room, "b")[1] | {"gate": "@acme", "kind": "paused"} == why(room, "b")[1]


def test_others_come_first(room):
    room.add("high1", "high2", priority=5)
    room.add("first", "second", "a")
    room.add("late")
    assert why(room) == ("turn", {"state": "available", "task": "t", "lanes_ahead": "1", "jobs_ahead": "2", "more": "0",
                                  "class": "async", "needs": "executor=async", "executors": "0", "who": "",
                                  "comes": "0"})  # fmt: skip
    assert why(room, "high1")[1]["jobs_ahead"] == "0"


def test_its_target_is_an_executor_that_comes(room):
    room.claim("ext:1", offer_ms=1)
    room.add("a", needs="target=ext%3A1")
    room.add("b", needs="target=ext")
    assert [(why(room, name)[1]["comes"], why(room, name)[1]["executors"]) for name in "ab"] == [("1", "1"), ("0", "1")]
    assert why(room, "a")[1]["who"] == "ext:1"


def test_executors_are_many_and_some_are_named(room):
    for n in range(5):
        room.claim(f"ext:{n}", offer_ms=1)
    room.add("a")
    found = why(room)[1]
    assert (found["executors"], len(found["who"].split())) == ("5", 3)


def test_its_place_in_a_lane_with_keys(room):
    for n in range(5):
        room.add(f"j{n}", lane="acme:")
    assert [why(room, f"j{n}")[1]["jobs_ahead"] for n in range(5)] == list("01234")


def test_one_that_came_back_is_first(room):
    epoch = room.held("b")
    room.add("a")
    room.do(commands.release, worker="n.1", jobs=[commands.Release("default:b", epoch, "")])
    assert why(room, "b")[1]["jobs_ahead"] == "0"
    assert why(room, "a")[1]["jobs_ahead"] == "1"


def test_of_a_long_way_only_so_much_is_counted(room):
    for at in range(0, 1250, 250):
        room.add(*(f"j{at + n}" for n in range(250)))
    room.add("a")
    assert why(room)[1] | {"jobs_ahead": "1000", "more": "1"} == why(room)[1]


def test_what_it_says_of_a_job_that_ran_is_no_gate(room):
    epoch = room.held("a", lane="acme:crm")
    room.do(commands.complete, worker="n.1", done=[Done("default:a", epoch, b"")])
    assert why(room)[0] == "ended"
