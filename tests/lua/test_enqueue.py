"""enqueue: all or none, repeatable, and nothing else is touched."""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.errors import JobAlreadyExists, TaskQError
from tests.lua.room import T0, new


def test_a_job_is_in_its_record_and_its_lane_and_nowhere_else(room):
    room.add("a")
    assert room.changed() == {
        "job:default:a task": "t",
        "job:default:a created_at": str(T0),
        "job:default:a state": "available",
        "job:default:a entry": "*",
        "body:async:0": ["default:a"],
        "levels:async 0": 0,
        "groups:async:0 -": 0,
        "lanes:async:0:- async:0": T0,
        "classes async": "executor=async",
        "meta class_version": "1",
        "wake:async 1": T0,
    }
    assert room.told == {"available": ["default:a"]}


def test_every_field_is_stored_as_it_came(room):
    payload = bytes(range(256)) + b"\x00'\"]]\r\n{q}*"
    room.add("a", payload=payload, meta='{"k": []}', max_attempts=10**15, keep=0)
    stored = room.client.hgetall(room.q.job("default:a"))
    assert stored[b"payload"] == payload
    assert stored[b"meta"] == b'{"k": []}'
    assert stored[b"max_attempts"] == b"1000000000000000"
    assert stored[b"keep"] == b"0"


@pytest.mark.parametrize("priority", [-512, -1, 1, 511])
def test_a_priority_is_its_own_level(room, priority):
    room.add("a")
    room.look()
    room.add("b", priority=priority)
    assert room.changed() == {
        "job:default:b task": "t",
        "job:default:b created_at": str(T0),
        "job:default:b state": "available",
        "job:default:b priority": str(priority),
        "job:default:b entry": "*",
        f"body:async:{priority}": ["default:b"],
        f"levels:async {priority}": priority,
        f"groups:async:{priority} -": 0,
        f"lanes:async:{priority}:- async:{priority}": T0,
        "wake:async 1": T0,
    }


def test_a_later_job_changes_no_position(room):
    room.add("a")
    room.look()
    room.now += 1
    room.add("b")
    assert room.changed().keys() == {
        "body:async:0",
        "wake:async 1",
        *(f"job:default:b {field}" for field in ("task", "created_at", "state", "entry")),
    }


def test_a_job_for_later_waits_by_its_time(room):
    assert room.do(commands.enqueue, [new("a", due="+5000"), new("b", due=str(T0 + 7000))]) == ["scheduled"] * 2
    changed = room.changed()
    assert changed["scheduled default:a"] == T0 + 5000
    assert changed["scheduled default:b"] == T0 + 7000
    assert changed["job:default:b scheduled_at"] == str(T0 + 7000)
    assert not any(row.startswith(("body", "front", "lanes", "levels", "groups")) for row in changed)
    assert room.told == {"scheduled": ["default:a", "default:b"]}


@pytest.mark.parametrize("due", ["", "+0", str(T0), str(T0 - 1), "0"])
def test_a_time_that_has_come_is_now(room, due):
    assert room.do(commands.enqueue, [new("a", due=due)]) == ["available"]
    assert "scheduled_at" not in room.job()


def test_a_deadline_of_waiting_is_noted(room):
    room.add("a", expires="+100")
    assert room.changed()["expiring default:a"] == T0 + 100
    assert room.job()["expires_at"] == str(T0 + 100)


def test_the_workers_word_on_the_executor_beats_the_producers(room):
    room.do(commands.declare, kinds={"t": "thread"}, retention={})
    room.add("a", executor="async")
    room.add("b", executor="")
    room.add("c", task="u", executor="")
    assert [room.job(name).get("class") for name in "abc"] == ["thread", "thread", None]


def test_a_class_seen_first_wakes_everybody(room):
    room.add("a")
    room.look()
    room.add("b", executor="thread")
    changed = room.changed()
    assert changed["meta class_version"] == "2"
    assert changed["wake:async 1"] == changed["wake:thread 1"] == T0


# --- once, however often it is sent


def test_the_same_call_again_adds_nothing_and_answers_the_same(room):
    jobs = [new("a", token="x"), new("b", token="y", due="+50"), new("c", due=str(T0 + 60)), new("a", token="z")]
    first = room.do(commands.enqueue, jobs)
    room.look()
    room.now += 55
    assert room.do(commands.enqueue, jobs) == first == ["available", "scheduled", "scheduled", "existing"]
    assert room.changed() == {}


@pytest.mark.parametrize("due", ["", "+50"])
def test_it_answers_the_same_whatever_became_of_the_job(room, due):
    jobs = [new("a", token="x", due=due)]
    first = room.do(commands.enqueue, jobs)
    room.now += 50
    (job,) = room.claim()
    failure = commands.Failure(job.id, job.epoch, "retry", 10, "{}", "x")
    room.do(commands.fail, worker="n.1", failures=[failure])
    assert room.do(commands.enqueue, jobs) == first
    room.do(commands.retry, [job.id])
    room.look()
    assert room.do(commands.enqueue, jobs) == first
    assert room.changed() == {}


def test_another_call_for_a_taken_id_leaves_the_job_alone(room):
    room.add("a", token="x", priority=3)
    room.look()
    assert room.do(commands.enqueue, [new("a", token="y", due="+1")]) == ["existing"]
    assert room.changed() == {}


@pytest.mark.parametrize("jobs", [[new("b"), new("a", token="y")], [new("b"), new("b")]], ids=["taken", "twice"])
def test_raise_adds_none_of_them(room, jobs):
    room.add("a", token="x")
    room.look()
    with pytest.raises(JobAlreadyExists, match=jobs[-1].id):
        room.do(commands.enqueue, jobs, exists="raise")
    assert room.changed() == {}


def test_raise_lets_the_same_call_pass(room):
    for _ in range(2):
        assert room.do(commands.enqueue, [new("a", token="x")], exists="raise") == ["available"]


# --- wrong input


@pytest.mark.parametrize(
    "wrong",
    [
        {"priority": 512},
        {"priority": -513},
        {"priority": "high"},
        {"priority": "nan"},
        {"due": "tomorrow"},
        {"due": "+-5"},
        {"due": "-5"},
        {"due": "inf"},
        {"expires": "+"},
        {"expires": str(2**60)},
    ],
    ids=str,
)
def test_a_job_that_makes_no_sense_stops_the_whole_call(room, wrong):
    room.add("a")
    room.look()
    with pytest.raises(Exception, match="cannot be"):
        room.do(commands.enqueue, [new("b"), new("c")._replace(**wrong)])
    assert room.changed() == {}


@pytest.mark.parametrize("tail", [["x"], ["x", "f"], ["-1"], []])
def test_a_call_cut_short_adds_nothing(room, tail):
    good = ["default:b", "", "t", "async", "0", "", "", "0"]
    with pytest.raises(Exception, match=r"cannot be|fewer fields"):
        room.raw("enqueue", room.now, "existing", *good, "default:c", "", "t", "async", "0", "", "", *tail)
    assert room.changed() == {}


def test_no_jobs_are_no_error(room):
    assert room.do(commands.enqueue, []) == []
    assert room.changed() == {}
    assert issubclass(JobAlreadyExists, TaskQError)
