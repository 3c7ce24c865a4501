"""An executor in another language, beside a node of ours: what `lua/README.md` says is enough to write one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from taskq import TaskQ, commands, keys, scripts
from taskq.commands import Reaped
from tests.waiting import wait_until

HERE = Path(__file__).parent
QUEUE = "media"


@pytest.fixture(scope="module")
def node_program() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("there is no Node.js here")
    return found


@pytest.fixture(scope="module")
def expanded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts, as `python -m taskq.scripts DIR` writes them."""
    folder = tmp_path_factory.mktemp("scripts")
    assert scripts.main(["", str(folder)]) == 0
    return folder


@pytest.fixture
def app(server_url: str, namespace: str) -> Iterator[TaskQ]:
    app = TaskQ(server_url, namespace=namespace)
    yield app
    app.close()


Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start(node_program: str, expanded: Path, server_url: str, namespace: str) -> Iterator[Start]:
    """Starts an executor of that name; it is killed with the test."""
    begun: list[subprocess.Popen[str]] = []
    port = str(urlsplit(server_url).port)

    def run(name: str) -> subprocess.Popen[str]:
        words = [node_program, str(HERE / "executor.mjs"), port, namespace, QUEUE, name, str(expanded)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        begun.append(process)
        return process

    yield run
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


def reap(app: TaskQ, run) -> Reaped:
    """What every node does once a second for the queues it serves."""
    return run(commands.reap(keys.queue(app.settings.namespace, QUEUE), lease_ms=4000))


def test_all_of_it_is_short():
    """With its client and its msgpack, comments and blank lines too."""
    files = sorted(HERE.glob("*.*js"))
    assert [file.name for file in files] == ["executor.mjs", "msgpack.mjs", "redis.mjs"]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 120


def test_its_jobs_are_run_and_told_as_ours_are(app, start):
    def by(task):
        return app.by_name(task, queue=QUEUE)

    sums = [by("add").enqueue(n, 2.5) for n in range(40)]
    greeted = by("greet").enqueue(whom="wörld")
    nothing = by("slow").using(delay="300ms").enqueue(1)
    boom = by("boom").using(max_attempts=2).enqueue("no such codec")
    unknown = by("never.heard").using(max_attempts=1).enqueue()
    executor = start("node")
    name = executor.stdout.readline().strip()
    assert [job.result(timeout=60) for job in sums] == [n + 2.5 for n in range(40)]
    assert greeted.result(timeout=60) == "hello wörld"
    assert nothing.result(timeout=60) == "slept"
    wait_until(lambda: boom.refresh().state == "failed", timeout=60)
    shown = boom.to_dict()
    assert (shown["attempt"], shown["reason"], shown["worker"]) == (2, "attempts exhausted: no such codec", name)
    assert [(each["type"], each["message"]) for each in shown["errors"]] == [("Error", "no such codec")] * 2
    assert shown["progress"] == {"n": 2, "total": None, "note": "begun"}
    wait_until(lambda: unknown.refresh().state == "failed", timeout=60)
    assert sums[0].refresh().to_dict()["started_at"] is not None
    executor.terminate()
    assert executor.wait(60) == 0, executor.stderr.read()
    assert app.client.leases(QUEUE) == []


def test_it_renews_what_runs_longer_than_a_lease(app, start, run):
    job = app.by_name("slow", queue=QUEUE).enqueue(6000)
    start("node")
    wait_until(lambda: job.refresh().state == "running", timeout=60)
    wait_until(lambda: reap(app, run) and job.refresh().state != "running", timeout=90)
    assert (job.state, job.attempt) == ("completed", 1)


def test_asked_to_stop_it_stops_and_the_job_is_cancelled(app, start):
    job = app.by_name("slow", queue=QUEUE).enqueue(600_000)
    start("node")
    wait_until(lambda: job.refresh().to_dict()["started_at"], timeout=60)
    assert job.cancel() == "requested"
    wait_until(lambda: job.refresh().state == "cancelled", timeout=60)


def test_a_killed_one_loses_nothing(app, start, run):
    """What it had started counts as an attempt, and another one does it."""
    first = start("first")
    jobs = [app.by_name("slow", queue=QUEUE).enqueue(3000) for _ in range(4)]
    wait_until(lambda: sum(not lease.offered for lease in app.client.leases(QUEUE)) == 4, timeout=60)
    first.kill()
    second = start("second")
    name = second.stdout.readline().strip()
    wait_until(
        lambda: reap(app, run) and all(job.refresh().state == "completed" for job in jobs), timeout=120, step_s=0.5
    )
    assert {(job.to_dict()["worker"], job.attempt) for job in jobs} == {(name, 2)}
    assert "lease expired: worker first-" in jobs[0].to_dict()["errors"][0]["message"]


def test_two_share_the_queue(app, start):
    for name in ("one", "two"):
        start(name)
    jobs = [app.by_name("slow", queue=QUEUE).enqueue(50) for _ in range(60)]
    for job in jobs:
        assert job.result(timeout=60) == "slept"
    done = [job.refresh().to_dict() for job in jobs]
    assert {each["attempt"] for each in done} == {1}
    assert {each["worker"].partition("-")[0] for each in done} == {"one", "two"}
