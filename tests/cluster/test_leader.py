"""Leaders that don't last, on three shards: `{_}` is on one, the jobs on all. One leads at a time, and each nominal
time of a schedule becomes one job, on another shard than the leader's record.
"""

from __future__ import annotations

import logging
import random
from functools import partial

import pytest

from taskq import connection
from taskq.keys import cluster as cluster_keys
from tests.chaos.conserve import Snapshot
from tests.chaos.history import History
from tests.chaos.load import Load
from tests.chaos.trial import judged
from tests.chaos.turnover import NAME, Cluster, Past, Strikes, each_once, killed_again_and_again
from tests.cluster.conftest import QUEUES
from tests.waiting import wait_until

log = logging.getLogger(__name__)
pytestmark = pytest.mark.timeout(400)
SERVED = ",".join(QUEUES)
LONG = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture
def registry(shards, namespace):
    """The shard that has `{_}`."""
    return shards.of(cluster_keys(namespace).prefix)


@pytest.fixture
def cluster(shop, shards, ledger, registry):
    elsewhere = next(queue for queue in QUEUES if shards.of(shop.q(queue).prefix) is not registry)
    run = partial(connection.run, shop.app.client.server)
    return Cluster(
        shop.app, shop.shop.quick, shop.fleet, ledger, registry=registry.client, run=run, queue=elsewhere
    )  # fmt: skip


@pytest.fixture
def history(cluster):
    history = History(cluster.registry, cluster.c, NAME)
    yield history
    history.close()


@pytest.mark.parametrize("seconds", [16, pytest.param(90, marks=LONG)])
def test_one_leads_at_a_time(cluster, history, shards, seconds):
    """However they stand still and lose their connections; who led once and speaks again is refused."""
    nodes = [cluster.fleet.begin("-q", SERVED, "-c", "5") for _ in range(5)]
    for node in nodes:
        node.until_ready()
    cluster.put()

    def cut(_):
        """Everybody's connections to a shard, in the middle of whatever they say."""
        client = random.choice(shards.all).client
        for each in client.client_list():
            if each["name"].startswith("taskq:"):
                client.client_kill_filter(_id=each["id"])
        return lambda: None

    past, strikes = Past(cluster), Strikes(cluster, cut)
    strikes.go_on(seconds, meanwhile=past.speaks)
    strikes.over()
    cluster.settle()
    past.speaks()
    times = each_once(cluster)
    told = history.judged()
    assert told.wrong == []
    assert set(told.fired) == set(cluster.nominals()), "what ran is not what was fired"
    log.info(
        "%s strikes, %s terms, %s times fired; %s calls of leaders accepted, %s refused, %s of them the test's",
        strikes.count, len(told.terms), times, told.accepted, told.refused, past.refused,
    )  # fmt: skip
    assert len(told.terms) > seconds // 15
    assert past.refused >= seconds // 15


@pytest.mark.parametrize("count, seconds", [(5_000, 15), pytest.param(50_000, 60, marks=LONG)])
def test_the_leader_is_killed_under_load(cluster, shop, shards, count, seconds):
    """While thousands of jobs run on every shard: none is lost, and none runs twice whose holder lived."""
    struck = set()

    def begin():
        cluster.fleet.begin("-q", SERVED, "-c", "50", TASKQ_LEASE="4s")

    def call(n):
        return shop.shop.nap.using(queue=QUEUES[n % len(QUEUES)]).call(0.5 if n % 10 == 0 else 0)

    for _ in range(4):
        begin()
    for node in cluster.fleet.nodes:
        node.until_ready()
    cluster.put()
    with Load(shop.enqueue_many, call, count, seconds):
        killed = killed_again_and_again(cluster, seconds, begin, struck)
    ids = shop.accepted
    wait_until(lambda: {each.job for each in shop.ledger.ends()} >= ids, 900, step_s=1, what="the end of all jobs")
    wait_until(lambda: not any(shop.leases(queue) for queue in QUEUES), 60, what="no lease")
    cluster.settle()
    times = each_once(cluster)
    records = {}
    for queue in QUEUES:
        q = shop.q(queue)
        records |= Snapshot(shards.of(q.prefix).client, q).jobs
    found = judged(ids, records, shop.ledger, struck)
    found.insist()
    log.info("%s leaders killed, %s jobs, %s run again, %s times fired", killed, len(ids), found.again, times)
    assert killed >= seconds // 9
