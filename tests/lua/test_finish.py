"""complete and fail: only by the holder, only once, and the attempt's story is kept."""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.commands import Done, Failure
from tests.lua.room import T0, new

DAY_MS = 86_400_000


def complete(room, *rows, worker="n.1"):
    return room.do(commands.complete, worker=worker, done=[Done(f"default:{name}", *rest) for name, *rest in rows])


def fail(room, epoch, verb="retry", *, delay_ms=1000, error='{"type":"E"}', reason="why", name="a", worker="n.1"):
    failures = [Failure(f"default:{name}", epoch, verb, delay_ms, error, reason)]
    (word,) = room.do(commands.fail, worker=worker, failures=failures)
    return word


# --- complete


def test_a_completed_job_leaves_its_lease_and_stays_for_its_time(room):
    epoch = room.held()
    room.look()
    room.now += 700
    assert complete(room, ("a", epoch, b"")) == ["ok"]
    assert room.changed() == {
        "job:default:a state": "completed",
        "job:default:a finished_at": str(T0 + 700),
        "job:default:a ended": f"{epoch} complete",
        "leases default:a": None,
        "completed default:a": T0 + 700,
        "prune default:a": T0 + 700 + DAY_MS,
    }
    assert room.told == {"completed": ["default:a"]}


def test_a_result_is_kept_byte_for_byte(room):
    result = bytes(range(256))
    complete(room, ("a", room.held(), result))
    assert room.client.hget(room.q.job("default:a"), "result") == result


def test_a_batch_answers_for_each(room):
    held = {name: room.held(name) for name in "ab"}
    gone = ("nobody", 1, b"")
    words = complete(room, ("a", held["a"], b""), gone, ("b", held["b"] - 1, b""), ("a", held["a"], b"other"))
    assert words == ["ok", "gone", "lost", "ok"]
    assert room.job("b")["state"] == "running"
    assert "result" not in room.job("a")


def test_said_again_it_is_answered_and_changes_nothing(room):
    epoch = room.held()
    complete(room, ("a", epoch, b""))
    room.look()
    room.now += 10
    assert complete(room, ("a", epoch, b"other")) == ["ok"]
    assert room.changed() == {}


def test_statistics_know_how_long_it_ran(room):
    epoch = room.held()
    room.now += 700
    complete(room, ("a", epoch, b""))
    stats = room.keyspace.dump()["stats"]
    assert stats == {"enqueued t": "1", "running t": "1", "completed t": "1", "run_ms t": "700"}
    assert room.keyspace.dump()[f"stats:{T0 // 60_000}"] == stats
    assert room.keyspace.ttls[f"stats:{T0 // 60_000}"] > 0


# --- fail


def test_a_failed_attempt_waits_for_its_backoff(room):
    epoch = room.held()
    room.look()
    assert fail(room, epoch) == "retryable"
    assert room.changed() == {
        "job:default:a state": "retryable",
        "job:default:a ended": f"{epoch} retry",
        "job:default:a error:1": '{"type": "E"}',
        "job:default:a scheduled_at": str(T0 + 1000),
        "leases default:a": None,
        "retryable default:a": T0 + 1000,
        "wake:async 1": T0,
    }
    assert room.told == {"retryable": ["default:a"]}


@pytest.mark.parametrize("verb", ["retry", "fail"])
def test_the_last_attempt_ends_the_job(room, verb):
    epoch = room.held(max_attempts=1 if verb == "retry" else 9)
    room.look()
    assert fail(room, epoch, verb) == "failed"
    assert room.changed() == {
        "job:default:a state": "failed",
        "job:default:a finished_at": str(T0),
        "job:default:a reason": "why",
        "job:default:a ended": f"{epoch} {verb}",
        "job:default:a error:1": '{"type": "E"}',
        "leases default:a": None,
        "failed default:a": T0,
        "prune default:a": T0 + 14 * DAY_MS,
    }


def test_three_attempts_are_exactly_three_runs(room):
    room.add("a")
    words = []
    for _ in range(3):
        (job,) = room.claim()
        words.append(fail(room, job.epoch, delay_ms=0))
    assert words == ["retryable", "retryable", "failed"]
    assert room.claim() == []
    assert [room.job().get(f"error:{n}") is not None for n in (1, 2, 3, 4)] == [True, True, True, False]


@pytest.mark.parametrize("verb", ["retry", "fail"])
def test_a_job_whose_cancel_was_asked_is_cancelled(room, verb):
    """An executor that was told to stop it says that it failed for good: what was asked is what it is."""
    epoch = room.held()
    room.do(commands.cancel, ["default:a"])
    assert fail(room, epoch, verb) == "cancelled"
    assert room.job()["reason"] == "cancelled while running"
    assert room.job()["error:1"] == '{"type": "E"}'


