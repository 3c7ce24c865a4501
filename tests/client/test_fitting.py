"""What no node could ever run is refused before it is sent: one by one, in a batch, by name and by stub."""

from __future__ import annotations

import pytest

from taskq.errors import Unschedulable


@pytest.fixture
def work(on_loop):
    @on_loop.task(name="work")
    async def work() -> None: ...

    return work


async def test_every_way_to_send_a_job_asks_whether_one_could_run_it(on_loop, work, enter):
    enter(capacity={"gpu": 4})
    ways = [work, on_loop.by_name("work"), on_loop.stub(name="work")(lambda: None)]
    for way in ways:
        way.using(resources={"gpu": 2}).enqueue()
        large = way.using(resources={"gpu": 3})
        for send in (large.enqueue, lambda large=large: on_loop.enqueue_many([work.call(), large.call()])):
            with pytest.raises(Unschedulable, match="it needs gpu=3, and the largest worker of queue default has 2"):
                send()
        with pytest.raises(Unschedulable):
            await large.aenqueue()
        with pytest.raises(Unschedulable):
            await on_loop.aenqueue_many([work.call(), large.call()])
    assert on_loop.inspector.counts("default").available == len(ways)


async def test_a_node_that_never_said_what_it_has_may_have_enough(work, enter):
    enter(capacity={"gpu": 1})
    enter("silent")
    assert work.using(resources={"gpu": 3}).enqueue().created


async def test_strict_asks_for_somebody_who_is_there(on_loop, work, enter):
    assert (await work.using(labels={"zone": "eu"}, resources={"gpu": 9}).aenqueue()).created
    with pytest.raises(Unschedulable, match="no live node serves queue default"):
        await work.using(strict=True).aenqueue()
    enter(labels={"zone": "eu"})
    assert work.using(strict=True).enqueue().created  # one that has just come counts at once
    assert work.using(strict=True, labels={"zone": "eu"}, target="web").enqueue().created
    for wrong in ({"labels": {"zone": "us"}}, {"target": "db"}):
        with pytest.raises(Unschedulable, match=r"zone=us|target db"):
            work.using(strict=True, **wrong).enqueue()
    with pytest.raises(Unschedulable, match="knows task other"):
        on_loop.by_name("other", queue="default").using(strict=True).enqueue()
