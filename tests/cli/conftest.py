"""How the tests of the command line run it: in this process with click's runner, or as a real program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from taskq import TaskQ
from taskq.cli.main import cli
from taskq.commands import Done, Failure, claim, complete, fail
from taskq.keys import QueueKeys

ROOT = Path(__file__).parents[2]

SHOP = """
import asyncio
import os
import time

from taskq import TaskQ

hoarded = []

app = TaskQ()

@app.task
async def add(a, b):
    return a + b

@app.task(queue="email")
def send(to, *, subject="hi"):
    return {"to": to, "subject": subject}

@app.task(max_attempts=1)
def boom(text):
    raise RuntimeError(text)

@app.task
def who():
    time.sleep(0.01)
    return os.getpid()

@app.task
def hoard(mib):
    hoarded.append(bytearray(os.urandom(1)) * (mib << 20))
    time.sleep(3)
    return mib

@app.task
async def slow(seconds):
    await asyncio.sleep(seconds)

@app.task
async def until(file):
    while not os.path.exists(file):
        await asyncio.sleep(0.1)
"""


@pytest.fixture
def taskq(server_url: str, namespace: str) -> Callable[..., Result]:
    """`taskq("job", "list")` runs a command on the test's server and namespace; `.exit_code .stdout .stderr`."""

    def run(*words: str, input: str | None = None) -> Result:
        place = ("--url", server_url, "--namespace", namespace)
        result = CliRunner().invoke(cli, [*place, *words], input=input)
        assert "Traceback" not in result.stderr, result.stderr
        return result

    return run


@pytest.fixture
def app(server_url: str, namespace: str) -> Iterator[TaskQ]:
    """An app on the same place, to put things there and to look."""
    made = TaskQ(server_url, namespace=namespace)
    yield made
    made.close()


@pytest.fixture
def finish(run: Callable[..., Any], q: QueueKeys) -> Callable[..., list[str]]:
    """`finish(n, "complete" | "fail")`: a worker takes n jobs and ends them so."""
    requests = iter(range(1, 1000))

    def end(n: int, verb: str, error: str = "{}", reason: str = "broken") -> list[str]:
        request = next(requests)
        got = run(claim(q, worker="w.1", request=request, lease_ms=8000, limit=n, free={"async": n, "thread": n}))
        if verb == "complete":
            run(complete(q, worker="w.1", done=[Done(job.id, job.epoch, b"") for job in got.jobs]))
        elif verb == "fail":
            run(fail(q, worker="w.1", failures=[Failure(j.id, j.epoch, "fail", 0, error, reason) for j in got.jobs]))
        return [job.id for job in got.jobs]

    return end


@pytest.fixture
def add(app: TaskQ) -> Callable[..., list[str]]:
    """`add(n, **options)`: so many jobs that wait in queue default; their ids."""
    task = app.by_name("shop.add", queue="default")

    def add(n: int = 1, **options: Any) -> list[str]:
        return [job.id for job in app.enqueue_many([task.using(**options).call(i) for i in range(n)])]

    return add


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with an app, `shop:app`."""
    place = tmp_path / "project"
    place.mkdir()
    (place / "shop.py").write_text(SHOP)
    return place


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """`start("worker", "shop")` starts the real program in that project; it is ended with the test."""
    begun: list[subprocess.Popen[str]] = []

    def run(*words: str, **environ: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "taskq.cli", *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        begun.append(process)
        return process

    yield run
    for process in begun:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.fixture
def worker(start: Start, app: TaskQ, server_url: str, namespace: str) -> subprocess.Popen[str]:
    """`taskq worker shop`, ready: it has said which tasks it knows."""
    from tests.waiting import wait_until

    process = start("worker", "shop", "--url", server_url, "--namespace", namespace)
    wait_until(lambda: app.client.task_info("shop.add"), timeout=20)
    return process
