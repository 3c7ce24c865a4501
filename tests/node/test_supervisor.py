"""Workers are started, buried, replaced and seen off: with real processes that only play their part."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from taskq.node.children.burial import Undertaker
from taskq.node.children.memory import Memory
from taskq.node.children.supervisor import Supervisor
from taskq.node.children.warden import Warden
from taskq.node.options import NodeOptions
from tests.waiting import await_until

COMMAND = (sys.executable, str(Path(__file__).with_name("stand_in.py")))


@pytest.fixture
async def supervise(ground, settings, monkeypatch):
    """`supervise("dies", jobs=3)` starts a supervisor of workers that play this part; gives it and its run."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    started = []

    async def supervise(part, *, jobs=0, **options):
        app = f"{part}:{settings.url},{settings.namespace},{jobs}"
        supervisor = Supervisor(app, "host", NodeOptions(**options), command=COMMAND)
        supervisor.undertaker.set_result(Undertaker(ground.server, ground.namespace))
        supervisor.begin()
        started.append((supervisor, asyncio.create_task(supervisor.run())))
        return started[-1]

    yield supervise
    for supervisor, run in started:
        supervisor.give_up("the test is over")
        await asyncio.wait_for(run, 10)


def child(supervisor):
    return supervisor.children[0]


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


async def ready(supervisor, workers=1):
    await await_until(lambda: [each.ready for each in supervisor.children] == [True] * workers, what="workers ready")


async def test_the_hello_is_known_and_a_drain_ends_it_well(supervise):
    supervisor, run = await supervise("good")
    await ready(supervisor)
    assert (await supervisor.hello).queues == ["default"]
    supervisor.drain()
    await asyncio.wait_for(run, 5)
    assert not supervisor.killed
    assert supervisor.children == []


async def test_a_broken_app_ends_the_node_with_its_text(supervise):
    supervisor, run = await supervise("broken", workers=2)
    await asyncio.wait_for(run, 5)
    assert supervisor.failure == "no module named 'shop'"


async def test_a_worker_that_dies_while_loading_is_tried_three_times(supervise):
    supervisor, run = await supervise("crashes")
    await asyncio.wait_for(run, 10)
    assert supervisor._number == 3
    assert "exit code 3" in supervisor.failure


async def test_an_app_that_breaks_later_ends_nothing(supervise):
    supervisor, _ = await supervise("breaks-later")
    await ready(supervisor)
    os.kill(child(supervisor).pid, signal.SIGKILL)
    await await_until(lambda: supervisor._number >= 3)
    await ready(supervisor)
    assert supervisor.failure == ""


async def test_a_killed_workers_jobs_are_available_at_once_and_another_worker_starts(supervise, ground):
    await ground.enqueue(2)
    supervisor, _ = await supervise("good", jobs=2)
    await await_until(lambda: supervisor.children and len(child(supervisor).held()) == 2)
    held = [entry.id for entry in child(supervisor).held()]
    victim = child(supervisor)
    os.kill(victim.pid, signal.SIGKILL)
    at = asyncio.get_running_loop().time()

    async def returned():
        return b"host.1" not in {
            fields.get(b"worker")
            for fields in [await ground.fields(id) for id in held]
            if fields[b"state"] == b"running"
        }

    await await_until(returned, 2)
    assert asyncio.get_running_loop().time() - at < 1.0
    await await_until(lambda: supervisor.children and child(supervisor) is not victim and child(supervisor).ready)
    assert child(supervisor).worker == "host.2"
    assert (await ground.fields(held[0]))[b"attempt"] in {b"1", b"2"}


async def test_a_burial_that_fails_is_no_good_end(supervise, monkeypatch):
    async def fails(*_):
        raise ValueError("damaged")

    monkeypatch.setattr(Undertaker, "bury", fails)
    supervisor, run = await supervise("bursts", burst=True)
    await asyncio.wait_for(run, 5)
    assert supervisor.killed


async def test_a_finish_that_redis_refuses_is_no_good_end(supervise):
    supervisor, run = await supervise("refused", burst=True)
    await asyncio.wait_for(run, 5)
    assert supervisor.killed


async def test_the_death_is_noticed_within_100_ms(supervise):
    supervisor, _ = await supervise("good")
    await ready(supervisor)
    victim = child(supervisor)
    loop = asyncio.get_running_loop()
    at = loop.time()
    os.kill(victim.pid, signal.SIGKILL)
    await asyncio.wait_for(victim.ended.wait(), 2)
    assert loop.time() - at < 0.1
    assert victim.cause == "SIGKILL"


async def test_a_start_that_the_system_refuses_is_tried_again(supervise, monkeypatch):
    from taskq.node.children import child as child_module

    spawn, refusals = child_module.subprocess.Popen, [OSError("no memory"), OSError("no memory")]

    def refusing(*arguments, **options):
        if refusals:
            raise refusals.pop()
        return spawn(*arguments, **options)

    monkeypatch.setattr(child_module.subprocess, "Popen", refusing)
    descriptors = open_files()
    supervisor, _ = await supervise("good")
    await ready(supervisor)
    assert open_files() <= descriptors + 5


async def test_an_exit_code_is_named(supervise):
    supervisor, _ = await supervise("exits")
    await await_until(lambda: supervisor.children)
    first = child(supervisor)
    await asyncio.wait_for(first.over.wait(), 5)
    assert first.cause == "exit code 5"


