"""Schedules that code declares, and what hears of them, on a real node: it fires, is heard once, and goes on."""

from __future__ import annotations

import itertools
import json
import signal
from datetime import datetime

import pytest

from tests.waiting import wait_until

APP = """
from pathlib import Path

from taskq import TaskQ, current

app = TaskQ()


@app.every("1s", name="ticks", missed="all")
@app.cron("*/2 * * * * *", name="clock", missed="all")
@app.task(name="beat")
async def beat():
    return current().scheduled_for.isoformat()


@app.on_schedule
def rude(run):
    raise RuntimeError(f"rude about {run.schedule}")


@app.on_schedule
async def heard(run):
    with Path("heard.txt").open("a") as file:
        file.write(f"{run.schedule} {run.nominal.isoformat()} {run.job} {run.term}\\n")
"""
SECONDS = {"ticks": 1, "clock": 2}


@pytest.fixture
def heard(folder):
    """What the second observer has written so far: schedule → [(nominal, job, term)]."""
    (folder / "observed.py").write_text(APP)

    def heard():
        file = folder / "heard.txt"
        rows = [line.split(" ") for line in file.read_text().splitlines()] if file.exists() else []
        return {name: [tuple(row[1:]) for row in rows if row[0] == name] for name in SECONDS}

    return heard


@pytest.mark.timeout(120)
def test_what_code_declares_fires_and_is_heard_whatever_another_observer_raises(start, taskq, app, heard):
    place = ("--url", app.settings.url, "--namespace", app.settings.namespace)
    process = start("worker", "observed", "-w", "2", "--log-format", "text", *place)
    wait_until(lambda: all(len(runs) >= 5 for runs in heard().values()), 60, what="five times of each, heard")
    listed = {each["name"]: each for each in json.loads(taskq("schedule", "list", "--json").stdout)["data"]}
    assert {name: (each["expression"], each["origin"]) for name, each in listed.items()} == {
        "ticks": ("@every 1s", "code"),
        "clock": ("*/2 * * * * *", "code"),
    }
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=40)
    assert process.returncode == 0, told
    for name, runs in heard().items():
        times = [datetime.fromisoformat(nominal) for nominal, _, _ in sorted(runs)]
        assert {(b - a).total_seconds() for a, b in itertools.pairwise(times)} == {SECONDS[name]}, "each once"
        for nominal, job, _ in runs[:5]:
            assert app.job(job).result(timeout=5) == nominal
        shown = json.loads(taskq("schedule", "show", name, "--json").stdout)["runs"]
        assert {(job, int(term)) for _, job, term in runs[-5:]} <= {(run["job"], run["term"]) for run in shown}
    raised = told.count("an observer of schedules raised")
    assert raised >= sum(map(len, heard().values())), "it was called each time, and raised each time"
    assert "rude about ticks" in told
    assert "rude about clock" in told
