"""A site of sentinels for each test: what a failover did to one is no ground for the next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from taskq.embedded import Embedded
from taskq.keys import QueueKeys
from tests.cluster.rig import Rig, rig
from tests.ledger import Ledger
from tests.sentinel.site import Site

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here runs with `make cluster`."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture
def site(tmp_path: Path, server_binary: str | None) -> Iterator[Site]:
    """One primary, two replicas, three sentinels."""
    site = Site(tmp_path / "site", server_binary)
    try:
        yield site.start()
    finally:
        site.close()


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
def shop(site: Site, namespace: str, ledger: Ledger, tmp_path: Path) -> Iterator[Rig]:
    """The app with nodes, found through the sentinels; CONSERVE at the end, on the primary of then."""

    def client_of(_: QueueKeys):
        return site.clients[site.primary()]

    with rig(site.url, namespace, ledger, tmp_path, client_of) as made:
        yield made
        made.conserve({"default"})
