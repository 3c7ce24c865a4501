"""Limits, job locks, unique keys and reservations, all at once, while a node is killed, a worker stands still and the
server comes back with its append-only file: none is ever held by one too many, and afterwards nobody holds any.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import defaultdict

import pytest

from taskq import AdmissionNotFound, Concurrency, Lock, Rate, Unavailable, Unique, keys
from tests.chaos.conserve import Snapshot, complaints
from tests.ledger import most_at_once
from tests.waiting import wait_until

SLOTS = 3
FLAGS = ("-q", "default,adm", "-w", "2", "-c", "20")


@pytest.fixture
def server_url(own):
    """The app's and the nodes' server is one of this test's own."""
    return own.url


@pytest.fixture(autouse=True)
def _no_leaked_keys(clean):
    """In place of the shared server's check: the same of this test's own."""


class Crowd:
    """Those who ask for something to be done, in threads, whatever becomes of the server.

    Attributes:
        jobs: ids by what they hold: `crm=a`, `account=a`, `unique=a`, `api`; the queue `adm`, and its keys.
    """

    def __init__(self, shop):
        self.jobs = defaultdict(set)
        self._app, self._turn = shop.app, shop.turn.using(max_attempts=10)
        self._over = threading.Event()
        loops = (self._limited, self._limited, self._unique, self._unique, self._reserve, self._reserve)
        self._threads = [threading.Thread(target=self._go, args=(loop, n)) for n, loop in enumerate(loops)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _go(self, loop, seed):
        draw, n = random.Random(seed), 0
        while not self._over.wait(0.1):
            n += 1
            try:
                loop(draw, n)
            except Unavailable:
                continue

    def _limited(self, draw, _):
        who = draw.choice("abc")
        if draw.random() < 0.6:
            limits = [Concurrency(2, by="who", name="crm"), Rate("20/s", name="api", burst=5)]
            job = self._turn.using(limits=limits).enqueue(who, 0.2)
            self.jobs[f"crm={who}"].add(job.id)
            self.jobs["api"].add(job.id)
        else:
            job = self._turn.using(lock=Lock("account", by="who", wait="10m")).enqueue(who, 0.1)
            self.jobs[f"account={who}"].add(job.id)

    def _unique(self, draw, _):
        who = draw.choice("abcde")
        job = self._turn.using(unique=Unique(by="who")).enqueue(who, 0.3)
        self.jobs[f"unique={who}"].add(job.id)

    def _reserve(self, draw, n):
        queue, key = self._app.queue("adm"), f"k{n // 2}"
        answer = queue.reserve(key, max_concurrency=SLOTS, ttl="2s")
        what = draw.random()
        if not answer.token or what < 0.1:
            return  # abandoned
        try:
            if what < 0.3:
                queue.release_reservation(answer.token)
                return
            # Both threads ask for one key, and for another every 0.2 s: so long that the queue's limit is reached.
            job = queue.bind(answer.token, self._turn.using(queue="adm").call(key, 0.8))
        except AdmissionNotFound:
            return  # it lapsed: the server was away
        self.jobs["adm"].add(job.id)
        self.jobs[f"adm={key}"].add(job.id)


def strike(fleet, nodes, own):
    """One fault after the other; when each process was struck, by pid."""
    struck = dict.fromkeys(nodes[0].workers(), time.monotonic())
    nodes[0].kill()
    fleet.begin(*FLAGS, TASKQ_LEASE="4s")
    time.sleep(5)
    own.kill()
    time.sleep(2)
    own.start()
    time.sleep(3)
    stopped = nodes[1].workers()[0]
    struck[stopped] = time.monotonic()
    os.kill(stopped, signal.SIGSTOP)
    time.sleep(6)
    os.kill(stopped, signal.SIGCONT)
    time.sleep(2)
    return struck


@pytest.mark.timeout(240)
def test_nothing_is_held_twice_and_nothing_for_ever(fleet, shop, look, raw, own):
    adm = keys.queue(look.q.namespace, "adm")
    nodes = [fleet.begin(*FLAGS, TASKQ_LEASE="4s") for _ in range(2)]
    for node in nodes:
        node.until_ready()
    wait_until(lambda: len(shop.app.inspector.queues()) == 2, 20, what="both queues known")
    shop.app.queue("default").limit("crm", concurrency=2)
    shop.app.queue("default").limit("api", rate="20/s", burst=5)
    shop.app.queue("adm").limit(concurrency=SLOTS)
    with Crowd(shop) as crowd:
        time.sleep(2)
        struck = strike(fleet, nodes, own)
    queues = {"default": look.q, "adm": adm}
    wait_until(lambda: all(is_idle(shop.app.queue(name).counts()) for name in queues), 60, what="the end of all jobs")

    entries = look.ledger.entries()
    most = {
        what: most_at_once([each for each in entries if each.job in ids], struck) for what, ids in crowd.jobs.items()
    }
    allowed = {"crm": 2, "account": 1, "unique": 1, "adm": SLOTS}
    again = {id for id, n in look.ledger.more_than_once().items() if n > 1}
    for what, n in most.items():
        kind, _, key = what.partition("=")
        if kind == "adm" and key:  # a retry takes a slot like any job: the key was free by then
            assert n <= 1 or crowd.jobs[what] & again, (what, n)
        elif kind != "api":
            assert n <= allowed[kind], (what, n)
    reached = {kind: max(n for what, n in most.items() if what.partition("=")[0] == kind) for kind in allowed}
    assert reached == allowed, "it was never at its limit"
    assert again, "nobody was struck"
    claims = sorted({each.epoch for each in look.ledger.starts() if each.job in crowd.jobs["api"]})
    assert max(sum(first <= each < first + 1000 for each in claims) for first in claims) <= 20 + 5 + 1

    line = shop.app.queue("adm")
    slot = wait_until(lambda: line.reserve("last", max_concurrency=1), 10, what="a slot: what was abandoned lapsed")
    line.release_reservation(slot.token)
    for q in queues.values():
        assert held(raw, q) == []
    assert complaints(raw, adm) == []
    uniques = [shop.turn.using(unique=Unique(by="who")).enqueue(who, 0) for who in "abcde"]
    assert all(job.created for job in uniques)
    limits = [Concurrency(2, by="who", name="crm")]
    more = [shop.turn.using(limits=limits).enqueue("a", 1) for _ in range(4)]
    wait_until(lambda: raw.zcard(look.q.slots("crm=a")) == 2, 10, what="all its slots again")
    look.until([*uniques, *more], "completed", 20)


def is_idle(counts):
    """Whether no job waits or runs."""
    return not (counts.available or counts.running or counts.scheduled or counts.retryable)


def held(raw, q):
    """What stands only while somebody holds, waits, has reserved or owns."""
    seen = Snapshot(raw, q)
    prefixes = ("slots:", "parked:", "parks:", "reserved:", "unique:")
    return [name for name in seen.ttls if name.startswith(prefixes) or name in {"gates", "reservations"}]