def test_of_many_errors_the_last_twenty_stay(room):
    room.add("a", max_attempts=100)
    for attempt in range(1, 31):
        (job,) = room.claim()
        if attempt % 3:
            fail(room, job.epoch, delay_ms=0)
        else:  # the same for crashes
            room.do(commands.bury, worker="n.1", why="x", jobs=[commands.Buried(job.id, job.epoch, "lost")])
            room.client.delete(room.q.claimed("n.1"))
    errors = sorted(int(field[6:]) for field in room.job() if field.startswith("error:"))
    assert errors == list(range(11, 31))


def test_said_again_it_is_answered_once_more(room):
    epoch = room.held()
    fail(room, epoch)
    room.look()
    assert fail(room, epoch, delay_ms=5, error="other") == "ok"
    assert room.changed() == {}


def test_a_job_that_ran_may_be_handed_back_as_unknown_for_a_whole_grace_again(room):
    epoch = room.held(max_attempts=9)
    unknown = commands.Snoozed("default:a", epoch, "unknown", 0, "unknown task")
    room.do(commands.snooze, worker="n.1", grace_ms=1000, jobs=[unknown])
    (job,) = room.claim()
    fail(room, job.epoch, delay_ms=0)
    room.now += 5000
    (job,) = room.claim()
    words = room.do(commands.snooze, worker="n.1", grace_ms=1000, jobs=[unknown._replace(epoch=job.epoch)])
    assert words == ["scheduled"]


# --- without the right to it


@pytest.mark.parametrize("call", ["complete", "fail", "release", "snooze"])
@pytest.mark.parametrize("worker, epoch", [("n.1", -1), ("n.1", 1), ("n.2", 0), ("", 0)])
def test_an_old_epoch_or_another_worker_changes_nothing(room, call, worker, epoch):
    held = room.held() + epoch
    room.look()
    assert said(room, call, worker, held) == ["lost"]
    assert room.changed() == {}


@pytest.mark.parametrize("call", ["complete", "fail", "release", "snooze"])
def test_after_the_lease_was_reaped_the_late_word_is_refused(room, call):
    epoch = room.held()
    room.watched()
    assert room.job()["state"] == "available"
    room.look()
    assert said(room, call, "n.1", epoch) == ["lost"]
    assert room.changed() == {}


@pytest.mark.parametrize("call", ["complete", "fail", "release", "snooze"])
def test_of_a_job_that_is_no_more_it_says_so(room, call):
    assert said(room, call, "n.1", 1) == ["gone"]
    assert room.changed() == {}


@pytest.mark.parametrize("call", ["complete", "fail", "release", "snooze"])
def test_a_running_job_of_another_is_not_ended_by_its_earlier_holder(room, call):
    epoch = room.held()
    room.do(commands.release, worker="n.1", jobs=[commands.Release("default:a", epoch, "")])
    room.claim("n.2")
    room.look()
    assert said(room, call, "n.1", epoch) == ["ok" if call == "release" else "lost"]
    assert room.changed() == {}


@pytest.mark.parametrize("call", ["complete", "fail", "release", "snooze"])
def test_twice_in_one_call_is_once(room, call):
    epoch = room.held()
    assert said(room, call, "n.1", epoch, epoch)[1] == "ok"
    assert len(room.keyspace.dump().get("front:async:0", {})) <= 1


def said(room, call, worker, *epochs):
    rows = {
        "complete": {"done": [Done("default:a", epoch, b"x") for epoch in epochs]},
        "fail": {"failures": [Failure("default:a", epoch, "fail", 0, "{}", "x") for epoch in epochs]},
        "release": {"jobs": [commands.Release("default:a", epoch, "thread") for epoch in epochs]},
        "snooze": {"jobs": [commands.Snoozed("default:a", e, "snooze", 5, "") for e in epochs], "grace_ms": 0},
    }
    return room.do(getattr(commands, call), worker=worker, **rows[call])


# --- wrong input


@pytest.mark.parametrize(
    "call, wrong",
    [
        ("fail", {"verb": "again"}),
        ("fail", {"delay_ms": -1}),
        ("fail", {"delay_ms": "soon"}),
        ("snooze", {"kind": "nap"}),
        ("snooze", {"delay_ms": "nan"}),
    ],
)
def test_wrong_input_in_one_row_stops_all(room, call, wrong):
    held = [room.held(name) for name in "ab"]
    room.look()
    if call == "fail":
        rows = [Failure(f"default:{n}", e, "fail", 0, "{}", "x") for n, e in zip("ab", held, strict=True)]
        options = {"failures": [rows[0], rows[1]._replace(**wrong)]}
    else:
        rows = [commands.Snoozed(f"default:{n}", e, "snooze", 0, "x") for n, e in zip("ab", held, strict=True)]
        options = {"jobs": [rows[0], rows[1]._replace(**wrong)], "grace_ms": 5}
    with pytest.raises(Exception, match="cannot be"):
        room.do(getattr(commands, call), worker="n.1", **options)
    assert room.changed() == {}


def test_many_at_once_cost_no_position(room):
    room.do(commands.enqueue, [new(f"j{n}") for n in range(250)])
    held = room.claim(limit=250, free={"async": 250})
    words = room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"r") for job in held])
    assert words == ["ok"] * 250
    assert room.do(commands.counts).completed == 250
