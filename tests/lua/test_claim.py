"""claim: one winner, best first, everything a worker needs in one answer, and the same answer if it is asked again."""

from __future__ import annotations

import pytest

from taskq import commands
from tests.lua.room import LEASE_MS, T0, new
from tests.lua.test_fsck import sound


def claim(room, request, worker="n.1", limit=100, free=None):
    return room.do(
        commands.claim, worker=worker, request=request, lease_ms=LEASE_MS, limit=limit, free=free or {"async": 100}
    )


def names(jobs):
    return [job.id.removeprefix("default:") for job in jobs]


def test_it_moves_the_job_and_nothing_else(room):
    room.add("a", "b", payload=b"\xff")
    room.look()
    room.now += 5
    answer = claim(room, 1, limit=1)
    assert answer.word == "ok"
    assert [(job.id, job.epoch, job.attempt) for job in answer.jobs] == [("default:a", T0 + 5, 1)]
    assert answer.jobs[0].fields[b"payload"] == b"\xff"
    assert room.changed() == {
        "job:default:a state": "running",
        "job:default:a epoch": str(T0 + 5),
        "job:default:a attempt": "1",
        "job:default:a worker": "n.1",
        "job:default:a entry": None,
        "leases default:a": T0 + 5 + LEASE_MS,
        "body:async:0": ["default:b"],
        "claimed:n.1 request": "1",
        "claimed:n.1 default:a": str(T0 + 5),
        "meta seen": str(T0 + 5),
        "meta quiet_until": str(T0 + 5 + LEASE_MS),
        "wake:async 1": T0 + 5,
    }
    assert room.told == {"running": ["default:a"]}
    assert room.keyspace.ttls["claimed:n.1"] > 0


def test_a_lane_that_ran_empty_leads_nobody_any_more(room):
    room.add("a")
    room.look()
    claim(room, 1)
    changed = room.changed()
    assert changed["levels:async 0"] is None
    assert changed["groups:async:0 -"] is None
    assert changed["lanes:async:0:- async:0"] is None
    assert changed["empty async:0"] == T0
    assert "wake:async 1" not in changed


def test_higher_priority_first_then_the_order_they_came_in(room):
    room.do(commands.enqueue, [new(f"{p}{n}", priority=p) for n in "ab" for p in (-512, 0, 511, -1, 1)])
    claimed = names(claim(room, 1, limit=10).jobs)
    assert claimed == [f"{p}{n}" for p in (511, 1, 0, -1, -512) for n in "ab"]


def test_concurrent_claimers_never_share_a_job(room):
    room.add(*"abcdef")
    got = [name for worker in ("n.1", "n.2", "n.3") for name in names(claim(room, 1, worker, limit=2).jobs)]
    assert got == list("abcdef")


@pytest.mark.parametrize("limit, free", [(0, 5), (5, 0), (5, -1)])
def test_nothing_asked_for_is_nothing_given(room, limit, free):
    room.add("a")
    answer = claim(room, 1, limit=limit, free={"async": free})
    assert (answer.word, answer.jobs) == ("ok", [])


def test_only_classes_with_free_slots_are_given(room):
    room.do(
        commands.enqueue, [new(f"{kind}{n}", executor=kind, priority=n) for kind in ("async", "thread") for n in (0, 1)]
    )
    assert names(claim(room, 1, free={"async": 1, "thread": 1}).jobs) == ["async1", "thread1"]
    assert names(claim(room, 2, free={"thread": 5}).jobs) == ["thread0"]
    assert names(claim(room, 3, free={"none": 5}).jobs) == []
    assert room.job("async0")["state"] == "available"


def test_epochs_grow_even_if_the_clock_does_not(room):
    epoch = room.held()
    for released in (1, 2):
        room.do(commands.release, worker="n.1", jobs=[commands.Release("default:a", epoch, "")])
        room.now -= 1000
        (job,) = claim(room, released + 1).jobs
        assert job.epoch == epoch + 1
        epoch = job.epoch


