"""CONN-05: the old primary lives on as a replica; who was connected to it leaves it, or waits until it takes writes."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
import redis

from taskq import TaskQ, Unavailable
from taskq.embedded import Embedded
from tests.chaos.proxy import Proxy
from tests.cluster.rig import rig
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(120)
GOES_ON_S = 5.0


async def test_a_demoted_primary_is_left_by_connections_that_lay_idle(site, namespace):
    """CONN-05, call by call: scripts are told READONLY, and the call goes on with the new primary."""
    app = TaskQ(site.url, namespace=namespace)
    task = app.by_name("t", queue="default")
    task.enqueue()
    await asyncio.gather(*(task.aenqueue() for _ in range(5)))  # several connections lie idle then
    site.fail_over()
    await asyncio.to_thread(site.until_switched)
    await asyncio.to_thread(site.demote)
    for _ in range(8):
        began = time.monotonic()
        assert (await task.aenqueue()).created
        assert task.enqueue().created
        assert time.monotonic() - began < GOES_ON_S
    assert app.inspector.counts("default").available == 6 + 16
    await app.aclose()
    app.close()


def test_one_server_is_demoted_and_promoted_again(server_binary, namespace):
    """CONN-05 without sentinels: plain REPLICAOF. Calls say so at their deadline, and go on by themselves."""
    with (
        Embedded(port=0, binary=server_binary) as other,
        Embedded(port=0, binary=server_binary) as server,
        redis.Redis.from_url(server.url) as raw,
    ):
        app = TaskQ(server.url, namespace=namespace, deadline="500ms")
        task = app.by_name("t", queue="default")
        task.enqueue()
        raw.replicaof("127.0.0.1", other.port)
        wait_until(lambda: raw.info("replication")["master_link_status"] == "up")
        with pytest.raises(Unavailable, match="read-only replica"):
            task.enqueue()
        raw.replicaof("no", "one")
        assert task.enqueue().created
        app.close()


class Pair:
    """A primary, its replica, and the address by which everybody knows the primary."""

    def __init__(self, binary):
        self.servers = [Embedded(port=0, binary=binary) for _ in range(2)]

    def __enter__(self):
        for server in self.servers:
            server.start()
        self.old, self.new = (redis.Redis.from_url(server.url) for server in self.servers)
        self.new.replicaof("127.0.0.1", self.servers[0].port)
        wait_until(lambda: self.new.info("replication")["master_link_status"] == "up")
        self.proxy = Proxy(self.servers[0].port)
        return self

    def __exit__(self, *_):
        self.proxy.close()
        for server in self.servers:
            server.stop()

    def swap(self):
        """The replica is promoted and the primary demoted, with nothing lost and no connection closed by us."""
        self.old.client_pause(5_000, all=False)
        heard = self.old.info("replication")["master_repl_offset"]
        wait_until(lambda: self.new.info("replication")["slave_repl_offset"] >= heard)
        self.new.replicaof("no", "one")
        self.old.replicaof("127.0.0.1", self.servers[1].port)
        self.old.client_unpause()
        wait_until(lambda: self.old.info("replication")["master_link_status"] == "up")


@pytest.fixture
def pair(server_binary):
    """The pair."""
    with Pair(server_binary) as pair:
        yield pair


class Caller(threading.Thread):
    """Adds a job every tenth of a second; keeps when each was answered, and what it was refused with."""

    def __init__(self, shop):
        super().__init__()
        self.shop, self.added, self.refused = shop, [], []
        self._over = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join()

    def run(self):
        while not self._over.is_set():
            try:
                self.added.append((self.shop.enqueue(self.shop.shop.nap, 0, queue="default"), time.monotonic()))
            except Unavailable as error:
                self.refused.append(str(error))
            self._over.wait(0.1)


@pytest.mark.parametrize("kind", ["pointed elsewhere", "promoted again"])
def test_nodes_and_callers_of_a_server_that_became_a_replica(pair, namespace, ledger, tmp_path, kind):
    """A plain REPLICAOF under a node: open connections to the replica are left, and nobody needs a restart."""
    serves = [pair.old]
    with rig(pair.proxy.url, namespace, ledger, tmp_path, lambda _: serves[0]) as shop:
        node = shop.fleet.start("-w", "2", "-c", "20")
        before = shop.fleet.pids()
        through = shop.enqueue_many(shop.shop.nap.call(7) for _ in range(5))
        shop.until(through, "running")
        with Caller(shop) as caller:
            wait_until(lambda: len(caller.added) > 5)
            pair.swap()
            if kind == "pointed elsewhere":
                pair.proxy.lead(pair.servers[1].port)
                serves[0] = pair.new
            else:
                time.sleep(6)  # longer than a call's deadline, shorter than a lease
                assert caller.refused
                pair.old.replicaof("no", "one")
            again = time.monotonic()
            wait_until(lambda: sum(at > again for _, at in caller.added) > 10, 30, what="calls that are answered")
        first = next(at for _, at in caller.added if at > again)
        assert first - again < GOES_ON_S
        jobs = [job for job, _ in caller.added]
        shop.until([*through, *jobs], timeout=30)
        began = {each.job: each.at for each in ledger.starts()}
        assert min(at for at in began.values() if at > again) - again < GOES_ON_S
        shop.ran_once([*through, *jobs])
        assert {record.attempt for record in shop.app.client.jobs([job.id for job in through])} == {1}
        assert len(caller.refused) <= 3
        assert all("read-only replica" in text for text in caller.refused)
        assert shop.fleet.pids() == before
        assert node.text().count("Redis is away") <= 8
        shop.conserve({"default"})
