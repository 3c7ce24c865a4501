"""The server is killed and comes back with its append-only file: what runs goes on, and nothing is run again."""

import time

import pytest

from taskq.embedded import Embedded


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
