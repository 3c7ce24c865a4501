"""Jobs that wait for their time: each runs once, none before it, and their number is nobody else's burden."""

import threading
import time
from datetime import UTC, datetime, timedelta

from taskq import commands, connection
from tests.waiting import wait_until


def test_a_delay_longer_than_two_leases(fleet, shop, ledger, look):
    """DUP-01: nobody holds what isn't due."""
    fleet.start("-w", "4", TASKQ_LEASE="4s")
    began_ms = look.now_ms()
    jobs = shop.app.enqueue_many([shop.nap.using(delay=9).call(0) for _ in range(20)])
    while look.now_ms() < began_ms + 8_500:
        assert look.leases() == 0
        time.sleep(0.2)
    look.until(jobs, "completed", 20)
    assert len(ledger.starts()) == 20
    assert not ledger.more_than_once()
    assert min(each.epoch for each in ledger.starts()) >= began_ms + 9_000


def test_everything_due_at_one_moment(fleet, shop, ledger, look, settings):
    """DUP-05: many promoters beside the nodes' own."""
    nodes = [fleet.begin("-w", "2") for _ in range(2)]
    for node in nodes:
        node.until_ready()
    at = datetime.now(UTC) + timedelta(seconds=3)
    jobs = shop.app.enqueue_many([shop.quick.using(at=at).call() for _ in range(2000)])
    over = threading.Event()

    def promote():
        mine = connection.connect(settings)
        while not over.is_set():
            connection.run(mine, commands.promote(look.q, limit=100))
        mine.close()

    promoters = [threading.Thread(target=promote) for _ in range(4)]
    for promoter in promoters:
        promoter.start()

    def counts():
        found = look.run(commands.counts(look.q))
        look.conserve()
        assert found.available + found.scheduled + found.running + found.completed == len(jobs)
        return found

    wait_until(lambda: counts().completed == len(jobs), 30)
    over.set()
    for promoter in promoters:
        promoter.join(10)
    assert not ledger.more_than_once()
    assert len(ledger.starts()) == len(jobs)
    first = min(ledger.starts(), key=lambda each: each.epoch)
    assert first.epoch >= at.timestamp() * 1000
