"""Everything at once, at random: a hundred blows over fifty thousand jobs in `make chaos`, a few in every run."""

from __future__ import annotations

import logging
import os
import random
import signal
import threading
import time
from contextlib import suppress

import pytest
import redis

from taskq import TaskQ
from taskq.errors import ServerFull, Unavailable

log = logging.getLogger(__name__)


@pytest.fixture
def server_url(own):
    """The app's server is one of this test's own; the nodes' is the proxy before it."""
    return own.url


@pytest.fixture
def raw(own):
    """With patience: what it reads of fifty thousand jobs takes its time."""
    with redis.Redis.from_url(own.url, socket_timeout=60) as client:
        yield client


@pytest.fixture(autouse=True)
def _no_leaked_keys(clean):
    """In place of the shared server's check: the same of this test's own."""


class Beside:
    """Enqueues in a thread while its block lasts, in the middle of the blows, and over the line that they strike.

    Whoever is refused, or gets no answer in time, goes on with another job; the word of an answer counts.
    """

    def __init__(self, look, url):
        self.added, self.refused = 0, 0
        self._accepted = look.accepted
        self._app = TaskQ(url, namespace=look.q.namespace, deadline="2s")
        self._nap = self._app.by_name("shop.nap", queue="default").using(max_attempts=1000)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        self._app.close()
        log.info("beside the blows %s were added, %s calls failed", self.added, self.refused)

    def _go(self):
        while not self._over.wait(0.05):
            try:
                self._accepted.add(self._nap.enqueue(0.05).id)
                self.added += 1
            except (ServerFull, Unavailable):
                self.refused += 1


class Storm:
    """Strikes at random; a seed replays its choices. `killed`: the pids of workers that it ended or stopped.
    `beside`: who enqueues meanwhile.
    """

    def __init__(self, trial, own, raw, proxy, seed):
        self.killed = trial.struck
        self.random = random.Random(seed)
        self._fleet, self._own, self._raw, self._proxy = trial.fleet, own, raw, proxy
        self.beside = Beside(trial.look, proxy.url)

    def strike(self):
        blows = (
            self.worker, self.worker, self.node, self.stop, self.stop_a_node, self.drain,
            self.server, self.sleep, self.full, self.cut, self.flush, self.deaf, self.hole, self.halves,
        )  # fmt: skip
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

    def stop(self):
        self.still(self.random.choice([pid for node in self.living() for pid in node.workers()] or [0]))

    def stop_a_node(self):
        node = self.random.choice(self.living())
        self.killed |= set(node.workers())
        self.still(node.pid)

    def still(self, pid):
        """For less than a lease, or for more."""
        if pid:
            self.killed.add(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(self.random.choice([1, 6]))
                os.kill(pid, signal.SIGCONT)

    def sleep(self):
        os.kill(self._own.pid, signal.SIGSTOP)
        time.sleep(self.random.choice([1, 6]))
        os.kill(self._own.pid, signal.SIGCONT)

    def full(self):
        self._raw.config_set("maxmemory", 1)
        time.sleep(1)
        self._raw.config_set("maxmemory", 0)

    def deaf(self):
        self._proxy.mode = "deaf"
        time.sleep(self.random.uniform(0, 1))
        self._proxy.cut()
        self._proxy.mode = "pass"

    def hole(self):
        self._proxy.mode = "hole"
        time.sleep(self.random.uniform(0, 2))
        self._proxy.mode = "pass"

    def halves(self):
        """Every tenth reply for a second, and half of it."""
        self._proxy.fate = lambda _: "half" if self.random.random() < 0.1 else "pass"
        time.sleep(1)
        self._proxy.fate = None

    def living(self):
        return self._fleet.living()

    def start(self):
        self._fleet.begin("-w", "2", TASKQ_LEASE="4s", TASKQ_URL=self._proxy.url)


@pytest.fixture
def storm(trial, own, raw, proxy):
    """A storm, with its seed in the log."""
    seed = random.randrange(10_000)
    log.info("the storm's seed is %s", seed)
    return Storm(trial, own, raw, proxy, seed)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("blows, each", [(8, 60), pytest.param(100, 500, marks=pytest.mark.long)])
@pytest.mark.fault("A storm of everything at random")
def test_a_storm(shop, storm, trial, blows, each):
    """Everything, one after the other, at random. Every job is done, none is lost, and none runs beside itself."""
    look = trial.look
    for _ in range(2):
        storm.start()
    jobs = []
    with storm.beside:
        for blow in range(blows):
            for task in (shop.nap, shop.nap, shop.work):
                tough = task.using(max_attempts=1000)
                calls = [tough.call(min(storm.random.expovariate(8), 3)) for _ in range(each // 4)]
                calls += [
                    tough.using(delay=storm.random.uniform(0, 3), priority=5).call(0.1) for _ in range(each // 12)
                ]
                jobs += shop.app.enqueue_many(calls)
            if blow % (1 + blows // 10) == 0:
                look.conserve()
            storm.strike()
            time.sleep(storm.random.uniform(0, 1))
    look.conserve()
    trial.over(60)
    look.until(jobs, "completed", 120 + len(jobs) / 50)
    assert {each.job for each in look.ledger.ends()} >= {job.id for job in jobs}
    assert storm.beside.added > blows, "nobody enqueued during the blows"
