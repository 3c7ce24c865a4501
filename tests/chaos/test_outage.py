"""The server is killed and comes back with its append-only file: what runs goes on, and nothing is run again."""

import logging
import os
import random
import signal
import time
from contextlib import suppress

import pytest

from taskq.embedded import Embedded
from tests.waiting import wait_until

log = logging.getLogger(__name__)


@pytest.fixture
def own(server_binary, tmp_path):
    """A server of this test's own, that keeps an append-only file."""
    with Embedded(port=0, dir=tmp_path / "data", appendonly=True, binary=server_binary) as server:
        yield server


@pytest.fixture
def server_url(own):
    """The app's and the nodes' server is that one. Overrides the shared server."""
    return own.url


@pytest.fixture(autouse=True)
def _no_leaked_keys():
    """Overrides the shared server's check."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("away_s", [12, pytest.param(60, marks=pytest.mark.long)])
def test_the_server_dies_and_comes_back(fleet, shop, look, own, away_s):
    node = fleet.start("-w", "2")
    before = fleet.pids()
    through = shop.app.enqueue_many([shop.nap.call(away_s + 5), shop.work.call(away_s + 5)])  # end when it is back
    during = shop.app.enqueue_many([shop.nap.call(4), shop.work.call(4)])  # end while it is away
    due = shop.nap.using(delay=away_s - 4).enqueue(0)
    look.until([*through, *during], "running")
    own.kill()
    time.sleep(away_s)
    own.start()
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
def test_the_server_stands_still(fleet, shop, look, own, still_s):
    """For less than a lease, and for longer: nobody could renew, so nobody may reap."""
    fleet.start("-w", "2")
    fleet.start()
    before = fleet.pids()
    through = shop.app.enqueue_many([shop.nap.call(still_s + 5), shop.nap.call(3)])
    look.until(through, "running")
    os.kill(own.pid, signal.SIGSTOP)
    time.sleep(still_s)
    os.kill(own.pid, signal.SIGCONT)
    fresh = shop.app.enqueue_many([shop.nap.call(0) for _ in range(10)])
    look.until([*fresh, *through], "completed", 30)
    assert not look.ledger.more_than_once()
    assert {look.record(job).attempt for job in through} == {1}
    assert fleet.pids() == before


class Storm:
    """Strikes at random; a seed replays its choices. `killed`: the pids of workers that it ended."""

    def __init__(self, fleet, own, raw, seed):
        self.killed = set()
        self.random = random.Random(seed)
        self._fleet = fleet
        self._own = own
        self._raw = raw

    def strike(self):
        blows = (self.worker, self.worker, self.node, self.cut, self.flush, self.drain, self.server)
        self.random.choice(blows)()

    def worker(self):
        pid = self.random.choice([pid for node in self.living() for pid in node.workers()] or [0])
        if pid:
            self.killed.add(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def node(self):
        node = self.random.choice(self.living())
        self.killed |= set(node.workers())
        node.kill()
        self.start()

    def drain(self):
        """A clean stop: its workers aren't among the killed, so what they ran must not run again."""
        node = self.random.choice(self.living())
        if len(node.workers()) == node.expected:
            node.terminate()
            self.start()

    def cut(self):
        self._raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def flush(self):
        self._raw.script_flush()

    def server(self):
        self._own.kill()
        time.sleep(self.random.uniform(0, 3))
        self._own.start()

    def living(self):
        return [node for node in self._fleet.nodes if node.process.poll() is None and not node.told]

    def start(self):
        self._fleet.begin("-w", "2", TASKQ_LEASE="4s")


@pytest.fixture
def storm(fleet, own, raw):
    """A storm, with its seed in the log."""
    seed = random.randrange(10_000)
    log.info("the storm's seed is %s", seed)
    return Storm(fleet, own, raw, seed)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("blows", [6, pytest.param(100, marks=pytest.mark.long)])
def test_a_storm(fleet, shop, look, storm, blows):
    """Everything at once, at random. Every job is done, none is lost, and none runs beside itself."""
    for _ in range(2):
        storm.start()
    jobs = []
    for _ in range(blows):
        for task in (shop.nap, shop.work):
            tough = task.using(max_attempts=1000)
            calls = [tough.call(storm.random.uniform(0, 0.5)) for _ in range(20)]
            calls += [tough.using(delay=storm.random.uniform(0, 3), priority=5).call(0.1) for _ in range(10)]
            jobs += shop.app.enqueue_many(calls)
        look.conserve()
        storm.strike()
        time.sleep(storm.random.uniform(0, 1))
    look.until(jobs, "completed", 60)
    look.conserve()
    ended = {each.job for each in look.ledger.ends()}
    assert ended == {job.id for job in jobs}
    for job, times in look.ledger.more_than_once().items():
        starts = look.ledger.starts(job)
        assert {each.pid for each in starts[:-1]} <= storm.killed, (job, times, starts)
    wait_until(lambda: not look.leases())
