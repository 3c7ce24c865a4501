"""Leaders that don't last: five nodes that stand still and lose their connections, four of which the leader is killed
every few seconds under load. One leads at a time, and each nominal time of a schedule becomes one job.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from itertools import cycle

import pytest

from taskq import commands
from tests.chaos.history import History
from tests.chaos.load import Load
from tests.chaos.proxy import Proxy
from tests.chaos.turnover import NAME, Cluster, Past, Strikes, each_once, killed_again_and_again
from tests.waiting import wait_until

log = logging.getLogger(__name__)

NODES = 5
LONG = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture
def proxies(server_url):
    """One before each node."""
    port = int(server_url.rpartition(":")[2].partition("/")[0])
    proxies = [Proxy(port) for _ in range(NODES)]
    yield proxies
    for proxy in proxies:
        proxy.close()


@pytest.fixture
def url(server_url, proxies):
    """What everybody takes who is told nothing else; the proxies outlive the nodes."""
    return server_url


@pytest.fixture
def cluster(shop, fleet, ledger, raw, look):
    return Cluster(shop.app, shop.quick, fleet, ledger, registry=raw, run=look.run, queue="default")


@pytest.fixture
def history(cluster):
    history = History(cluster.registry, cluster.c, NAME)
    yield history
    history.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seconds", [16, pytest.param(90, marks=LONG)])
def test_one_leads_at_a_time(cluster, history, proxies, seconds):
    """However they stand still and are cut off; who led once and speaks again is refused."""
    # One after the other: all together, they and the proxies leave a busy machine no time to answer the first question.
    behind = {cluster.fleet.start("-c", "5", TASKQ_URL=proxy.url): proxy for proxy in proxies}
    cluster.put()
    modes = cycle(["hole", "snap", "deaf"])

    def cut(node):
        proxy = behind[node]
        proxy.mode = next(modes)
        return lambda: setattr(proxy, "mode", "pass")

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
    assert len(told.terms) > seconds // 9
    assert told.written > seconds // 9
    assert past.refused >= seconds // 9


@pytest.mark.timeout(400)
@pytest.mark.fault("SIGKILL of the leader, again and again")
@pytest.mark.parametrize("count, seconds", [(5_000, 15), pytest.param(50_000, 60, marks=LONG)])
def test_the_leader_is_killed_under_load(cluster, shop, trial, count, seconds):
    """While thousands of jobs run, and a schedule fires each second."""

    def begin():
        cluster.fleet.begin("-c", "50", TASKQ_LEASE="4s")

    for _ in range(4):
        begin()
    for node in cluster.fleet.nodes:
        node.until_ready()
    cluster.put()
    with Load(shop.app.enqueue_many, lambda n: shop.nap.call(0 if n % 10 else 0.5), count, seconds):
        killed = killed_again_and_again(cluster, seconds, begin, trial.struck)
    wait_until(trial.all_ended, 900, step_s=1, what="the end of all jobs")
    trial.over(60)
    cluster.settle()
    times = each_once(cluster)
    log.info("%s leaders killed, %s jobs, %s times fired", killed, len(trial.look.accepted), times)
    assert killed >= seconds // 9


@pytest.mark.timeout(400)
@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=LONG)])
def test_very_many_due_at_once_change_no_leader(cluster, shop, ledger, look, count):
    """LOCK-03: five nodes make them available together; each starts once, and whoever leads goes on leading."""
    nodes = [cluster.fleet.begin("-c", "50", TASKQ_LEASE="4s") for _ in range(NODES)]
    for node in nodes:
        node.until_ready()
    leader = wait_until(lambda: cluster.leads()[0] and cluster.leads(), 20)
    at = datetime.now(UTC) + timedelta(seconds=10 + count / 5_000)
    task = shop.quick.using(at=at)
    for _ in range(0, count, 250):
        shop.app.enqueue_many([task.call() for _ in range(250)])
    wait_until(lambda: look.run(commands.counts(look.q)).completed == count, 900, step_s=1)
    assert cluster.leads() == leader
    assert len(ledger.starts()) == count
    assert not ledger.more_than_once()
