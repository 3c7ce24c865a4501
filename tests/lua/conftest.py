"""Every test of a script gets a room: one queue on a real server, with a clock that only the test moves."""

from __future__ import annotations

import pytest
import redis

from taskq.keys import QueueKeys
from tests.lua.room import Room


@pytest.fixture
def room(raw: redis.Redis, q: QueueKeys) -> Room:
    return Room(raw, q)
