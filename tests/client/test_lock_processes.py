"""`app.lock` between processes that are killed and stopped, and over a connection that breaks."""

from __future__ import annotations

import os
import signal
import threading
import time
from itertools import pairwise

import pytest

from taskq import LockLost, TaskQ, Unavailable, keys
from tests.chaos.proxy import Proxy
from tests.client.lockers import start
from tests.waiting import wait_until


@pytest.fixture
def cast(server_url, namespace, tmp_path):
    """Starts programs; ends those that are left."""
    processes = []

    class Cast:
        log = tmp_path / "log"

        def start(self, role):
            processes.append(start(role, server_url, namespace, self.log))
            return processes[-1]

        def said(self):
            return self.log.read_text().splitlines() if self.log.exists() else []

    yield Cast()
    for process in processes:
        if process.poll() is None:
            process.kill()  # a stopped one too: let go on, it would still write
        process.wait()


def said(cast, beginning, count=1):
    """The lines that begin so, once there are so many."""

    def found():
        lines = [line for line in cast.said() if line.startswith(beginning)]
        return lines if len(lines) >= count else None

    return wait_until(found, timeout=60)


def test_a_killed_holders_lock_is_the_next_ones_within_its_ttl(cast, app):
    holder = cast.start("holder")
    (first,) = said(cast, "in")
    began = time.monotonic()
    holder.kill()
    with app.lock("l", wait=30) as lock:
        took_s = time.monotonic() - began
        assert lock.fence > int(first.split()[1])
    assert took_s < 1 + 3, "its ttl, and a slow machine's pause"


def test_a_stopped_holder_is_told_and_what_it_does_then_changes_nothing(cast, app, raw, namespace):
    holder = cast.start("holder")
    (first,) = said(cast, "in")
    os.kill(holder.pid, signal.SIGSTOP)
    with app.lock("l", ttl="30s", wait=30) as lock:
        os.kill(holder.pid, signal.SIGCONT)
        fence = int(first.split()[1])
        assert said(cast, "lost") == [f"lost {fence} 0.0"]
        assert said(cast, "released") == ["released False"]
        wait_until(lambda: raw.zcard(keys.cluster(namespace).line("l")) == 1)
        lock.extend()
        assert lock.fence > fence
    (again,) = said(cast, "again")
    assert int(again.split()[1]) > lock.fence
    assert holder.wait(timeout=30) == 0


def test_a_killed_waiter_costs_the_others_seconds_and_leaves_no_key(cast, app, raw, namespace):
    c = keys.cluster(namespace)
    with app.lock("l"):
        waiters = []
        for n in range(2):
            waiters.append(cast.start("waiter"))
            wait_until(lambda n=n: raw.zcard(c.line("l")) == n + 1, timeout=60)
        waiters[0].kill()
        waiters[0].wait()
    began = time.monotonic()
    said(cast, "out")
    assert time.monotonic() - began < 5 + 5, "what a dead one costs, and a slow machine's pause"
    assert waiters[1].wait(timeout=30) == 0
    assert not raw.exists(c.line("l"), c.present("l"), c.fixed("locks"))


@pytest.mark.timeout(180)
def test_eight_processes_never_hold_it_together(cast):
    """By the store's judgement: each goes in with a fence higher than all before, and out before the next goes in."""
    processes = [cast.start("hammer") for _ in range(8)]
    assert [process.wait(timeout=120) for process in processes] == [0] * 8
    words = [line.split() for line in cast.said()]
    fences = [int(fence) for word, fence in words if word == "in"]
    assert len(fences) == 8 * 10
    assert all(one < other for one, other in pairwise(fences))
    assert words == [[word, str(fence)] for fence in fences for word in ("in", "out")]


# --- a connection that breaks


@pytest.fixture
def proxy(embedded):
    proxy = Proxy(embedded.port)
    yield proxy
    proxy.close()


@pytest.fixture
def far(proxy, namespace):
    """An app that reaches its server through the proxy."""
    app = TaskQ(proxy.url, namespace=namespace, deadline=2)
    yield app
    app.close()


def test_no_reply_is_no_lock(far, proxy, app):
    """Nobody can take it before its holder must think it lost."""
    with pytest.raises(LockLost, match="didn't confirm it"), far.lock("l", ttl=1) as lock:  # noqa: PT012 (the block is what is tested)
        first = lock.fence
        proxy.mode = "hole"
        with app.lock("l", wait=30) as other:
            assert lock.lost
            assert other.fence > first
            proxy.mode = "pass"
            with pytest.raises(LockLost):
                lock.check()
            other.extend()
    assert not lock.release()


def test_a_lock_outlives_an_outage_shorter_than_its_ttl(far, proxy):
    with far.lock("l", ttl=6) as lock:
        proxy.mode = "deaf"
        time.sleep(2.5)
        proxy.mode = "pass"
        wait_until(lambda: lock.remaining() > 4)
        lock.check()


def test_servers_that_are_away_delay_no_other_servers_renewals(proxy, namespace, app):
    apps = [TaskQ(proxy.url, namespace=namespace) for _ in range(3)]
    away = [far.lock(f"far {n}", ttl=4).acquire() for n, far in enumerate(apps)]
    with app.lock("near", ttl=1.5) as near:
        proxy.mode = "hole"
        wait_until(lambda: all(lock.lost for lock in away), timeout=20)
        near.check()
    for far in apps:
        far.close()


def test_who_gets_no_answer_holds_nothing_for_longer_than_its_ttl(far, proxy, app):
    """The server did what it was asked, but the answer got lost, and what would take it back doesn't get through."""
    assert far.ping()
    proxy.mode = "deaf"
    with pytest.raises(Unavailable):
        far.lock("l", ttl=2).acquire()
    with app.lock("l", wait=30):
        pass
    proxy.mode = "pass"


def test_a_waiter_outlives_an_outage(far, proxy, app):
    got = []

    def work():
        with far.lock("l", wait=60) as lock:
            got.append(lock.fence)

    thread = threading.Thread(target=work)
    with app.lock("l") as lock:
        thread.start()
        wait_until(lambda: app.inspector.locks(name="l")["data"][0]["waiting"] == 1)
        proxy.mode = "hole"
        time.sleep(1.5)
        proxy.cut()
    proxy.mode = "pass"
    thread.join(30)
    assert got
    assert got[0] > lock.fence


def test_a_block_whose_lock_cannot_be_given_back_ends_well(far, proxy, app):
    """It was held to the end; that it isn't free for a while hurts nobody but those who wait."""
    with far.lock("l", ttl=2) as lock:
        fence = lock.fence
        proxy.mode = "hole"
    proxy.mode = "pass"
    with app.lock("l", wait=30) as other:
        assert other.fence > fence
