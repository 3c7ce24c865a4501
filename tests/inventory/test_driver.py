"""Rows 156–170: enqueue, claim and finish as one script each: all or nothing, one winner, and only with proof."""

from __future__ import annotations

import threading

import pytest

from taskq import TaskQ, commands, connection
from taskq.commands import Done, Failure, Release, Snoozed
from tests.lua.room import T0, new
from tests.waiting import wait_until


def claimed_names(room, limit, worker="n.1"):
    return [job.id.partition(":")[2] for job in room.claim(worker, limit)]


# --- claim


def test_a_claim_takes_what_is_due_from_every_waiting_state_best_first(room):
    room.add("failed", priority=1)
    (job,) = room.claim()
    failure = Failure(job.id, job.epoch, "retry", 500, '{"type":"E"}', "E")
    room.do(commands.fail, worker="n.1", failures=[failure])
    room.add("usual", "usual-too")
    room.add("urgent", priority=9)
    room.add("due", priority=2, due="+500")
    room.add("later", priority=511, due="+501")
    room.now += 500
    assert claimed_names(room, 100) == ["urgent", "due", "failed", "usual", "usual-too"]
    found = room.do(commands.counts)
    assert (found.running, found.scheduled, found.retryable, found.available) == (5, 1, 0, 0)


@pytest.mark.parametrize("limit", [1, 10, 50])
def test_no_low_one_is_claimed_while_a_high_one_waits(room, limit):
    """PERF-09: strict, and in the order of their coming within a priority."""
    for count in range(3):
        room.add(*(f"low{count * 100 + n:03}" for n in range(100)))
    room.claim("other.1", limit)
    room.add(*(f"high{n:03}" for n in range(100)), priority=5)
    order = []
    while names := claimed_names(room, limit):
        order += names
    assert order[:100] == [f"high{n:03}" for n in range(100)]
    assert order[100:] == [f"low{n:03}" for n in range(limit, 300)]


def test_a_claim_of_nothing_takes_nothing(room):
    room.add("a")
    assert claimed_names(room, 0) == []
    assert room.do(commands.counts).available == 1


def test_a_claim_past_the_maximum_of_attempts_runs_nothing(room):
    """RETRY-07: whatever number stands there, it is compared by more and less."""
    room.add("a", "b")
    room.client.hset(room.q.job("default:a"), mapping={"attempt": 3, "max_attempts": 3})
    room.client.hset(room.q.job("default:b"), mapping={"attempt": 7, "max_attempts": 3})
    assert claimed_names(room, 10) == []
    assert [room.job(name)["state"] for name in "ab"] == ["failed", "failed"]
    assert room.job("b")["reason"] == "attempts exhausted"


def test_claimers_never_share_a_job(app, settings, q):
    ids = {job.id for job in app.enqueue_many(app.by_name("x").call(n) for n in range(600))}
    taken: list[str] = []

    def work(number):
        mine = connection.connect(settings)
        for request in range(1, 1000):
            options = {"worker": f"w-{number}.1", "request": request, "lease_ms": 60_000, "limit": 7}
            jobs = connection.run(mine, commands.claim(q, **options, free={"async": 7})).jobs
            if not jobs:
                break
            taken.extend(job.id for job in jobs)
        mine.close()

    claimers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for claimer in claimers:
        claimer.start()
    for claimer in claimers:
        claimer.join()
    assert len(taken) == len(ids) == 600
    assert set(taken) == ids


# --- finishing


@pytest.mark.parametrize("who", ["another worker", "an older lease", "nobody's job"])
@pytest.mark.parametrize("verb", ["complete", "fail", "retry", "release", "snooze"])
def test_without_the_lease_nothing_can_be_said_of_a_job(room, verb, who):
    """Rows 161–163, 226: the fence that the reference lacked."""
    epoch = room.held()
    worker = "n.2" if who == "another worker" else "n.1"
    id = "default:b" if who == "nobody's job" else "default:a"
    epoch -= who == "an older lease"
    room.look()
    said = {
        "complete": lambda: room.do(commands.complete, worker=worker, done=[Done(id, epoch, b"\x01")]),
        "fail": lambda: room.do(commands.fail, worker=worker, failures=[Failure(id, epoch, "fail", 0, "{}", "E")]),
        "retry": lambda: room.do(commands.fail, worker=worker, failures=[Failure(id, epoch, "retry", 0, "{}", "E")]),
        "release": lambda: room.do(commands.release, worker=worker, jobs=[Release(id, epoch, "thread")]),
        "snooze": lambda: room.do(
            commands.snooze, worker=worker, grace_ms=0, jobs=[Snoozed(id, epoch, "unknown", 0, "E")]
        ),
    }[verb]()
    assert said == ["gone" if who == "nobody's job" else "lost"]
    assert room.changed() == {}


def test_a_finish_said_twice_is_done_once(room):
    epoch = room.held()
    done = [Done("default:a", epoch, b"\x01")]
    assert room.do(commands.complete, worker="n.1", done=done) == ["ok"]
    room.look()
    room.now += 10
    assert room.do(commands.complete, worker="n.1", done=done) == ["ok"]
    assert room.changed() == {}
    assert room.job()["finished_at"] == str(T0)


# --- enqueue


def test_a_batch_is_added_whole_or_not_at_all(room):
    room.look()
    batch = [new("a"), new("b", priority=600)]
    with pytest.raises(Exception, match="priority"):
        room.do(commands.enqueue, batch)
    assert room.changed() == {}
    room.do(commands.enqueue, [new("b", token="one")])
    room.look()
    with pytest.raises(Exception, match="exists already"):
        room.do(commands.enqueue, [new("a"), new("b", token="another"), new("c")], exists="raise")
    assert room.changed() == {}


# --- the connection


def test_close_gives_the_connections_back(app, raw, server_url, namespace):
    def ours():
        return {client["id"] for client in raw.client_list() if client["name"] == "taskq:client"}

    def opened_by(one):
        before = ours()
        assert one.ping()
        return ours() - before

    other = TaskQ(server_url, namespace=namespace)
    mine, others = opened_by(app), opened_by(other)
    assert (len(mine), len(others)) == (1, 1)
    app.close()
    wait_until(lambda: not mine & ours())
    assert others <= ours()
    other.close()
    wait_until(lambda: not others & ours())
