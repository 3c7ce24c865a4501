"""The janitor removes ended jobs whose time is over, in bounded steps."""

import time

from taskq import commands
from taskq.commands import Done, NewJob
from taskq.node.sweeps import janitor
from taskq.node.sweeps.janitor import Janitor


def wall_ms():
    return time.time_ns() // 1_000_000


async def test_prunes_in_steps_and_comes_back_soon_while_there_is_more(ground, monkeypatch):
    monkeypatch.setattr(janitor, "LIMIT", 3)
    child, then = ground.child(), wall_ms() - 3 * 24 * 3_600_000
    ids = await ground.enqueue(7)
    jobs = await ground.claim(child, 7, now=then)
    done = [Done(job.id, job.epoch, b"") for job in jobs]
    await ground.do(commands.complete(ground.q, worker=child.worker, done=done, now=then))
    cleaning = Janitor(ground.queues("default"))

    async def left():
        return sum(found is not None for found in await ground.do(commands.fetch(ground.q, ids)))

    delays, counts = [], []
    while not delays or delays[-1] == janitor.BUSY_S:
        delays.append(await cleaning.step())
        counts.append(await left())
    assert counts[0] >= 4 or counts == [0]
    assert counts[-1] == 0
    assert delays[-1] == janitor.EVERY_S


async def test_takes_back_what_holds_a_slot_for_nothing_but_not_every_time(ground, monkeypatch):
    then = wall_ms() - 100_000
    for n in range(5):
        await ground.do(commands.reserve(ground.q, token=f"default:{n}", key=f"k{n}", most=9, ttl_ms=1000, now=then))
    cleaning = Janitor(ground.queues("default"))

    async def left():
        return await ground.do(commands.sweep_reservations(ground.q, "unbound", older_ms=10**9, limit=100))

    monkeypatch.setattr(janitor, "LIMIT", 3)
    await cleaning.step()
    await cleaning.step()
    assert await left() == (0, 0)
    await ground.do(commands.reserve(ground.q, token="default:9", key="k9", most=9, ttl_ms=1000, now=then))
    await cleaning.step()
    assert await left() == (1, 1), "within a minute it isn't looked at again"


async def test_forgets_a_class_of_which_no_job_waits_a_minute_later_either(ground, monkeypatch):
    needy = NewJob("default:a", "", "t", "async", 0, "", "", {}, needs="takes.cpu=1")
    await ground.do(commands.enqueue(ground.q, [needy]))
    await ground.do(commands.purge(ground.q))
    cleaning = Janitor(ground.queues("default"))

    async def known():
        return list((await ground.do(commands.classes(ground.q))).classes)

    await cleaning.step()
    await cleaning.step()
    assert await known() == ["async;takes.cpu=1"]
    monkeypatch.setattr(janitor, "CLASSES_EVERY_S", 0.0)
    again = Janitor(ground.queues("default"))
    await again.step()
    await again.step()
    assert await known() == []
