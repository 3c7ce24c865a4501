"""SIGTERM drains a node: running jobs end, then it exits with 0. What waits, waits for the next node."""

import asyncio

import pytest

from tests.fleet import ROOT, Fleet
from tests.guide.app import app
from tests.waiting import wait_until


@app.task(queue="guide-drain")
async def steady(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


@pytest.fixture
def fleet(guide_url, tmp_path):
    fleet = Fleet("tests.guide.app", folder=ROOT, environment={"TASKQ_URL": guide_url}, logs=tmp_path)
    yield fleet
    fleet.close()


def test_running_jobs_end_first(fleet):
    node = fleet.start("-q", "guide-drain-2", "-c", "1")
    task = steady.using(queue="guide-drain-2")
    running, waiting = task.enqueue(0.7), task.enqueue(0)
    wait_until(lambda: running.refresh().state == "running")
    node.terminate()
    assert node.wait() == 0
    assert (running.refresh().state, waiting.refresh().state) == ("completed", "available")


def test_a_burst_runs_what_there_is_and_ends(fleet):
    task = steady.using(queue="guide-drain-3")
    jobs = [task.enqueue(0), task.using(delay=0.01).enqueue(0)]
    later = task.using(delay="1h").enqueue(0)
    wait_until(lambda: app.queue("guide-drain-3").counts().scheduled < 3)
    node = fleet.begin("-q", "guide-drain-3", "--burst")
    assert node.wait() == 0
    assert [job.refresh().state for job in jobs] == ["completed", "completed"]
    assert later.refresh().state == "scheduled"
