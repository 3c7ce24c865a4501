"""CHEAP, as far as chaos can ask: nobody walks the keyspace, counted over every restart of the server.

A server forgets its statistics when it is killed, so they are read just before. What the tests themselves look at in
this way is a snapshot, and one call of KEYS each.
"""

from __future__ import annotations

import redis

from taskq.embedded import Embedded
from tests.chaos.conserve import Snapshot

_WALKS = ("cmdstat_keys", "cmdstat_scan")


class Walks:
    """Counts KEYS and SCAN on one server from now on."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        client.config_resetstat()
        self._before_restarts = 0
        self._snapshots = Snapshot.taken

    def keep(self) -> None:
        """The server is about to forget."""
        self._before_restarts += self._told()

    def insist(self) -> None:
        """Nobody did but the tests' snapshots."""
        walks, ours = self._before_restarts + self._told(), Snapshot.taken - self._snapshots
        assert walks <= ours, f"somebody called KEYS or SCAN: {walks} times, of which snapshots are {ours}"

    def _told(self) -> int:
        stats = self._client.info("commandstats")
        return sum(stats.get(name, {"calls": 0})["calls"] for name in _WALKS)


class Struck(Embedded):
    """A server that tests kill; `walks` is told just before."""

    walks: Walks | None = None

    def kill(self) -> None:
        """As `Embedded.kill`."""
        if self.walks is not None:
            self.walks.keep()
        super().kill()
