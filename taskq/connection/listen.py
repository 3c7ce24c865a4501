"""Hearing that jobs ended: one subscribed connection an event loop, however many wait.

A notification is a hint. If the connection breaks, every waiter is told to look for itself, and the next one who
listens opens it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from taskq.connection.cluster import Place
from taskq.connection.dial import AsyncDial

if TYPE_CHECKING:
    from redis.asyncio import Connection


class Channel:
    """One waiter's ear."""

    def __init__(self) -> None:
        self._heard = asyncio.Event()

    def tell(self) -> None:
        """Something was published, or might have been."""
        self._heard.set()

    async def wait(self, timeout_s: float) -> bool:
        """Whether something was published within the time. Seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._heard.wait()
        except TimeoutError:
            return False
        self._heard.clear()
        return True


class Listener:
    """The subscriptions of one event loop, at the server or at one node of a cluster (`at`)."""

    def __init__(self, dial: AsyncDial, at: Place | None = None) -> None:
        self._dial = dial
        self._at = at
        self._ears: dict[str, set[Channel]] = {}
        self._subscribed: dict[str, asyncio.Event] = {}
        self._connection: Connection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def channel(self, name: str) -> AsyncIterator[Channel]:
        """Subscribed while inside; the last one who leaves a channel ends its subscription."""
        ear = Channel()
        self._ears.setdefault(name, set()).add(ear)
        try:
            await self._subscribe(name)
            yield ear
        finally:
            ears = self._ears[name]
            ears.discard(ear)
            if not ears:
                del self._ears[name]
                self._subscribed.pop(name, None)
                await self._send("UNSUBSCRIBE", name)

    async def aclose(self) -> None:
        """Ends all subscriptions with their connection."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        if self._connection is not None:
            await self._connection.disconnect(nowait=True)
            self._connection = None

    async def _subscribe(self, name: str) -> None:
        async with self._lock:
            if self._reader is None or self._reader.done():
                await self._open()
            if name in self._subscribed:
                confirmed = self._subscribed[name]
            else:
                confirmed = self._subscribed[name] = asyncio.Event()
                await self._send("SUBSCRIBE", name)
        try:
            async with asyncio.timeout(self._dial.timeout_s):
                await confirmed.wait()
        except TimeoutError:
            pass  # the caller looks from time to time anyway

    async def _open(self) -> None:
        import redis.exceptions as redis_errors

        self._subscribed.clear()
        try:
            async with asyncio.timeout(self._dial.timeout_s):
                connection = await self._dial.open(self._at, blocking=True)
                await connection.connect()
        except (redis_errors.RedisError, OSError, TimeoutError):
            return
        self._connection = connection
        self._reader = asyncio.create_task(self._read(connection), name="taskq-listener")
        for other in self._ears:
            self._subscribed[other] = asyncio.Event()
            await self._send("SUBSCRIBE", other)

    async def _send(self, *words: str) -> None:
        import redis.exceptions as redis_errors

        if self._connection is None:
            return
        try:
            await self._connection.send_command(*words)
        except (redis_errors.RedisError, OSError):
            self._connection = None

    async def _read(self, connection: Connection) -> None:
        import redis.exceptions as redis_errors

        try:
            while True:
                kind, name, *_ = await connection.read_response()
                channel = name.decode() if name else ""
                if kind == b"subscribe" and channel in self._subscribed:
                    self._subscribed[channel].set()
                elif kind == b"message":
                    for ear in self._ears.get(channel, ()):
                        ear.tell()
        except (redis_errors.RedisError, OSError):
            pass
        finally:
            if self._connection is connection:
                self._connection = None
            await connection.disconnect(nowait=True)
            for confirmed in self._subscribed.values():
                confirmed.set()
            for ears in self._ears.values():
                for ear in ears:
                    ear.tell()
