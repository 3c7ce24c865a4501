"""One worker follows another: when the spare is started, and when it takes over."""

import asyncio

import pytest

from taskq.node.children.succession import until_replaced
from taskq.node.table import now_ms
from tests.waiting import await_until


class Life:
    """A child that only lives and dies."""

    def __init__(self):
        self.over, self.leaving, self.ageing, self.loaded = (asyncio.Event() for _ in range(4))
        self.heavy = self.patient = False
        self.born_ms = now_ms() - 60_000


class Rests:
    """Deaths in a row; the rests that were asked for, none of them kept."""

    def __init__(self):
        self.asked = []

    def delay_s(self, lived_ms):
        self.asked.append(lived_ms)
        return 0.0


class Play:
    def __init__(self):
        self.child, self.ending, self.rests = Life(), asyncio.Event(), Rests()
        self.spares = []
        self.refusals = 0
        self.waiting = asyncio.create_task(until_replaced(self.child, self.start, self.ending, self.rests))

    def start(self):
        if self.refusals:
            self.refusals -= 1
            return None
        self.spares.append(Life())
        return self.spares[-1]

    async def spare(self, number=1):
        await await_until(lambda: len(self.spares) == number)
        return self.spares[-1]

    async def replaced(self):
        return await asyncio.wait_for(self.waiting, 5)

    async def goes_on(self):
        for _ in range(10):
            await asyncio.sleep(0)
        return not self.waiting.done()


@pytest.fixture
async def play():
    made = Play()
    yield made
    made.waiting.cancel()


@pytest.mark.parametrize("event", ["over", "leaving"])
async def test_one_that_dies_or_leaves_unannounced_has_no_spare(play, event):
    getattr(play.child, event).set()
    assert await play.replaced() is None
    assert play.spares == []


async def test_a_spare_is_loaded_and_waits_until_the_other_leaves(play):
    play.child.ageing.set()
    spare = await play.spare()
    spare.loaded.set()
    assert await play.goes_on()
    play.child.leaving.set()
    assert await play.replaced() is spare
    assert play.rests.asked == []


async def test_a_spare_that_is_not_loaded_yet_follows_all_the_same(play):
    play.child.ageing.set()
    spare = await play.spare()
    play.child.over.set()
    assert await play.replaced() is spare


async def test_a_heavy_one_leaves_patiently_once_its_spare_is_loaded(play):
    play.child.heavy = True
    play.child.ageing.set()
    spare = await play.spare()
    assert await play.goes_on()
    spare.loaded.set()
    assert await play.replaced() is spare
    assert play.child.patient
    assert play.rests.asked[0] >= 60_000  # one that grows heavy young must not be replaced without end


@pytest.mark.parametrize("loaded", [False, True])
async def test_a_spare_that_dies_is_started_again_after_a_rest(play, loaded):
    play.child.ageing.set()
    first = await play.spare()
    if loaded:
        first.loaded.set()
    assert await play.goes_on()
    first.over.set()
    second = await play.spare(2)
    play.child.leaving.set()
    assert await play.replaced() is second
    assert play.rests.asked == [0]


async def test_a_spare_that_cannot_be_started_is_tried_again(play):
    play.refusals = 2
    play.child.ageing.set()
    await play.spare()
    assert play.rests.asked == [0, 0]


async def test_the_nodes_end_ends_it_and_gives_the_spare_that_is_to_be_ended_too(play):
    play.child.ageing.set()
    spare = await play.spare()
    play.ending.set()
    assert await play.replaced() is spare
