"""The connections of one event loop: what lies idle, what blocks, what listens; in a cluster one set a node."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict, deque
from typing import TYPE_CHECKING

from taskq.connection.cluster import Place
from taskq.connection.dial import AsyncDial
from taskq.connection.listen import Listener

if TYPE_CHECKING:
    from redis.asyncio import Connection

#: Connections a loop holds for calls to a node at most; further calls wait their turn within their deadline.
CONNECTIONS_MAX = 32


class Wait:
    """A connection that blocks, its id there, and where that is: one for each queue in a cluster, else one in all."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.id = 0
        self.place: Place | None = None

    async def open(self, dial: AsyncDial, place: Place | None) -> Connection:
        """Connects, and asks what the server calls this connection."""
        self.place = place
        self.connection = connection = await dial.open(place, blocking=True)
        await connection.connect()
        await connection.send_command("CLIENT", "ID")
        self.id = await connection.read_response()
        return connection

    async def close(self) -> None:
        """Hangs up."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)


class Lines:
    """The connections of one event loop, by node; None is the one server, or the primary."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.idle: defaultdict[Place | None, deque[Connection]] = defaultdict(deque)
        self.turns: defaultdict[Place | None, asyncio.Semaphore] = defaultdict(_semaphore)
        self.listeners: dict[Place | None, Listener] = {}
        self.waits: defaultdict[str, Wait] = defaultdict(Wait)
        self.asking = asyncio.Lock()

    async def drop_idle(self, place: Place | None) -> None:
        """Hangs up what lies idle to a node."""
        for connection in self.idle.pop(place, ()):
            await connection.disconnect(nowait=True)

    async def leave_others(self, place: Place | None) -> None:
        """Hangs up what lies idle to where the primary was before."""
        for other in [each for each in self.idle if each != place]:
            await self.drop_idle(other)

    async def aclose(self) -> None:
        """Hangs up everything that no call is using."""
        for listener in self.listeners.values():
            await listener.aclose()
        for wait in self.waits.values():
            await wait.close()
        for idle in self.idle.values():
            for connection in idle:
                await connection.disconnect()


def _semaphore() -> asyncio.Semaphore:
    return asyncio.Semaphore(CONNECTIONS_MAX)