async def test_a_burst_ends_when_every_worker_has_drained(supervise):
    supervisor, run = await supervise("bursts", workers=2, burst=True)
    await asyncio.wait_for(run, 5)
    assert supervisor._number == 2
    assert not supervisor.killed


async def test_a_burst_replaces_a_worker_that_dies(supervise):
    supervisor, run = await supervise("good", burst=True)
    await ready(supervisor)
    os.kill(child(supervisor).pid, signal.SIGKILL)
    await await_until(lambda: supervisor._number == 2)
    assert not run.done()


async def test_one_that_has_drained_but_does_not_exit_is_ended(supervise, monkeypatch):
    monkeypatch.setattr("taskq.node.children.supervisor._LINGER_S", 0.1)
    supervisor, run = await supervise("lingers", burst=True)
    await asyncio.wait_for(run, 5)
    assert not supervisor.killed


async def test_running_jobs_finish_within_the_grace(supervise, ground):
    ids = await ground.enqueue(2)
    supervisor, run = await supervise("finishes", jobs=2)
    await await_until(lambda: supervisor.children and len(child(supervisor).held()) == 2)
    supervisor.drain()
    await asyncio.wait_for(run, 5)
    assert await ground.states(ids) == {"completed"}
    assert not supervisor.killed


async def test_after_the_grace_it_is_killed_and_its_jobs_are_refunded(supervise, ground):
    ids = await ground.enqueue(2)
    supervisor, run = await supervise("stubborn", jobs=2, grace_ms=200)
    await await_until(lambda: supervisor.children and len(child(supervisor).held()) == 2)
    supervisor.drain()
    at = asyncio.get_running_loop().time()
    await asyncio.wait_for(run, 5)
    assert 0.2 <= asyncio.get_running_loop().time() - at < 1.5
    assert supervisor.killed
    assert await ground.states(ids) == {"available"}
    assert (await ground.fields(ids[0])).get(b"attempt", b"0") == b"0"


async def test_a_second_signal_is_now(supervise, ground):
    ids = await ground.enqueue(1)
    supervisor, run = await supervise("waits-for-stop", jobs=1, grace_ms=60_000)
    await await_until(lambda: supervisor.children and len(child(supervisor).held()) == 1)
    supervisor.drain()
    await asyncio.sleep(0)
    assert not run.done()
    supervisor.drain()
    await asyncio.wait_for(run, 1)
    assert not supervisor.killed
    assert await ground.states(ids) == {"available"}


async def test_one_that_asks_to_be_replaced_is_replaced_before_it_leaves(supervise):
    supervisor, _ = await supervise("recycles")
    await await_until(lambda: [each.worker for each in supervisor.children] == ["host.2"])
    await ready(supervisor)
    assert supervisor._number == 2


async def test_one_that_ages_has_a_spare_which_begins_when_it_recycles(supervise, tmp_path, monkeypatch):
    now = tmp_path / "now"
    monkeypatch.setenv("NOW", str(now))
    supervisor, _ = await supervise("ages")
    await await_until(lambda: [each.loaded.is_set() for each in supervisor.children] == [True, True])
    first, spare = supervisor.children
    assert (first.ready, spare.ready, spare.holding) == (True, False, True)
    now.touch()
    await await_until(lambda: supervisor.children == [spare] and spare.ready)
    assert supervisor._number == 2


async def test_a_spare_ends_with_the_node(supervise, tmp_path, monkeypatch):
    monkeypatch.setenv("NOW", str(tmp_path / "never"))
    supervisor, run = await supervise("ages")
    await await_until(lambda: [each.loaded.is_set() for each in supervisor.children] == [True, True])
    supervisor.drain()
    await asyncio.wait_for(run, 10)
    assert not supervisor.killed
    assert supervisor.children == []


async def test_what_ran_on_a_worker_killed_for_its_memory_has_had_an_attempt(supervise, ground):
    (id,) = await ground.enqueue(1)
    supervisor, _ = await supervise("good", jobs=1)
    await await_until(lambda: supervisor.children and child(supervisor).held())
    await Memory(lambda: supervisor.children, 1).step()
    await await_until(lambda: supervisor._number == 2)

    async def again():
        return (await ground.fields(id))[b"attempt"] == b"2"

    await await_until(again)
    assert b"memory" in (await ground.fields(id))[b"error:1"]


async def test_a_hard_timeout_replaces_the_worker_and_refunds_the_neighbour(supervise, ground):
    ids = await ground.enqueue(2)
    supervisor, _ = await supervise("overruns", jobs=2)
    await await_until(lambda: supervisor.children and len(child(supervisor).held()) == 2)
    slow, neighbour = sorted(ids)
    warden = Warden(lambda: supervisor.children, wedged_ms=600_000)

    async def replaced():
        await warden.step()
        return supervisor._number == 2

    await await_until(replaced)
    await await_until(lambda: supervisor._number == 2 and child(supervisor).ready)

    async def timed_out():
        return await ground.states([slow]) == {"retryable"}

    await await_until(timed_out)
    other = await ground.fields(neighbour)
    assert int(other.get(b"released", b"0")) == 1
    assert b"error:1" not in other


async def test_a_worker_that_claims_nothing_yet_is_ended_at_once(supervise):
    supervisor, run = await supervise("good")
    await await_until(lambda: supervisor.children)
    supervisor.drain()
    await asyncio.wait_for(run, 2)
    assert not supervisor.killed
