"""Schedules on three shards: `{_}` is on one, the queues on all; what fires travels, and a shard that is away delays no
other.
"""

from __future__ import annotations

import itertools

import pytest

from taskq.schedules.template import job_id
from tests.cluster.conftest import QUEUES

pytestmark = pytest.mark.timeout(150)


def nominals(ledger, name, queue):
    opening = job_id(queue, name, "due", 0)[:-1]
    return sorted(int(entry.job.removeprefix(opening)) for entry in ledger.starts() if entry.job.startswith(opening))


def put(shop, queue):
    shop.app.schedules.put(f"to-{queue}", shop.shop.quick.using(queue=queue), every=1, missed="all")


def without_gap(ran):
    assert {after - before for before, after in itertools.pairwise(ran)} == {1000}, ran


def test_every_queue_gets_each_time_once_on_whichever_shard_it_is(shop, ledger):
    shop.fleet.start("-q", ",".join(QUEUES))
    for queue in QUEUES:
        put(shop, queue)
    shop.wait(lambda: all(len(nominals(ledger, f"to-{queue}", queue)) >= 6 for queue in QUEUES), 40)
    by_hand = shop.app.schedules.run("to-q3")
    assert by_hand.state == "fired"
    assert shop.app.job(by_hand.job).join(timeout=10) == "completed"
    for queue in QUEUES:
        without_gap(nominals(ledger, f"to-{queue}", queue))


def test_while_a_shard_is_away_its_firings_wait_and_no_others(own_shop, own, ledger):
    shop = own_shop
    registry = own.of(f"{shop.namespace}:{{_}}:")
    away = next(queue for queue in QUEUES if own.of(shop.q(queue).prefix) is not registry)
    near = next(queue for queue in QUEUES if own.of(shop.q(queue).prefix) is registry)
    shop.fleet.start("-q", f"{near},{away}")
    for queue in (near, away):
        put(shop, queue)
    shop.wait(lambda: all(nominals(ledger, f"to-{queue}", queue) for queue in (near, away)), 40)
    own.of(shop.q(away).prefix).server.kill()
    seen = len(nominals(ledger, f"to-{near}", near))
    shop.wait(lambda: len(nominals(ledger, f"to-{near}", near)) >= seen + 6, 40)
    own.of(shop.q(away).prefix).start()
    seen = len(nominals(ledger, f"to-{away}", away))
    shop.wait(lambda: len(nominals(ledger, f"to-{away}", away)) >= seen + 10, 60)
    without_gap(sorted(set(nominals(ledger, f"to-{near}", near))))
    without_gap(sorted(set(nominals(ledger, f"to-{away}", away))))
