"""SIGTERM: running jobs end and are told to have ended, nothing new begins, and nobody waits for ever."""

import os
import signal
import time

import pytest

from tests.fleet import ROOT
from tests.waiting import wait_until

WITHOUT = "raise ImportError('there is no uvloop here')"


@pytest.fixture(params=["uvloop", pytest.param("asyncio", marks=pytest.mark.long)], autouse=True)
def loop(request, fleet, tmp_path):
    """PACK-03: what is promised here is so with uvloop and without."""
    if request.param == "asyncio":
        plain(fleet, tmp_path)


def plain(fleet, folder):
    """As where uvloop isn't installed."""
    (folder / "uvloop.py").write_text(WITHOUT)
    fleet._environment["PYTHONPATH"] = f"{folder}{os.pathsep}{ROOT}"


def just_the_node(node):
    node.terminate()


def every_process(node):
    """As systemd does with KillMode=control-group."""
    for pid in [*node.workers(), node.pid]:
        os.kill(pid, signal.SIGTERM)


def ctrl_c(node):
    os.killpg(node.pid, signal.SIGINT)


@pytest.mark.parametrize("send", [just_the_node, every_process, ctrl_c])
def test_running_jobs_end_and_nothing_begins(fleet, shop, ledger, look, send):
    """SHUT-01, SHUT-03, DUP-07: no start after the signal + 100 ms, exit within 1 s after the last end, all told."""
    drains(fleet.start("-w", "2", "-c", "2", "--grace", "60"), shop, ledger, look, send)


def drains(node, shop, ledger, look, send):
    jobs = shop.app.enqueue_many([shop.nap.call(1) for _ in range(12)])
    wait_until(lambda: len(ledger.starts()) >= 4)
    told = time.monotonic()
    send(node)
    assert node.wait(20) == 0
    exited = time.monotonic()
    assert max(each.at for each in ledger.starts()) < told + 0.1
    ran = len(ledger.ends())
    assert ran == len(ledger.starts())
    assert exited - max(each.at for each in ledger.ends()) < 2  # promised: 1 s, on an idle machine
    states = [str(look.record(job).state) for job in jobs]
    assert (states.count("completed"), states.count("available")) == (ran, 12 - ran)
    assert sum(look.record(job).attempt for job in jobs) == ran


def test_without_uvloop_too(fleet, shop, ledger, look, tmp_path):
    """One of them here; all of them among the long ones."""
    plain(fleet, tmp_path)
    node = fleet.start("-w", "2", "-c", "2", "--grace", "60")
    assert shop.which_loop.enqueue().result(timeout=10).startswith("asyncio.")
    drains(node, shop, ledger, look, just_the_node)


def test_leases_are_renewed_to_the_end(fleet, shop, ledger, look):
    """SHUT-05: a drain of two leases, beside a node that would take what expires."""
    first = fleet.start(TASKQ_LEASE="4s")
    job = shop.nap.enqueue(7)
    wait_until(lambda: ledger.starts(job.id))
    fleet.start(TASKQ_LEASE="4s")
    first.terminate()
    assert first.wait(20) == 0
    assert look.record(job).state == "completed"
    assert (len(ledger.starts(job.id)), look.record(job).attempt) == (1, 1)


def test_the_grace_is_an_end(fleet, shop, ledger, look):
    """SHUT-11: exit at the deadline, not with 0, and the job is given back rather than left to its lease."""
    node = fleet.start("--grace", "2")
    job = shop.stubborn.enqueue()
    wait_until(lambda: ledger.starts(job.id))
    told = time.monotonic()
    node.terminate()
    assert node.wait(10) == 1
    assert 1.9 < time.monotonic() - told < 5  # promised: within 1 s of it, on an idle machine
    assert (look.record(job).state, look.record(job).attempt) == ("available", 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_means_now(fleet, shop, ledger, look, number):
    """SHUT-11."""
    node = fleet.start("--grace", "60")
    job = shop.stubborn.enqueue()
    wait_until(lambda: ledger.starts(job.id))
    node.signal(number)
    wait_until(lambda: "draining" in node.text())
    told = time.monotonic()
    node.signal(number)
    assert node.wait(10) == 1
    assert time.monotonic() - told < 2.5  # promised: 1 s, on an idle machine
    assert (look.record(job).state, look.record(job).attempt) == ("available", 0)