def test_started_at_is_the_first_start_of_this_life(room):
    epoch = room.held()
    fail = commands.Failure("default:a", epoch, "retry", 0, "{}", "x")
    room.do(commands.fail, worker="n.1", failures=[fail])
    room.now += 500
    claim(room, 2)
    assert room.job()["started_at"] == str(T0)


def test_started_at_begins_anew_with_a_manual_retry(room):
    epoch = room.held()
    room.do(commands.complete, worker="n.1", done=[commands.Done("default:a", epoch, b"")])
    room.do(commands.retry, ["default:a"])
    assert room.job()["started_at"] == ""
    room.now += 500
    claim(room, 2)
    assert room.job()["started_at"] == str(T0 + 500)


def test_expired_jobs_are_cancelled_not_given(room):
    room.add("a", expires="+100")
    room.add("b")
    room.now += 100
    room.look()
    assert names(claim(room, 1).jobs) == ["b"]
    changed = room.changed()
    assert changed["job:default:a state"] == "cancelled"
    assert changed["job:default:a reason"] == "expired"
    assert changed["expiring default:a"] is None
    assert changed["cancelled default:a"] == room.now


def test_one_ms_before_it_expires_it_is_given(room):
    room.add("a", expires="+100")
    room.now += 99
    assert names(claim(room, 1).jobs) == ["a"]
    assert "expiring" not in room.keyspace.dump()


@pytest.mark.parametrize("maximum", ["0", "-1"])
def test_a_maximum_that_makes_no_sense_is_three(room, maximum):
    room.add("a", max_attempts=maximum)
    for attempt in (1, 2, 3):
        (job,) = room.claim()
        assert job.attempt == attempt
        failure = commands.Failure(job.id, job.epoch, "retry", 0, "{}", "no more")
        (word,) = room.do(commands.fail, worker="n.1", failures=[failure])
        assert word == ("retryable" if attempt < 3 else "failed")


def test_attempts_beyond_the_maximum_never_run(room):
    room.add("a", max_attempts=2)
    room.client.hset(room.q.job("default:a"), "attempt", 2)
    assert claim(room, 1).jobs == []
    assert room.job()["state"] == "failed"
    assert room.job()["reason"] == "attempts exhausted"


# --- due jobs


def test_due_jobs_are_given_on_the_way(room):
    room.do(commands.enqueue, [new("a", due="+100"), new("b", due="+101")])
    room.now += 100
    answer = claim(room, 1)
    assert names(answer.jobs) == ["a"]
    assert answer.next_ms == 1


def test_work_promoted_for_a_class_not_served_is_told(room):
    room.add("a", due="+100", executor="thread")
    room.now += 100
    room.look()
    assert claim(room, 1).jobs == []
    assert room.changed()["wake:thread 1"] == room.now


def test_the_timer_is_exact_for_one_worker_and_later_for_the_others(room):
    room.add("a", due="+1000")
    room.now += 10
    assert claim(room, 1, "n.1").next_ms == 990
    assert claim(room, 1, "n.2").next_ms == 1040
    assert claim(room, 2, "n.1").next_ms == 990
    room.add("b", due="+10")
    assert claim(room, 2, "n.2").next_ms == 10
    assert claim(room, 3, "n.1").next_ms == 60


def test_the_timer_of_what_was_handed_back_is_for_others(room):
    """Else the worker that doesn't know the task would always come first, and one that does never."""
    epoch = room.held()
    snoozed = [commands.Snoozed("default:a", epoch, "unknown", 5000, "x")]
    room.do(commands.snooze, worker="n.1", grace_ms=10**6, jobs=snoozed)
    assert claim(room, 2, "n.1").next_ms == 6000
    assert claim(room, 1, "n.2").next_ms == 6000, "nor for another worker of the same node"
    assert claim(room, 1, "m.1").next_ms == 5000
    assert claim(room, 3, "n.1").next_ms == 5050
    room.now += 5000
    assert names(claim(room, 2, "m.1").jobs) == ["a"]


def test_without_anything_due_there_is_no_timer(room):
    assert claim(room, 1).next_ms is None


