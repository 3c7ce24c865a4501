"""What the rows' own tests stand on: an app with a worker played by hand, and a queue whose clock the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from taskq import TaskQ
from taskq.keys import QueueKeys
from tests.client.conftest import Hand
from tests.lua.room import Room


@pytest.fixture
def app(server_url: str, namespace: str) -> Iterator[TaskQ]:
    """An app, as its users make it."""
    app = TaskQ(server_url, namespace=namespace)
    yield app
    app.close()


@pytest.fixture
def hand(run: Callable[..., Any], namespace: str) -> Hand:
    """The worker `hand-1.0`."""
    return Hand(run, namespace)


@pytest.fixture
def room(raw: redis.Redis, q: QueueKeys) -> Room:
    """The queue `default`, without an app."""
    return Room(raw, q)
