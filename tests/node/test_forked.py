"""A job's forked child is no worker: where its code comes back to ours, it ends."""

import subprocess
import sys

import pytest

# Each prints once what came back to the worker, the child's exit status last: a child that went on would print too.
SCRIPT = """
import asyncio, os, sys, time
from taskq import codec
from taskq.node.worker import forked, turning
from taskq.node.worker.executors import Threads
from taskq.node.worker.pipeline import Pipeline
from taskq.node.worker.runners import Runners
from tests.node.jobs import FakeKnown, running

def fork(then):
    child = os.fork()
    if not child:
        return then()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def returns():
    return "child"

def exits():
    sys.exit(3)

def raises():
    raise ValueError

def in_thread(how):
    return fork(globals()[how])

async def on_the_loop(how):
    if how == "waits":
        child = os.fork()
        await asyncio.sleep(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return fork(globals()[how])

async def beside(_how):
    async def stray():
        stray.child = os.fork()
    await asyncio.create_task(stray())
    return os.waitstatus_to_exitcode(os.waitpid(stray.child, 0)[1])

async def main():
    loop = asyncio.get_running_loop()
    forked.mark(loop)
    over = asyncio.Event()
    def finish(_job, ending):
        print(codec.decode_value(ending.result), flush=True)
        over.set()
    kind, how = sys.argv[1:]
    fn = {"thread": in_thread, "async": on_the_loop, "beside": beside}[kind]
    executor = "thread" if kind == "thread" else "async"
    known = FakeKnown(fn, executor)
    pipeline = Pipeline(threads=Threads(1, loop), middleware=[], types=codec.Types(), worker="w.1", max_bytes=1000,
                        begun=lambda _job: None, finish=finish)
    fields = {"class": "thread"} if kind == "thread" else {}
    Runners(pipeline.run).start([running(known, args=(how,), **fields)])
    await over.wait()
    print("ended", flush=True)
    return 0

sys.exit(turning.run(main()))
"""


@pytest.mark.parametrize(
    "kind, how, code",
    [
        ("thread", "returns", 0),
        ("thread", "exits", 3),
        ("thread", "raises", 1),
        ("async", "returns", 0),
        ("async", "exits", 3),
        ("async", "raises", 1),
        ("async", "waits", 0),
        ("beside", "", 0),
    ],
)
def test_a_child_that_comes_back_ends(kind, how, code):
    command = [sys.executable, "-c", SCRIPT, kind, how]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
    assert (ran.stdout.split(), ran.returncode) == ([str(code), "ended"], 0), ran.stderr
