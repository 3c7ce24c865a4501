"""The scheduler moves all that is due, whatever its number, and nothing that isn't. The reaper's call tells it so."""

import pytest

from taskq import commands
from taskq.node.sweeps import reaper, scheduler
from taskq.node.sweeps.reaper import Reaper
from tests.waiting import await_until


@pytest.fixture
def schedule(ground, monkeypatch):
    monkeypatch.setattr(scheduler, "LIMIT", 3)
    return Reaper(ground.queues("default"), lease_ms=8_000)


async def test_due_jobs_become_available_later_ones_wait(ground, schedule):
    due = await ground.enqueue(8, due="+30")
    later = await ground.enqueue(2, due="+600000")
    assert await ground.states(due + later) == {"scheduled"}

    async def moved():
        assert await schedule.step() == reaper.EVERY_S
        return await ground.states(due) == {"available"}

    await await_until(moved)
    assert await ground.states(later) == {"scheduled"}


async def test_expired_jobs_end(ground, schedule):
    expired = await ground.enqueue(8, expires="+30")
    kept = await ground.enqueue(1, expires="+600000")

    async def ended():
        await schedule.step()
        return await ground.states(expired) == {"cancelled"}

    await await_until(ended)
    assert await ground.states(kept) == {"available"}


async def test_a_paused_queue_is_served_too(ground, schedule):
    await ground.do(commands.pause(ground.q))
    due = await ground.enqueue(1, due="+10")

    async def moved():
        await schedule.step()
        return await ground.states(due) == {"available"}

    await await_until(moved)
    await ground.do(commands.resume(ground.q))


async def test_nothing_due_costs_nothing(ground, schedule):
    await ground.enqueue(1, due="+600000", expires="+900000")
    await schedule.step()
    before = ground.raw.info("commandstats")["cmdstat_evalsha"]["calls"]
    await schedule.step()
    assert ground.raw.info("commandstats")["cmdstat_evalsha"]["calls"] == before + 1
