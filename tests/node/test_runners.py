"""Many jobs that don't wait share a task; one that waits has its own, and its context is always its own."""

import asyncio
import contextvars

import pytest

from taskq.node.worker.runners import Runners
from tests.node.jobs import running
from tests.waiting import await_until

var = contextvars.ContextVar("var", default="unset")


class Jobs:
    """Runs coroutine functions as jobs; knows the task each began and ended in."""

    def __init__(self):
        self.began = {}
        self.ended = {}
        self.runners = Runners(self.run)

    async def run(self, job):
        self.began[job.id] = asyncio.current_task()
        try:
            await job.fields()
        except asyncio.CancelledError:
            self.ended[job.id] = "cancelled"
        else:
            self.ended[job.id] = asyncio.current_task()

    def start(self, *functions):
        made = [running(id=f"default:{n}") for n in range(len(functions))]
        for job, function in zip(made, functions, strict=True):
            job.fields = function
        self.runners.start(made)
        return made

    async def all_end(self, count):
        await await_until(lambda: len(self.ended) == count, 5)


@pytest.fixture
def jobs():
    return Jobs()


async def at_once():
    pass


async def wait():
    await asyncio.sleep(0.03)


async def test_jobs_that_do_not_wait_share_a_task(jobs):
    jobs.start(*[at_once] * 50)
    await jobs.all_end(50)
    assert len(set(jobs.ended.values())) == 1


async def test_a_job_that_waits_has_one_task_for_itself_from_begin_to_end(jobs):
    jobs.start(*[wait, at_once] * 25)
    await jobs.all_end(50)
    waited = [jobs.ended[f"default:{n}"] for n in range(0, 50, 2)]
    assert len(set(waited)) == 25
    assert jobs.began == jobs.ended


async def test_many_that_wait_begin_within_a_few_turns_of_the_loop(jobs):
    jobs.start(*[wait] * 100)
    for _ in range(12):
        await asyncio.sleep(0)
    assert len(jobs.began) == 100
    await jobs.all_end(100)


async def test_each_job_has_its_own_context(jobs):
    seen = []

    async def leave_a_trace():
        seen.append(var.get())
        var.set("a job's")

    async def leave_a_trace_and_wait():
        await leave_a_trace()
        await asyncio.sleep(0.001)
        seen.append(var.get())

    jobs.start(leave_a_trace, leave_a_trace_and_wait, leave_a_trace)
    await jobs.all_end(3)
    assert sorted(seen) == ["a job's", "unset", "unset", "unset"]
    assert var.get() == "unset"


async def test_a_cancel_hits_its_job_alone(jobs):
    made = jobs.start(at_once, wait, wait, at_once)
    await await_until(lambda: len(jobs.began) == 4)
    made[1].code.cancel()
    await jobs.all_end(4)
    assert [jobs.ended[f"default:{n}"] == "cancelled" for n in range(4)] == [False, True, False, False]


async def test_a_job_that_cancels_its_own_task_does_not_hit_the_next(jobs):
    async def cancel_myself():
        asyncio.current_task().cancel()

    jobs.start(cancel_myself, wait, cancel_myself, at_once)
    await jobs.all_end(4)
    assert "cancelled" not in jobs.ended.values()


async def test_timeouts_and_task_groups_work_inside(jobs):
    seen = []

    async def body():
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append("timeout")
        async with asyncio.TaskGroup() as group:
            group.create_task(wait())
            group.create_task(wait())
        seen.append("group")

    jobs.start(body, body)
    await jobs.all_end(2)
    assert sorted(seen) == ["group", "group", "timeout", "timeout"]


async def test_a_run_that_fails_strands_no_other_job(jobs):
    async def fault():
        raise ValueError("a fault of ours")

    async def fault_later():
        await asyncio.sleep(0)
        raise KeyError("another")

    jobs.start(fault, at_once, fault, fault_later, wait, at_once)
    await jobs.all_end(3)


async def test_jobs_begin_in_the_context_of_the_app_whoever_starts_them():
    seen = []
    var.set("the app's")
    jobs = Jobs()

    async def look():
        seen.append(var.get())

    async def look_and_wait():
        await asyncio.sleep(0)
        seen.append(var.get())

    context = contextvars.copy_context()
    context.run(var.set, "another job's")
    context.run(jobs.start, look, look_and_wait, look)
    await jobs.all_end(3)
    assert seen == ["the app's"] * 3
