"""A node's start on a server that it can work with, but not well: it says so, once, and begins. And its idle life."""

import time

import pytest
import redis

from tests.fleet import Fleet
from tests.waiting import wait_until

SHOP = """
from taskq import TaskQ
app = TaskQ()

@app.task
async def add(a, b):
    return a + b
"""


@pytest.fixture
def fleet(tmp_path, namespace):
    (tmp_path / "shop.py").write_text(SHOP)
    fleet = Fleet("shop", folder=tmp_path, environment={"TASKQ_NAMESPACE": namespace}, logs=tmp_path)
    yield fleet
    fleet.close()


def warnings(node):
    return [line for line in node.text().splitlines() if "[warning" in line or "[error" in line]


def test_a_server_as_recommended_is_worth_no_word(fleet, serve, tmp_path):
    node = fleet.begin("--url", serve(tmp_path / "data", appendonly=True).url).until_ready()
    assert warnings(node) == []


def test_what_may_lose_jobs_is_warned_of(fleet, serve, tmp_path):
    server = serve(tmp_path / "data", maxmemory="100mb", maxmemory_policy="allkeys-lru")
    node = fleet.begin("--url", server.url, "-w", "2").until_ready()
    evicts, forgets = sorted(warnings(node))
    assert "maxmemory-policy is allkeys-lru" in evicts
    assert "noeviction" in evicts
    assert "nothing is written down" in forgets


def test_a_server_of_taskq_dev_is_known_to_forget(fleet, serve):
    assert warnings(fleet.begin("--url", serve().url).until_ready()) == []


def test_no_worker_claims_before_the_server_was_looked_at(fleet, serve, tmp_path):
    """One that can't be worked with has nothing half done on it."""
    server = serve()
    with redis.Redis(port=server.port) as admin:
        admin.execute_command("ACL", "SETUSER", "u", "on", ">p", "allkeys", "allchannels", "+@all", "-xtrim")
        node = fleet.begin("--url", f"redis://u:p@127.0.0.1:{server.port}")
        assert node.wait(30) == 1
        assert admin.dbsize() == 0
    assert "ACL SETUSER u +xtrim" in node.text()


def test_an_idle_worker_says_nothing(fleet, serve, tmp_path):
    """CONN-03: a wait that is longer than any time-out of a call is no error."""
    server = serve(tmp_path / "data", appendonly=True)
    node = fleet.begin("--url", server.url, TASKQ_DEADLINE="1s").until_ready()
    with redis.Redis(port=server.port) as admin:
        pids = node.workers()
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() - begun > 10, 15)  # several waits, each longer than the deadline
        assert warnings(node) == []
        assert node.workers() == pids
        assert admin.info("stats")["rejected_connections"] == 0
