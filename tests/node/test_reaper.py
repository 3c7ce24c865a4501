"""The reaper takes back what silent holders held, and nothing while an outage may be the reason for their silence."""

import time

import pytest

from taskq import commands
from taskq.errors import Unavailable
from taskq.node.queues import Queues
from taskq.node.sweeps import reaper
from taskq.node.sweeps.reaper import Reaper


def wall_ms():
    return time.time_ns() // 1_000_000


def cpu_ms(ground):
    """What the server has used of its processor: time in which it answered nobody else, on however busy a machine."""
    told = ground.raw.info("cpu")
    return (told["used_cpu_user"] + told["used_cpu_sys"]) * 1000


@pytest.fixture
def reap(ground):
    return Reaper(ground.queues("default"), lease_ms=8_000)


def not_quiet(ground):
    """As if somebody had watched the queue all the time."""
    ground.raw.hset(ground.q.fixed("meta"), mapping={"seen": wall_ms() - 500, "quiet_until": 0})


async def test_an_expired_lease_is_available_again(ground, reap):
    ids = await ground.enqueue(2)
    child = ground.child("dead.1")
    await ground.claim(child, 2, now=wall_ms() - 60_000)
    not_quiet(ground)
    assert await reap.step() == reaper.EVERY_S
    assert await ground.states(ids) == {"available"}
    assert (await ground.fields(ids[0]))[b"attempt"] == b"1"


async def test_after_an_outage_nothing_is_taken(ground, reap):
    ids = await ground.enqueue(1)
    await ground.claim(ground.child("other.1"), 1, now=wall_ms() - 60_000)
    await reap.step()
    await reap.step()
    assert await ground.states(ids) == {"running"}


async def test_a_step_goes_on_until_less_than_the_limit_was_left(ground, reap, monkeypatch):
    monkeypatch.setattr(reaper, "LIMIT", 3)
    ids = await ground.enqueue(8)
    await ground.claim(ground.child("dead.1"), 8, now=wall_ms() - 60_000)
    not_quiet(ground)
    await reap.step()
    assert await ground.states(ids) == {"available"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("orphans", [5_000, pytest.param(50_000, marks=pytest.mark.long)])
async def test_any_number_of_orphans_is_back_after_one_step(ground, reap, lines, orphans):
    """LOST-05: 60 s are allowed; and no pass holds up the others for 10 ms."""
    workers = [ground.child(f"dead.{n}") for n in range(orphans // 250)]
    for worker in workers:
        await ground.enqueue(250)
        await ground.claim(worker, 250, fill=False, now=wall_ms() - 60_000)
    not_quiet(ground)
    assert (await ground.do(commands.counts(ground.q))).running == orphans
    cpu, began = cpu_ms(ground), time.monotonic()
    await reap.step()
    assert time.monotonic() - began < 60
    assert (await ground.do(commands.counts(ground.q))).available == orphans
    assert cpu_ms(ground) - cpu < 10 * orphans / reaper.LIMIT


async def test_a_queue_that_fails_is_told_after_the_others_were_reaped(ground, nobody):
    with pytest.raises(Unavailable):
        await Reaper(Queues(nobody, ground.namespace, lambda: ["a", "b"]), lease_ms=8_000).step()
