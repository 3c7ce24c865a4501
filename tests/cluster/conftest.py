"""Three shards for this folder; what kills or moves one of them has three of its own (`own`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from taskq import TaskQ
from taskq.embedded import Embedded
from taskq.keys import QueueKeys
from tests.cluster.rig import Rig, rig
from tests.cluster.shards import Shards
from tests.leaks import leaked
from tests.ledger import Ledger

FOLDER = Path(__file__).parent
#: Enough that every shard has several.
QUEUES = [f"q{n}" for n in range(9)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here runs with `make cluster`."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.cluster)
    # In whatever order they were: what takes a minute to show itself is looked at last of its file.
    places = [place for place, item in enumerate(items) if item.path == FOLDER / "test_whose_turn.py"]
    ordered = sorted((items[place] for place in places), key=lambda item: item.name == "test_a_target_that_died")
    for place, item in zip(places, ordered, strict=True):
        items[place] = item


@pytest.fixture(scope="session")
def _shards(tmp_path_factory: pytest.TempPathFactory, server_binary: str | None) -> Iterator[Shards]:
    shards = Shards(tmp_path_factory.mktemp("cluster"), server_binary)
    yield shards.start()
    shards.close()


@contextmanager
def emptied(shards: Shards, namespace: str) -> Iterator[Shards]:
    """The shards; emptied after the block, when each key left has a TTL or a reason, and as they were."""
    yield shards
    found = [line for shard in shards.all for line in leaked(shard.client, namespace)]
    for shard in shards.all:
        shard.client.flushall()
    shards.put_back()
    assert not found, "\n".join(["keys leaked:", *found])


@pytest.fixture
def shards(_shards: Shards, namespace: str) -> Iterator[Shards]:
    """The shards, for one test."""
    with emptied(_shards, namespace) as shards:
        yield shards


@pytest.fixture
def own(tmp_path: Path, server_binary: str | None) -> Iterator[Shards]:
    """Three shards of this test's own."""
    shards = Shards(tmp_path, server_binary)
    yield shards.start()
    shards.close()


@pytest.fixture(scope="session")
def _ledger() -> Iterator[Ledger]:
    with Embedded(port=0) as server:
        ledger = Ledger(server.url)
        yield ledger
        ledger.close()


@pytest.fixture
def ledger(_ledger: Ledger) -> Ledger:
    """The ledger, empty."""
    _ledger.clear()
    return _ledger


@pytest.fixture
def app(shards: Shards, namespace: str) -> Iterator[TaskQ]:
    """An app on the three shards."""
    app = TaskQ(shards.url, namespace=namespace)
    yield app
    app.close()


@contextmanager
def rig_on(shards: Shards, namespace: str, ledger: Ledger, logs: Path) -> Iterator[Rig]:
    """The app with nodes on these shards; at the end of the block CONSERVE holds in every queue that was used."""

    def client_of(q: QueueKeys):
        return shards.of(q.prefix).client

    with rig(shards.url, namespace, ledger, logs, client_of) as made:
        yield made
        made.conserve({id.partition(":")[0] for id in made.accepted})


@pytest.fixture
def shop(shards: Shards, namespace: str, ledger: Ledger, tmp_path: Path) -> Iterator[Rig]:
    """The app with nodes, on the three shards."""
    with rig_on(shards, namespace, ledger, tmp_path) as shop:
        yield shop


@pytest.fixture
def own_shop(own: Shards, namespace: str, ledger: Ledger, tmp_path: Path) -> Iterator[Rig]:
    """The app with nodes, on three shards of the test's own."""
    with rig_on(own, namespace, ledger, tmp_path) as shop:
        yield shop
