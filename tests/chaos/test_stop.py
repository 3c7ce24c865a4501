"""SIGSTOP: a worker that stands still past its lease has lost its jobs, and nobody else waits for it."""

import os
import signal
import threading
import time

import pytest

from taskq import commands
from tests.waiting import wait_until

LEASE = {"TASKQ_LEASE": "4s"}


@pytest.fixture
def stop():
    """`stop(pid)`: SIGSTOP; continued at the end, whatever happens."""
    stopped = []

    def stop(pid):
        stopped.append(pid)
        os.kill(pid, signal.SIGSTOP)

    yield stop
    for pid in stopped:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            continue


@pytest.mark.fault("SIGSTOP of a worker")
def test_a_late_finish_is_refused_and_changes_nothing(fleet, shop, ledger, stop, trial):
    look = trial.look
    node = fleet.start("-w", "2", **LEASE)
    job = shop.nap.enqueue(2)
    wait_until(lambda: ledger.starts(job.id))
    victim, held = ledger.starts(job.id)[0].pid, look.record(job)
    stop(victim)
    trial.struck.add(victim)
    look.until([job], "completed", 15)
    done = look.record(job)
    assert (done.attempt, done.worker == held.worker) == (2, False)
    assert "lease expired" in done.errors[0].message
    assert [look.run(each) for each in whatever_a_holder_says(look.q, held)] == [["lost"]] * 5
    os.kill(victim, signal.SIGCONT)
    trial.over()
    wait_until(lambda: "a finish came too late: the lease was lost" in node.text())
    assert dict(look.record(job).fields) == dict(done.fields)
    assert (len(ledger.starts(job.id)), len(ledger.ends(job.id))) == (2, 2)
    assert victim in node.workers()


def whatever_a_holder_says(q, held):
    """Each word of a holder about a job, with the lease it had."""
    id, epoch, worker = held.id, held.epoch, held.worker
    return [
        commands.complete(q, worker=worker, done=[commands.Done(id, epoch, b"\x01")]),
        commands.fail(q, worker=worker, failures=[commands.Failure(id, epoch, "fail", 0, "{}", "no")]),
        commands.release(q, worker=worker, jobs=[commands.Release(id, epoch, "")]),
        commands.snooze(q, worker=worker, grace_ms=1000, jobs=[commands.Snoozed(id, epoch, "snooze", 10, "")]),
        commands.renew(q, lease_ms=8000, held=[commands.Held(id, epoch, worker)]),
    ]


@pytest.mark.timeout(120)
@pytest.mark.fault("SIGSTOP of a node")
def test_a_stopped_node_has_lost_what_its_workers_run(fleet, shop, ledger, stop, trial):
    """Its workers live, and give up what they run at the end of its lease; another node runs it again."""
    first, _ = fleet.start("-w", "2", "-c", "10", **LEASE), fleet.start("-w", "1", "-c", "50", **LEASE)
    before = fleet.pids()
    jobs = shop.app.enqueue_many([shop.nap.call(7) for _ in range(30)])
    wait_until(lambda: len(ledger.starts()) == len(jobs))
    assert {each.pid for each in ledger.starts()} & set(first.workers())
    trial.struck.update(first.workers())
    stop(first.pid)
    time.sleep(7)
    os.kill(first.pid, signal.SIGCONT)
    trial.over()
    trial.look.until(jobs, "completed", 30)
    assert len(ledger.ends()) - len(ledger.more_than_once()) <= len(trial.look.accepted)
    assert fleet.pids() == before


@pytest.mark.timeout(120)
@pytest.mark.fault("SIGSTOP of everything")
def test_everything_stands_still_for_longer_than_a_lease(fleet, shop, ledger, stop, trial):
    """As when a machine sleeps. All nodes and workers go on, and what ran is done in the end."""
    for _ in range(2):
        fleet.start("-w", "2", **LEASE)
    before = fleet.pids()
    jobs = shop.app.enqueue_many([shop.nap.call(3) for _ in range(30)])
    jobs += shop.app.enqueue_many([shop.work.call(0.2) for _ in range(30)])
    wait_until(lambda: len(ledger.starts()) > 30)
    for pid in before:
        trial.struck.add(pid)
        stop(pid)
    time.sleep(6)
    for pid in before:
        os.kill(pid, signal.SIGCONT)
    trial.over()
    trial.look.until(jobs, "completed", 30)
    assert fleet.pids() == before


def test_callers_of_other_workers_do_not_wait_for_the_stopped_one(fleet, shop, ledger, stop):
    """STUCK-03: only what the stopped worker held is late, by one lease."""
    node = fleet.start("-w", "3", "-c", "2", **LEASE)
    waits, over = [], threading.Event()

    def call():
        while not over.is_set():
            asked = time.monotonic()
            shop.nap.enqueue(0.02).result(timeout=30)
            waits.append(time.monotonic() - asked)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    wait_until(lambda: len(waits) > 50)
    victim = node.workers()[0]
    stop(victim)
    time.sleep(5)
    os.kill(victim, signal.SIGCONT)
    before = len(waits)
    wait_until(lambda: len(waits) > before + 50)
    over.set()
    for caller in callers:
        caller.join(30)
    assert max(waits) < 4 + 3, sorted(waits)[-5:]
    assert sorted(waits)[len(waits) * 9 // 10] < 1
    assert set(node.workers()) >= {victim}
