"""The keeper renews what stands in its children's tables, and passes on what the answer says."""

import asyncio
import signal
import sys

import pytest

from taskq import commands
from taskq.commands import Done
from taskq.errors import Unavailable
from taskq.node.queues import Queues
from taskq.node.sweeps import keeper
from taskq.node.sweeps.keeper import Holding, Keeper, batches
from taskq.node.table import Entry, now_ms
from tests.waiting import await_until


@pytest.fixture
def keep(ground):
    """`keep(child, …)` makes a keeper of these children."""
    return lambda *children, lease_ms=8_000: Keeper(ground.queues(), lambda: children, lease_ms=lease_ms)


def test_a_call_is_of_one_queue_and_at_most_250_jobs():
    holdings = [Holding(None, Entry(n, n, f"{'ab'[n % 2]}:{n}", 0)) for n in range(1, 602)]
    calls = batches(holdings)
    assert [(queue, len(of_queue)) for queue, of_queue in calls] == [("b", 250), ("b", 51), ("a", 250), ("a", 50)]
    assert sorted(one.entry.slot for _, of_queue in calls for one in of_queue) == list(range(1, 602))
    assert batches([]) == []


async def test_a_step_extends_the_lease_and_tells_the_table(ground, keep):
    child = ground.child()
    (id,) = await ground.enqueue(1)
    await ground.claim(child, 1, lease_ms=4_000)
    before = ground.lease(id)
    sent = now_ms()
    delay_s = await keep(child).step()
    assert ground.lease(id) >= before + 3_000
    assert sent + 8_000 <= child.table.until(0) <= now_ms() + 8_000
    assert 1.5 < delay_s <= 2.0
    assert child.heard == []


async def test_a_short_lease_is_renewed_more_often_and_a_long_one_too(ground, keep):
    assert await keep(ground.child(), lease_ms=4_000).step() <= 1.0
    assert await keep(ground.child(), lease_ms=3_600_000).step() <= 2.0


async def test_a_lost_job_is_told_once_and_not_renewed_again(ground, keep):
    child = ground.child()
    (id,) = await ground.enqueue(1)
    (job,) = await ground.claim(child, 1)
    await ground.do(commands.complete(ground.q, worker=child.worker, done=[Done(id, job.epoch, b"")]))
    keeping = keep(child)
    await keeping.step()
    await keeping.step()
    assert child.heard == [("lost", id, job.epoch)]
    assert child.table.until(0) == 0
    child.table.free(0)
    await keeping.step()
    assert child.told == set()


async def test_a_request_to_cancel_comes_with_the_answer_and_the_lease_goes_on(ground, keep):
    child = ground.child()
    (id,) = await ground.enqueue(1)
    (job,) = await ground.claim(child, 1)
    await ground.do(commands.cancel(ground.q, [id]))
    keeping = keep(child)
    await keeping.step()
    await keeping.step()
    assert child.heard == [("cancel", id, job.epoch)]
    await ground.do(commands.cancel(ground.q, [id], force=True))
    await keeping.step()
    assert child.heard[1:] == [("force", id, job.epoch)]
    assert child.table.until(0) > now_ms() + 7_000


async def test_a_stopped_child_is_not_renewed_until_it_goes_on(ground, keep):
    child = ground.child()
    (id,) = await ground.enqueue(1)
    await ground.claim(child, 1)
    before = ground.lease(id)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)")
    child.pid = process.pid
    process.send_signal(signal.SIGSTOP)
    await await_until(lambda: keeper.is_stopped(process.pid))
    await keep(child).step()
    assert ground.lease(id) == before
    process.send_signal(signal.SIGCONT)
    await await_until(lambda: not keeper.is_stopped(process.pid))
    await keep(child).step()
    assert ground.lease(id) > before
    process.kill()
    await process.wait()


async def test_a_job_that_finished_during_the_call_is_not_told_lost(ground, keep, monkeypatch):
    child = ground.child()
    (id,) = await ground.enqueue(1)
    (job,) = await ground.claim(child, 1)
    answer = Queues.run

    async def finished_meanwhile(*arguments, **options):
        await ground.do(commands.complete(ground.q, worker=child.worker, done=[Done(id, job.epoch, b"")]))
        words = await answer(*arguments, **options)
        child.table.free(0)
        return words

    monkeypatch.setattr(Queues, "run", finished_meanwhile)
    await keep(child).step()
    assert child.heard == []


async def test_a_child_that_died_during_the_call_is_told_nothing(ground, keep):
    child = ground.child()
    (id,) = await ground.enqueue(1)
    (job,) = await ground.claim(child, 1)
    await ground.do(commands.complete(ground.q, worker=child.worker, done=[Done(id, job.epoch, b"")]))
    child.is_over = True
    await keep(child).step()
    assert child.heard == []


async def test_500_jobs_of_two_workers(ground, keep):
    one, two = ground.child("n.1"), ground.child("n.2")
    await ground.enqueue(250)
    await ground.enqueue(250)
    for child in (one, two):
        await ground.claim(child, 250, lease_ms=4_000)
    soonest = ground.raw.zrange(ground.q.fixed("leases"), 0, 0, withscores=True)[0][1]
    await keep(one, two).step()
    assert ground.raw.zcard(ground.q.fixed("leases")) == 500
    assert ground.raw.zrange(ground.q.fixed("leases"), 0, 0, withscores=True)[0][1] > soonest + 3_000


async def test_no_answer_is_unavailable(ground, nobody):
    child = ground.child()
    child.table.fill(5, "default:x", until_ms=77)
    with pytest.raises(Unavailable):
        await Keeper(Queues(nobody, ground.namespace), lambda: [child], lease_ms=400).step()
    assert child.table.until(0) == 77
