"""SHUT-07: a process forks while an event loop of its own, in another thread, has connections: both sides go on.

Each side asks for what is its own, and the answers say what they are of. In a program of its own, which forks at a
moment when this one couldn't.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, gc, multiprocessing, os, sys, threading
from taskq import TaskQ

url, namespace, kind, ends = sys.argv[1:]
if kind == "uvloop":
    from uvloop import new_event_loop
else:
    from asyncio import new_event_loop
app = TaskQ(url, namespace=namespace)
loop = new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()

def on_the_loop(coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result(20)

async def asks(side):
    for n in range(20):
        job = await app.by_name("x").using(id=f"{side}-{n}", meta={"side": side}).aenqueue()
        assert job.created, job.id
        assert (await app.aclient.job(job.id)).to_dict()["meta"] == {"side": side}

def asks_plainly(side):
    for n in range(20):
        job = app.by_name("x").using(id=f"{side}-{n}", meta={"side": side}).enqueue()
        assert job.created, job.id
        assert app.client.job(job.id).to_dict()["meta"] == {"side": side}

def lines():
    return {id(line) for line in app.aclient.server._loops[loop].idle[None]}

def child():
    global app
    if ends == "made anew":
        app = None
        gc.collect()
        app = TaskQ(url, namespace=namespace)
    asyncio.run(asks("child-async"))
    asks_plainly("child")
    if ends == "closed":
        app.close()
        asyncio.run(app.aclose())

on_the_loop(asks("first"))
asks_plainly("first-plain")
before = lines()
if ends == "multiprocessing":
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    on_the_loop(asks("beside"))
    process.join()
    code = process.exitcode
else:
    pid = os.fork()
    if pid == 0:
        child()
        if ends == "exits":
            sys.exit(0)
        os._exit(0)
    on_the_loop(asks("beside"))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
on_the_loop(asks("after"))
asks_plainly("after-plain")
print("child", code, "same", lines() == before, flush=True)
on_the_loop(app.aclose())
os._exit(0)
"""


@pytest.mark.parametrize(
    "kind, ends",
    [
        ("asyncio", "exits"),
        ("asyncio", "made anew"),
        ("asyncio", "multiprocessing"),
        ("uvloop", "exits"),
        ("uvloop", "closed"),
    ],
)
def test_a_child_leaves_its_parents_connections_alone(server_url, namespace, kind, ends):
    if kind == "uvloop":
        pytest.importorskip("uvloop")
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, server_url, namespace, kind, ends]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=50)
    assert ran.stdout.split("\n")[0] == "child 0 same True", ran.stderr
