"""The server is killed and comes back, with its append-only file or with nothing; or it stands still for a while.

What runs goes on, and nothing is run again.
"""

from __future__ import annotations

import os
import shutil
import signal
import time

import pytest
import redis


@pytest.fixture
def server_url(own):
    """The app's and the nodes' server is one of this test's own."""
    return own.url


@pytest.fixture(autouse=True)
def _no_leaked_keys(clean):
    """In place of the shared server's check: the same of this test's own."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "away_s", [12, pytest.param(60, marks=pytest.mark.long), pytest.param(600, marks=pytest.mark.long)]
)
@pytest.mark.fault("The server restarts with its append-only file")
def test_the_server_dies_and_comes_back(fleet, shop, own, trial, away_s):
    look = trial.look
    node = fleet.start("-w", "2")
    before = fleet.pids()
    through = shop.app.enqueue_many([shop.nap.call(away_s + 5), shop.work.call(away_s + 5)])  # end when it is back
    during = shop.app.enqueue_many([shop.nap.call(4), shop.work.call(4)])  # end while it is away
    due = shop.nap.using(delay=away_s - 4).enqueue(0)
    look.until([*through, *during], "running")
    own.kill()
    time.sleep(away_s)
    own.start()
    trial.over()
    look.until([*during, due], "completed", 15)
    fresh = [shop.nap.enqueue(0) for _ in range(10)]
    look.until(fresh, "completed", 10)
    look.until(through, "completed", 20)
    for job in [*through, *during, due, *fresh]:
        assert (len(look.ledger.starts(job.id)), len(look.ledger.ends(job.id))) == (1, 1)
        assert look.record(job).attempt == 1
    assert fleet.pids() == before, "a process was restarted"
    assert node.text().count("Redis is away") < 10, "an outage fills the log"


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("still_s", [6, 20])
@pytest.mark.fault("The server stands still")
def test_the_server_stands_still(fleet, shop, own, trial, still_s):
    """For less than a lease, and for longer: nobody could renew, so nobody may reap."""
    look = trial.look
    fleet.start("-w", "2")
    fleet.start()
    before = fleet.pids()
    through = shop.app.enqueue_many([shop.nap.call(still_s + 5), shop.nap.call(3)])
    look.until(through, "running")
    os.kill(own.pid, signal.SIGSTOP)
    time.sleep(still_s)
    os.kill(own.pid, signal.SIGCONT)
    trial.over()
    fresh = shop.app.enqueue_many([shop.nap.call(0) for _ in range(10)])
    look.until([*fresh, *through], "completed", 30)
    assert not look.ledger.more_than_once()
    assert {look.record(job).attempt for job in through} == {1}
    assert fleet.pids() == before


@pytest.mark.timeout(120)
@pytest.mark.fault("DEBUG SLEEP of the server")
def test_the_server_sleeps(fleet, shop, own, trial):
    """For longer than a lease: nobody could renew, so nobody may reap."""
    for _ in range(2):
        fleet.start("-w", "2", TASKQ_LEASE="4s")
    before = fleet.pids()
    jobs = shop.app.enqueue_many([shop.nap.call(8) for _ in range(20)] + [shop.work.call(2) for _ in range(20)])
    trial.look.until(jobs, "running")
    with redis.Redis.from_url(own.url, socket_timeout=None) as waits:
        waits.execute_command("DEBUG", "SLEEP", "6")
    trial.over()
    trial.look.until(jobs, "completed", 30)
    assert not trial.look.ledger.more_than_once()
    assert fleet.pids() == before


@pytest.mark.timeout(120)
@pytest.mark.fault("The server restarts without its data")
def test_the_server_comes_back_with_nothing(fleet, shop, own, trial, tmp_path):
    """No append-only file, and no scripts either: what Redis forgot is lost, what comes after runs on the old nodes."""
    look = trial.look
    fleet.start("-w", "2")
    before = fleet.pids()
    jobs = shop.app.enqueue_many([shop.nap.call(4) for _ in range(20)] + [shop.nap.call(0.1) for _ in range(100)])
    look.until(jobs[:20], "running")
    own.kill()
    shutil.rmtree(tmp_path / "data" / "appendonlydir", ignore_errors=True)
    (tmp_path / "data" / "appendonly.aof").unlink(missing_ok=True)  # where Redis 6.2 keeps it
    time.sleep(2)
    own.start()
    look.accepted.clear()
    trial.over()
    fresh = shop.app.enqueue_many([shop.nap.call(0.1) for _ in range(100)] + [shop.brittle.call()])
    look.until(fresh, "completed", 20)
    assert fleet.pids() == before
