"""Routing: a worker runs what fits it, and never more at once than it has of anything."""

import asyncio
from types import SimpleNamespace

import pytest

from taskq import TaskQ
from taskq.node.channel import Capacity
from tests.node.test_worker import Played
from tests.waiting import await_until

running: list[str] = []
seen: set[str] = set()
most: list[int] = []


def taken() -> int:
    """What those that run take together: their names end in it."""
    return sum(int(name[-1]) for name in running if name[-1].isdigit())


@pytest.fixture
async def shop(settings):
    """An app whose jobs run until they are let go, and workers by what they have."""
    app = TaskQ(settings.url, namespace=settings.namespace)
    go = asyncio.Event()
    running.clear()
    seen.clear()
    most.clear()

    @app.task(name="work")
    async def work(name: str) -> None:
        running.append(name)
        seen.add(name)
        most.append(taken())
        await go.wait()
        running.remove(name)

    workers = []

    def worker(**start):
        workers.append(Played(app, **start))
        return workers[-1]

    yield SimpleNamespace(work=work, go=go, worker=worker)
    go.set()
    for each in workers:
        await each.end()
    await app.aclose()


async def test_each_worker_runs_what_it_is_labelled_for(shop):
    shop.worker(labels={"zone": "eu"})
    for zone in ("eu", "us"):
        await shop.work.using(labels={"zone": zone}).aenqueue(zone)
    await shop.work.aenqueue("anywhere")
    await await_until(lambda: sorted(running) == ["anywhere", "eu"])
    shop.worker(labels={"zone": "us", "gpu": "a100"})
    await await_until(lambda: sorted(running) == ["anywhere", "eu", "us"])


async def test_a_class_that_is_new_reaches_the_worker_that_fits_though_all_are_idle(shop):
    shop.worker()
    shop.worker(labels={"zone": "eu"})
    await shop.work.aenqueue("plain")
    await await_until(lambda: running == ["plain"])
    await shop.work.using(labels={"zone": "eu"}).aenqueue("eu")
    await await_until(lambda: sorted(running) == ["eu", "plain"], timeout=4)  # well before a worker looks by itself


async def test_no_more_runs_at_once_than_there_is_and_what_fits_goes_on(shop):
    shop.worker(capacity={"gpu": 2000})
    for name, gpus in (("a1", 1), ("b2", 2), ("c3", 3), ("d1", 1), ("e1", 1)):
        await shop.work.using(resources={"gpu": gpus}).aenqueue(name)
    await shop.work.aenqueue("f0")
    await await_until(lambda: "f0" in running and taken() == 2)
    shop.go.set()
    job = await shop.work.using(resources={"gpu": 2}).aenqueue("g2")
    await job.ajoin(30)
    await await_until(lambda: seen.issuperset({"a1", "b2", "d1", "e1"}))
    assert "c3" not in seen
    assert max(most) == 2


async def test_what_was_taken_is_free_again_and_another_part_counts_at_once(shop):
    played = shop.worker(capacity={"gpu": 0})
    await shop.work.using(resources={"gpu": 2}).aenqueue("a2")
    await shop.work.aenqueue("b0")
    await await_until(lambda: running == ["b0"])
    played.say(Capacity({"gpu": 2000}))
    await await_until(lambda: sorted(running) == ["a2", "b0"])
    assert played.worker.claimer.free["+gpu"] == 0
    shop.go.set()
    await await_until(lambda: played.worker.claimer.free["+gpu"] == 2000)


async def test_only_the_target_runs_it(shop):
    shop.worker(host="web")
    for target in ("w", "web", "w.1", "other"):
        await shop.work.using(target=target).aenqueue(f"for {target}")
    await await_until(lambda: sorted(running) == ["for w", "for web"])
