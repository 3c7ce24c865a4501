"""The guide runs beside one real node, `taskq worker tests.guide.app`, on one server or on three shards. Only the
address comes from here. Nothing is emptied between its tests, as in life; at the end every key that is left has a TTL
or a reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from taskq.embedded import Embedded
from tests.cluster.shards import Shards
from tests.fleet import ROOT, Fleet, Node
from tests.guide.app import app
from tests.leaks import leaked
from tests.waiting import wait_until


@pytest.fixture(scope="session")
def guide_url(server_binary: str | None, shards_wanted: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The guide's server, or servers."""
    if shards_wanted > 1:
        shards = Shards(tmp_path_factory.mktemp("shards"), server_binary, shards_wanted).start()
        yield from _configured(shards.url, [shard.server.url for shard in shards.all])
        shards.close()
    else:
        with Embedded(port=0, binary=server_binary) as server:
            yield from _configured(server.url, [server.url])


def _configured(url: str, servers: list[str]) -> Iterator[str]:
    app.configure(url=url)
    yield url
    app.close()
    for each in servers:
        with redis.Redis.from_url(each) as client:
            assert leaked(client, "guide") == []


@pytest.fixture(scope="session")
def node(guide_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with one worker, for the whole guide."""
    fleet = Fleet(
        "tests.guide.app", folder=ROOT, environment={"TASKQ_URL": guide_url}, logs=tmp_path_factory.mktemp("node")
    )
    try:
        node = fleet.start()
        wait_until(app.inspector.queues, what="its queues, which it makes known beside its work")
        yield node
        node.terminate()
        assert node.wait() == 0, node.text()
        assert node.faults() == [], node.text()
    finally:
        fleet.close()


@pytest.fixture(autouse=True)
def _beside_a_node(node: Node) -> None:
    """Every test of the guide has its node."""
