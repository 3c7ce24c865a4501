"""The user that docs/servers.md describes is enough on three shards, also while a slot moves; and no less is."""

from __future__ import annotations

import pytest

from taskq import Unavailable
from taskq.connection.cluster import slot_of
from taskq.connection.needs import CLUSTER, LOOKING, NEEDED, rules
from tests.cluster.conftest import QUEUES
from tests.cluster.rig import rig
from tests.ledger import Ledger

SERVED = ",".join(QUEUES)
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def least(own, namespace):
    """`least("asking")` makes a user on each shard that may do what is documented but for that; the URL as it."""

    def least(*without):
        given = [each for each in (*NEEDED, *LOOKING, *CLUSTER) if each not in without]
        for shard in own.all:
            words = rules(namespace, given).split()
            shard.client.execute_command("ACL", "SETUSER", "least", "reset", "on", ">pw", *words)
        return own.url.replace("://", "://least:pw@")

    return least


@pytest.fixture
def shop_as(own, namespace, ledger: Ledger, tmp_path):
    """A block with the app and its nodes, which log in as the URL says: `shop_as(url)`."""
    return lambda url: rig(url, namespace, ledger, tmp_path, lambda q: own.of(q.prefix).client)


def test_jobs_of_every_shard(own, least, shop_as):
    with shop_as(least()) as shop:
        shop.fleet.start("-q", SERVED, "-w", "2")
        jobs = shop.enqueue_many(
            task.using(queue=queue).call(*args)
            for queue in QUEUES
            for task, args in ((shop.shop.nap, (0.1,)), (shop.shop.brittle, ()))
        )
        shop.until(jobs)
        fresh = own.of(shop.q("fresh").prefix)
        with (
            own.moving(slot_of(shop.q("fresh").prefix), own.other_than(fresh)),
            pytest.raises(Unavailable, match="during rehashing"),
        ):
            shop.enqueue(shop.shop.quick, queue="fresh")
        assert "cmdstat_asking" in own.other_than(fresh).client.info("commandstats")
        assert shop.enqueue(shop.shop.quick, queue="fresh").created
        shop.conserve([*QUEUES, "fresh"])


@pytest.mark.parametrize("missing", CLUSTER)
def test_without_one_of_the_clusters_commands_a_node_says_so(least, shop_as, missing):
    with shop_as(least(missing)) as shop:
        node = shop.fleet.begin("-q", SERVED, "--log-level", "critical", TASKQ_DEADLINE="2s")
        assert node.wait(40) == 1
        (line,) = node.text().splitlines()
        assert f"+{missing}" in line
