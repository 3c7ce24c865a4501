"""Jobs that return, raise and are given what nobody should: stored within bounds, shown without steering a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from taskq import JobFailed, PayloadTooLarge, Unencodable
from tests.chaos.conftest import FOLDER, _load
from tests.fleet import ROOT, Fleet
from tests.waiting import wait_until

MEGABYTE = 1024 * 1024


@pytest.fixture
def rude(server_url, namespace, monkeypatch):
    monkeypatch.setenv("TASKQ_URL", server_url)
    monkeypatch.setenv("TASKQ_NAMESPACE", namespace)
    module = _load("rudeshop", FOLDER / "rudeshop.py", monkeypatch)
    yield module
    module.app.close()


@pytest.fixture
def node(server_url, namespace, tmp_path, rude):
    fleet = Fleet("rudeshop", folder=FOLDER, environment={"TASKQ_URL": server_url, "TASKQ_NAMESPACE": namespace},
                  logs=tmp_path)  # fmt: skip
    yield fleet.start()
    fleet.close()


@pytest.fixture
def taskq(server_url, namespace):
    """Runs a command; what it printed, which steers no terminal."""

    def run(*words):
        done = subprocess.run(
            [sys.executable, "-m", "taskq.cli", *words, "--url", server_url, "--namespace", namespace],
            capture_output=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        shown = done.stdout.decode() + done.stderr.decode()
        assert steered(shown) == []
        return done.stdout.decode()

    return run


def steered(text):
    return [line for line in text.replace("\t", "").split("\n") if not line.isprintable()]


def test_whatever_a_job_does(node, rude, taskq, raw, q):
    jobs = {
        "loud": rude.shout.enqueue(1),
        "10 MB": rude.shout.enqueue(10 * MEGABYTE // len(rude.RUDE)),
        "raising text": rude.mumble.enqueue(),
        "discarded": rude.refuse.enqueue(),
        "deep": rude.nest.enqueue(1000),
        "5 MB": rude.bulk.enqueue(5 * MEGABYTE),
    }
    for job in jobs.values():
        with pytest.raises(JobFailed):
            job.result(timeout=20)
    echoed = rude.echo.using(tags=["t"], meta={"k": "v"}).enqueue({rude.RUDE: [rude.RUDE, b"\x1b", float("nan")]})
    assert rude.RUDE in echoed.result(timeout=20)
    for job in [*jobs.values(), echoed]:
        assert sum(map(len, raw.hvals(q.job(job.id)))) < 64 * 1024
        taskq("job", "show", job.id)
        json.loads(taskq("job", "show", job.id, "--json"))
    listed = taskq("job", "list")
    assert len(listed) < 10_000
    assert len(listed.splitlines()) == 1 + len(jobs) + 1, "a job is a line"
    json.loads(taskq("job", "list", "--json"))
    wait_until(lambda: node.text().count("job failed") == len(jobs), 5)
    log = node.text()
    assert steered(log) == []
    assert len(log) < 200_000
    assert node.process.poll() is None


def test_what_is_given(rude, raw, q):
    with pytest.raises(PayloadTooLarge):
        rude.bulk.enqueue(b"x" * 5 * MEGABYTE)
    nested = []
    for _ in range(1000):
        nested = [nested]
    with pytest.raises(Unencodable):
        rude.echo.enqueue(nested)
    for wrong in ({"tags": [f"t{n}" for n in range(1000)]}, {"tags": ["\ud800"]}, {"meta": {"k": "x" * MEGABYTE}},
                  {"id": "a\0b"}, {"id": "\x1b"}, {"queue": "a\nb"}):  # fmt: skip
        with pytest.raises(ValueError) as refusal:  # noqa: PT011 (which rule it is, the unit tests say)
            rude.echo.using(**wrong).enqueue(1)
        assert len(str(refusal.value)) < 500
    assert not list(raw.scan_iter(q.job("*")))
