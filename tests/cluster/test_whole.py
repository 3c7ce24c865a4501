"""The simulation of everything under `{_}` and its queues, on three real shards: the registry is on one, each queue on
another, and no script may touch two.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from taskq import keys
from tests.cluster.shards import Shards
from tests.simulation.test_simulation import chosen_seed
from tests.simulation.test_whole import histories
from tests.simulation.whole import QUEUES


class Across:
    """One client of all shards, as histories use one: each command goes to the shard of its key."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._of: dict[str, Any] = {}
        self.asked: set[int] = set()

    def eval(self, source: str, number: int, *rest: Any) -> Any:
        """A script; all its keys are on the shard of the first, or that refuses it."""
        return self._client(rest[0]).eval(source, number, *rest)

    def scan_iter(self, pattern: str, count: int | None = None) -> Iterator[bytes]:
        """The keys of all."""
        return itertools.chain.from_iterable(each.client.scan_iter(pattern, count) for each in self._shards.all)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda key, *rest: getattr(self._client(key), name)(key, *rest)

    def _client(self, key: str | bytes) -> Any:
        text = key if isinstance(key, str) else key.decode()
        tag = text[text.index("{") : text.index("}") + 1]
        if tag not in self._of:
            shard = self._shards.of(tag)
            self._of[tag] = shard.client
            self.asked.add(shard.port)
        return self._of[tag]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [4, pytest.param(100, marks=[pytest.mark.long, pytest.mark.timeout(0)])])
def test_everything_together_on_three_shards(shards, number):
    prefixes = [keys.cluster("t").prefix, *(keys.queue("t", queue).prefix for queue in QUEUES)]
    assert len({shards.of(prefix).port for prefix in prefixes}) == 3, "the queues' names leave a shard out"
    client = Across(shards)
    found = histories(client, number, 80, chosen_seed())
    assert client.asked == {shard.port for shard in shards.all}
    assert found["terms"] > number
    assert found["made"] > number
