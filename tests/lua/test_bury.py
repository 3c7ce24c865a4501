"""bury: what a dead worker held comes back at once, and the dead claims no more."""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.commands import Buried
from tests.lua.room import LEASE_MS, T0


def bury(room, *jobs, worker="n.1", why="SIGKILL"):
    return room.do(commands.bury, worker=worker, why=why, jobs=[Buried(f"default:{n}", *rest) for n, *rest in jobs])


def test_a_lost_job_is_available_at_its_place_and_the_attempt_counts(room):
    epoch = room.held()
    room.look()
    room.now += 10
    assert bury(room, ("a", epoch, "lost")) == [("default:a", "available")]
    error = f'{{"at": {room.now}, "message": "worker died: n.1 (SIGKILL)", "type": "JobCrashed", "worker": "n.1"}}'
    assert room.changed() == {
        "job:default:a state": "available",
        "job:default:a error:1": error,
        "job:default:a ended": f"{epoch} bury",
        "leases default:a": None,
        "front:async:0 default:a": T0,
        "levels:async 0": 0,
        "groups:async:0 -": 0,
        "lanes:async:0:- async:0": T0,
        "claimed:n.1 default:a": None,
        "claimed:n.1 request": None,
        "claimed:n.1 gone": "1",
        "wake:async 1": room.now,
    }
    assert room.keyspace.ttls["claimed:n.1"] > 0


@pytest.mark.parametrize("fields", [{"max_attempts": 1}, {"on_lease_lost": "fail"}], ids=str)
def test_the_last_attempt_fails_and_says_who_died(room, fields):
    epoch = room.held(**fields)
    assert bury(room, ("a", epoch, "lost")) == [("default:a", "failed")]
    assert room.job()["reason"] == "worker died: n.1 (SIGKILL)"


def test_a_job_whose_code_had_ended_has_had_its_attempt(room):
    epochs = room.held("a"), room.held("b", max_attempts=1)
    answer = bury(room, ("a", epochs[0], "ended"), ("b", epochs[1], "ended"))
    assert answer == [("default:a", "available"), ("default:b", "failed")]
    reason = "worker died: n.1 (SIGKILL); its code had ended"
    assert (room.job()["attempt"], room.job("b")["reason"]) == ("1", reason)
    assert reason in room.job()["error:1"]


def test_a_neighbour_of_the_culprit_is_refunded(room):
    epochs = {name: room.held(name) for name in "ab"}
    bury(room, ("a", epochs["a"], "refund"), ("b", epochs["b"], "lost"))
    assert [room.job(name)["attempt"] for name in "ab"] == ["0", "1"]
    assert "error:1" not in room.job("a")


def test_a_hard_timeout_is_a_failed_attempt_with_its_backoff(room):
    epoch = room.held()
    assert bury(room, ("a", epoch, "timeout", 700)) == [("default:a", "retryable")]
    assert room.keyspace.dump()["retryable"] == {"default:a": T0 + 700}
    assert '"type": "JobTimeout"' in room.job()["error:1"]


def test_a_hard_timeout_of_the_last_attempt_fails(room):
    epoch = room.held(max_attempts=1)
    assert bury(room, ("a", epoch, "timeout", 700)) == [("default:a", "failed")]
    assert room.job()["reason"] == "hard timeout: worker n.1 was replaced"


def test_a_claim_whose_answer_was_lost_is_refunded(room):
    room.add("a", "b")
    held = {job.id[-1]: job.epoch for job in room.claim()}
    moved = bury(room, ("b", held["b"], "lost"))
    assert dict(moved) == {"default:a": "available", "default:b": "available"}
    assert [room.job(name)["attempt"] for name in "ab"] == ["0", "1"]


@pytest.mark.parametrize("verb", ["lost", "ended", "refund", "timeout"])
def test_a_cancelled_job_stays_so(room, verb):
    epoch = room.held()
    room.do(commands.cancel, ["default:a"])
    assert bury(room, ("a", epoch, verb, 5)) == [("default:a", "cancelled")]
    assert room.job()["reason"] == "cancelled while running"
    assert room.claim("n.2") == []


def test_said_again_it_moves_nothing(room):
    epoch = room.held()
    bury(room, ("a", epoch, "lost"))
    room.look()
    assert bury(room, ("a", epoch, "lost")) == []
    assert room.changed() == {"wake:async 1": T0}


def test_what_others_hold_now_is_left_alone(room):
    epoch = room.held()
    room.do(commands.release, worker="n.1", jobs=[commands.Release("default:a", epoch, "")])
    (job,) = room.claim("n.2")
    room.look()
    assert bury(room, ("a", epoch, "lost"), ("a", job.epoch, "lost")) == []
    assert room.changed().keys() == {"claimed:n.1 default:a", "claimed:n.1 request", "claimed:n.1 gone", "wake:async 1"}


def test_a_late_word_of_the_dead_is_refused(room):
    epoch = room.held()
    bury(room, ("a", epoch, "lost"))
    room.look()
    assert room.do(commands.complete, worker="n.1", done=[commands.Done("default:a", epoch, b"")]) == ["lost"]
    assert room.do(commands.renew, lease_ms=LEASE_MS, held=[commands.Held("default:a", epoch, "n.1")]) == ["lost"]
    assert room.changed() == {}


def test_all_markers_are_set_for_the_dead_may_have_taken_one(room):
    room.add("a")
    room.add("b", executor="thread")
    room.look()
    bury(room)
    assert room.changed() == {"claimed:n.1 gone": "1", "wake:async 1": T0, "wake:thread 1": T0}


def test_crashes_count_until_the_maximum(room):
    """A job that kills its worker each time is failed, not given out for ever."""
    room.add("a")
    states = []
    for n in range(3):
        (job,) = room.claim(f"n.{n}")
        states += bury(room, ("a", job.epoch, "lost"), worker=f"n.{n}")
    assert [state for _, state in states] == ["available", "available", "failed"]


@pytest.mark.parametrize("wrong", [("a", 1, "maybe"), ("a", 1, "timeout", -1), ("a", 1, "timeout", "x")])
def test_wrong_input_changes_nothing(room, wrong):
    epoch = room.held()
    room.look()
    with pytest.raises(Exception, match="cannot be"):
        bury(room, ("a", epoch, "lost"), wrong)
    assert room.changed() == {}
