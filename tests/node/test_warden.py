"""Which workers are killed by their node, and which are only busy."""

import asyncio

import pytest

from taskq.node.children.warden import Warden, could_hold, overdue
from taskq.node.table import Entry, Table, now_ms


def entry(slot, *, deadline=0, threaded=False):
    return Entry(slot, 100 + slot, f"q:{slot}", deadline, threaded)


def run(table, epoch, id, deadline=0, **how):
    table.begin(table.fill(epoch, id, **how), deadline)


class Dummy:
    """A child without a process."""

    def __init__(self, worker="n.1"):
        self.worker, self.ready, self.pid = worker, True, 0
        self.table = Table.create(8)
        self.killed = []
        self.told = set()

    def held(self):
        return self.table.read()

    def kill(self, why, culprits=frozenset()):
        self.killed.append((why, culprits))


@pytest.fixture
def child():
    dummy = Dummy()
    yield dummy
    dummy.table.close()


@pytest.fixture
def clock(monkeypatch):
    """The warden's clock and the table's, moved by hand."""

    class Clock:
        now = now_ms()

        def pass_ms(self, ms):
            self.now += ms

    clock = Clock()
    monkeypatch.setattr("taskq.node.children.warden.now_ms", lambda: clock.now)
    monkeypatch.setattr("taskq.node.table.now_ms", lambda: clock.now)
    return clock


def look(warden, clock, seconds, tick=lambda: None):
    """Let the warden look once a second for so long."""

    async def looking():
        for _ in range(seconds):
            clock.pass_ms(1_000)
            tick()
            await warden.step()

    asyncio.run(looking())


def test_overdue_are_those_with_a_deadline_that_has_passed():
    held = [entry(1), entry(2, deadline=50), entry(3, deadline=51)]
    assert overdue(held, 50) == {("q:2", 102)}


def test_a_job_whose_code_does_not_run_is_never_overdue_and_holds_nothing():
    waiting = Entry(1, 1, "q:1", 50, begun=False)
    assert overdue([waiting], 60) == frozenset()
    assert could_hold([waiting], thread_still=True) == []


def test_a_thread_can_hold_the_loop_only_through_the_gil():
    on_loop, in_thread = entry(1), entry(2, threaded=True)
    assert could_hold([on_loop, in_thread], thread_still=False) == [on_loop]
    assert could_hold([on_loop, in_thread], thread_still=True) == [on_loop, in_thread]


def test_a_hard_timeout_kills_and_names_the_culprit(child, clock):
    run(child.table, 7, "q:slow", clock.now + 2_500)
    run(child.table, 8, "q:neighbour", clock.now + 90_000)
    warden = Warden(lambda: [child], wedged_ms=600_000)
    look(warden, clock, 2, child.table.beat)
    assert child.killed == []
    look(warden, clock, 1, child.table.beat)
    assert child.killed == [("hard timeout", {("q:slow", 7)})]


def test_a_job_that_is_cancelled_by_force_has_had_no_timeout(child, clock):
    run(child.table, 7, "q:forced", clock.now)
    child.told.add(("force", "q:forced", 7))
    warden = Warden(lambda: [child], wedged_ms=600_000)
    look(warden, clock, 1, child.table.beat)
    assert child.killed == [("cancelled by force", frozenset())]
    run(child.table, 8, "q:slow", clock.now)
    look(warden, clock, 1, child.table.beat)
    assert child.killed[1:] == [("hard timeout", {("q:slow", 8)})]


def test_an_idle_worker_whose_loop_stands_still_is_killed_after_ten_minutes(child, clock):
    child.table.beat()
    warden = Warden(lambda: [child], wedged_ms=600_000)
    look(warden, clock, 598, child.table.beat_thread)
    assert child.killed == []
    look(warden, clock, 4, child.table.beat_thread)
    assert child.killed[0] == ("loop stood still", frozenset())


def test_a_loop_held_by_a_job_is_busy_however_long(child, clock):
    child.table.beat()
    run(child.table, 1, "q:blocking")
    look(Warden(lambda: [child], wedged_ms=600_000), clock, 4_000, child.table.beat_thread)
    assert child.killed == []


def test_a_job_in_a_thread_excuses_the_loop_only_while_the_gil_is_held(child, clock):
    child.table.beat()
    run(child.table, 1, "q:thread", threaded=True)
    child.table.beat_thread()
    warden = Warden(lambda: [child], wedged_ms=600_000)
    look(warden, clock, 700)  # neither loop nor watching thread turns: C code holds the GIL
    assert child.killed == []
    look(warden, clock, 1, child.table.beat_thread)
    assert child.killed[0][0] == "loop stood still"


def test_a_pause_of_the_whole_host_blames_nobody(child, clock):
    child.table.beat()
    warden = Warden(lambda: [child], wedged_ms=600_000)
    look(warden, clock, 3, child.table.beat)
    clock.pass_ms(3_600_000)
    look(warden, clock, 1)
    look(warden, clock, 3, child.table.beat)
    assert child.killed == []


def test_a_beating_loop_is_left_alone(child, clock):
    look(Warden(lambda: [child], wedged_ms=1_000), clock, 50, child.table.beat)
    assert child.killed == []
