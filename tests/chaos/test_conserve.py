"""The check itself: it is silent about a sound queue, and names each kind of damage."""

import pytest

from taskq import commands
from taskq.commands import NewJob
from tests.chaos.conserve import complaints

A, B, C, D = (f"default:{name}" for name in "abcd")


@pytest.fixture
def queue(run, q):
    """One job runs, one waits, one is scheduled and expires, one is completed."""
    for id, due, expires in ((A, "", ""), (B, "", ""), (C, "+60000", "+90000"), (D, "", "")):
        run(commands.enqueue(q, [NewJob(id, "", "t", "async", 0, due, expires, {})]))
    claim = run(commands.claim(q, worker="n.1", request=1, lease_ms=8000, limit=2, free={"async": 2}))
    done = claim.jobs[1]
    run(commands.complete(q, worker="n.1", done=[commands.Done(done.id, done.epoch, b"")]))
    assert [job.id for job in claim.jobs] == [A, B]
    return q


def test_silent_about_a_sound_queue(queue, raw):
    assert complaints(raw, queue, [A, B, C, D]) == []


def lose_the_record(raw, q):
    raw.delete(q.job(D))


def lose_the_lease(raw, q):
    raw.delete(q.fixed("leases"))


def stand_twice(raw, q):
    raw.zadd(q.fixed("failed"), {A: 1})


def stand_in_another_lane(raw, q):
    raw.hset(q.job(D), "priority", "7")


def lead_nowhere(raw, q):
    raw.delete(q.prefix + "levels:async")


def forget_the_end(raw, q):
    raw.delete(q.fixed("prune"))


def forget_the_expiry(raw, q):
    raw.delete(q.fixed("expiring"))


def run_once_too_often(raw, q):
    raw.hset(q.job(A), "attempt", "4")


def run_on_the_dead(raw, q):
    raw.hset(q.prefix + "claimed:n.1", "gone", "1")


def live_for_ever(raw, q):
    raw.persist(q.prefix + "claimed:n.1")


@pytest.mark.parametrize(
    "damage, words",
    [
        (lose_the_record, "was accepted and is no more"),
        (lose_the_lease, "its record says running; it stands in []"),
        (stand_twice, "it stands in ['failed', 'running']"),
        (stand_in_another_lane, "its record says available in lane async:7"),
        (lead_nowhere, "lanes with work: ['async:0']; a claim finds []"),
        (forget_the_end, "prune and the ended jobs differ"),
        (forget_the_expiry, "expiring is {}"),
        (run_once_too_often, "attempt 4 of 3"),
        (run_on_the_dead, "runs on n.1, which is gone"),
        (live_for_ever, "claimed:n.1: has no TTL"),
    ],
)
def test_names_damage(queue, raw, damage, words):
    damage(raw, queue)
    found = complaints(raw, queue, [A, B, C, D])
    assert any(words in each for each in found), found
    raw.flushall()
