"""A network that loses replies, swallows everything, or cuts: between the nodes and the server, never the callers."""

import random
import time

import pytest

from tests.chaos.proxy import Proxy
from tests.fleet import READY_S
from tests.waiting import wait_until


@pytest.fixture
def proxy(server_url):
    """What the nodes take for their server."""
    proxy = Proxy(int(server_url.rpartition(":")[2].partition("/")[0]))
    yield proxy
    proxy.close()


def test_lost_replies_lose_no_job_and_run_none_twice(fleet, shop, look, proxy):
    """Claims and finishes whose answer never came are sent again, and are answered as the first time."""
    fleet.start("-w", "2", "-c", "20", TASKQ_URL=proxy.url)
    jobs = []
    for _ in range(4):
        jobs += shop.app.enqueue_many([shop.nap.call(0.1) for _ in range(100)])
        proxy.mode = "deaf"
        time.sleep(0.5)
        look.conserve()
        proxy.cut()
        proxy.mode = "pass"
        time.sleep(0.5)
    look.until(jobs, "completed", 30)
    assert not look.ledger.more_than_once()
    assert {look.record(job).attempt for job in jobs} == {1}


def test_cuts_while_a_node_starts(fleet, shop, look, proxy):
    """CONN-01: its first questions, its workers' first claims; for a while nothing that begins comes to its end."""
    proxy.mode = "snap"
    node = fleet.begin("-w", "2", TASKQ_URL=proxy.url, TASKQ_DEADLINE="15s")
    wait_until(lambda: "worker started" in node.text(), READY_S)
    over = time.monotonic() + 4
    while time.monotonic() < over:
        proxy.mode = "pass" if proxy.mode == "snap" else "snap"
        proxy.cut()
        time.sleep(random.uniform(0, 0.3))
    proxy.mode = "pass"
    node.until_ready()
    jobs = shop.app.enqueue_many([shop.nap.call(0.1) for _ in range(100)])
    look.until(jobs, "completed", 15)
    assert not look.ledger.more_than_once()


@pytest.mark.long
@pytest.mark.timeout(120)
def test_half_open_connections_are_given_up(fleet, shop, look, proxy):
    """CONN-19: the peer vanished without a word, for less than a lease. Nothing is run twice, all goes on."""
    fleet.start("-w", "2", TASKQ_URL=proxy.url)
    before = fleet.pids()
    through = shop.app.enqueue_many([shop.nap.call(9), shop.nap.call(2)])
    look.until(through, "running")
    proxy.mode = "hole"
    time.sleep(6)
    proxy.mode = "pass"
    fresh = shop.app.enqueue_many([shop.nap.call(0) for _ in range(10)])
    look.until(fresh, "completed", 15)
    look.until(through, "completed", 20)
    assert not look.ledger.more_than_once()
    assert fleet.pids() == before
