"""A worker tells what runs, from beside, also while its loop is held."""

import asyncio
import threading
import time

from taskq.node.worker.account import Account, awaited
from tests.node.jobs import running


async def deepest(event):
    await event.wait()


async def outer(event):
    await deepest(event)


async def test_jobs_coroutines_and_threads_are_told_with_their_stacks(lines):
    account, event = Account(), asyncio.Event()
    job = running()
    job.code = asyncio.create_task(outer(event), name="a job's")
    beside = asyncio.create_task(deepest(event), name="beside")
    released = threading.Event()
    thread = threading.Thread(target=released.wait, name="taskq-7")
    thread.start()
    await asyncio.sleep(0)
    account.of("n.1", asyncio.get_running_loop(), lambda: [job])
    await asyncio.to_thread(account.tell)
    released.set()
    event.set()
    await asyncio.gather(job.code, beside)
    thread.join()
    by_event = {}
    for line in lines:
        by_event.setdefault(line["event"], []).append(line)
    (told,) = by_event["runs"]
    assert (told["job_id"], told["worker"], told["stage"]) == (job.id, "n.1", "waits")
    assert [place.rpartition(" ")[2] for place in told["stack"]][:2] == ["outer", "deepest"]
    assert "beside" in {line["name"] for line in by_event["coroutine"]}
    assert "a job's" not in {line["name"] for line in by_event["coroutine"]}
    (stack,) = [line["stack"] for line in by_event["thread"] if line["name"] == "taskq-7"]
    assert any("threading.py" in place for place in stack)
    assert by_event["that is what runs"][0]["jobs"] == 1


def test_a_loop_that_is_held_shows_where(lines):
    account, begun = Account(), threading.Event()

    async def held():
        account.of("n.1", asyncio.get_running_loop(), list)
        begun.set()
        time.sleep(1)  # noqa: ASYNC251 (that is the point)

    thread = threading.Thread(target=asyncio.run, args=(held(),), name="the loop")
    thread.start()
    begun.wait()
    account.tell()
    thread.join()
    (stack,) = [line["stack"] for line in lines if line["event"] == "thread" and line["name"] == "the loop"]
    assert "held" in stack[-1]


def test_before_anything_is_known_it_tells_of_threads(lines):
    Account().tell()
    assert lines[-1]["event"] == "that is what runs"


async def test_a_task_that_is_done_has_no_stack():
    task = asyncio.create_task(asyncio.sleep(0))
    await task
    assert len(list(awaited(task))) <= 1
