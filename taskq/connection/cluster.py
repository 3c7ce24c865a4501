"""Redis Cluster: the library knows which shard holds a slot and follows a slot that moves; we pass it whole calls.

A marker can be waited for on one shard at a time, so `block` takes the keys of one queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from taskq.connection.dial import AsyncDial, Dial, SyncDial

if TYPE_CHECKING:
    import redis
    import redis.asyncio as redis_asyncio

_NOT_FOR_CLUSTERS = ("db", "host", "port", "retry", "lib_name", "lib_version", "driver_info")


def _options(dial: Dial, read_timeout_s: float) -> dict[str, Any]:
    options = dial.options(read_timeout_s=read_timeout_s, host="", port=0)
    for name in _NOT_FOR_CLUSTERS:
        options.pop(name)
    return options | {"ssl": dial.address.tls} if dial.address.tls else options


class SyncCluster:
    """Whole calls on the right shard."""

    def __init__(self, dial: SyncDial) -> None:
        from redis.cluster import ClusterNode, RedisCluster

        nodes = [ClusterNode(host, port) for host, port in dial.address.hosts]
        self._client: redis.RedisCluster = RedisCluster(startup_nodes=nodes, **_options(dial, dial.timeout_s))

    def execute(self, *words: Any) -> Any:
        """Sends one command; a script goes where its keys are."""
        return self._client.execute_command(*words)


class AsyncCluster:
    """Whole calls on the right shard, and markers to wait for."""

    def __init__(self, dial: AsyncDial) -> None:
        self._dial = dial
        self._client = self._connect()
        self._blocking: redis_asyncio.RedisCluster | None = None

    def _connect(self) -> redis_asyncio.RedisCluster:
        from redis.asyncio.cluster import ClusterNode, RedisCluster

        nodes = [ClusterNode(host, port) for host, port in self._dial.address.hosts]
        options = _options(self._dial, self._dial.timeout_s) | {"socket_timeout": None}  # why: see `aio`
        return RedisCluster(startup_nodes=nodes, **options)

    async def execute(self, *words: Any) -> Any:
        """Sends one command; a script goes where its keys are."""
        async with asyncio.timeout(self._dial.timeout_s):
            return await self._client.execute_command(*words)

    async def block(self, keys: Sequence[str], timeout_s: float) -> Any:
        """BZPOPMIN on the shard of these keys; the caller bounds it."""
        if self._blocking is None:
            self._blocking = self._connect()
        return await self._blocking.execute_command("BZPOPMIN", *keys, timeout_s)

    async def aclose(self) -> None:
        """Closes every connection."""
        await self._client.aclose()
        if self._blocking is not None:
            await self._blocking.aclose()