def test_a_timer_whose_worker_never_came_becomes_everybodys(room):
    room.do(commands.enqueue, [new(f"j{n}", due="+10") for n in range(150)])
    assert claim(room, 1, "n.1").next_ms == 10
    room.now += 2000
    assert claim(room, 1, "n.2", limit=1).next_ms == 0


# --- asked again


def test_the_same_request_gives_the_same_jobs_and_renews_them(room):
    room.add("a", "b", "c")
    first = claim(room, 1, limit=2)
    room.look()
    room.now += 3000
    again = claim(room, 1, limit=2)
    assert [job[:3] for job in again.jobs] == [job[:3] for job in first.jobs]
    assert room.changed() == {f"leases default:{name}": room.now + LEASE_MS for name in "ab"}


def test_the_same_request_leaves_out_what_was_lost_since(room):
    room.add("a", "b")
    first = claim(room, 1).jobs
    room.do(commands.complete, worker="n.1", done=[commands.Done("default:a", first[0].epoch, b"")])
    assert names(claim(room, 1).jobs) == ["b"]


def test_a_job_given_to_another_in_between_is_not_given_back(room):
    epoch = room.held()
    room.do(commands.release, worker="n.1", jobs=[commands.Release("default:a", epoch, "")])
    assert names(room.claim("n.2")) == ["a"]
    room.look()
    assert claim(room, 1).jobs == []
    assert room.changed() == {}


def test_an_older_request_is_refused(room):
    room.add("a")
    claim(room, 5)
    room.look()
    answer = claim(room, 4)
    assert (answer.word, answer.jobs, answer.next_ms) == ("stale", [], None)
    assert room.changed() == {}


def test_a_worker_declared_dead_gets_nothing_and_passes_on_its_marker(room):
    room.do(commands.bury, worker="n.1", why="SIGKILL", jobs=[])
    room.add("a")
    room.look()
    answer = claim(room, 1)
    assert (answer.word, answer.jobs) == ("gone", [])
    assert room.changed() == {"wake:async 1": T0}


# --- bounds, pause, wrong input


def test_a_paused_queue_gives_nothing(room):
    room.add("a")
    room.add("b", due="+5")
    room.do(commands.pause)
    room.now += 10
    answer = claim(room, 1)
    assert (answer.word, answer.jobs, answer.next_ms) == ("paused", [], None)
    room.do(commands.resume)
    assert names(claim(room, 2).jobs) == ["a", "b"]


def test_one_call_looks_at_no_more_than_250_jobs(room):
    for start in range(0, 600, 200):
        room.do(commands.enqueue, [new(f"j{n}", expires="+10") for n in range(start, start + 200)])
    room.add("last")
    room.now += 10
    answer = claim(room, 1)
    assert (answer.jobs, room.do(commands.counts).cancelled) == ([], 250)
    assert room.client.exists(room.q.wake("async")), "somebody goes on"
    assert [names(claim(room, request).jobs) for request in (2, 3)] == [[], ["last"]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"lease_ms": 0},
        {"lease_ms": -1},
        {"lease_ms": 10**15},
        {"lease_ms": "nan"},
        {"limit": -1},
        {"limit": "many"},
        {"request": "x"},
        {"free": {"async": "x"}},
    ],
    ids=str,
)
def test_wrong_input_changes_nothing(room, wrong):
    room.add("a")
    room.look()
    right = {"worker": "n.1", "request": 1, "lease_ms": LEASE_MS, "limit": 1, "free": {"async": 1}}
    with pytest.raises(Exception, match="cannot be"):
        room.do(commands.claim, **(right | wrong))
    assert room.changed() == {}


def test_one_whose_task_was_paused_is_found_in_its_new_lane(room):
    """It was the last of its lane: what led there leads to the new one."""
    room.add("a")
    room.client.hset(room.q.fixed("limits"), mapping={"*": 1, "*t": "paused=1"})
    assert room.claim() == []
    assert sound(room)
    room.client.hdel(room.q.fixed("limits"), "*", "*t")
    room.now += 30_000
    assert [job.id for job in room.claim()] == ["default:a"]
