"""The connections of one event loop: what lies idle, what blocks, what listens; in a cluster one set a node."""

from __future__ import annotations

import asyncio
import os
import socket
import time
import weakref
from collections import defaultdict, deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING

from taskq.connection.cluster import Place
from taskq.connection.dial import AsyncDial
from taskq.connection.listen import Listener
from taskq.connection.turns import Turns

if TYPE_CHECKING:
    from redis.asyncio import Connection

#: Connections a loop holds for calls to a node at most; further calls wait their turn within their deadline.
CONNECTIONS_MAX = 32
#: One that wasn't needed for so long is closed, unless it is the last.
SPARE_S = 10.0


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


class _TurnsByPlace(defaultdict[Place | None, Turns]):
    def __init__(self, quiet_s: float) -> None:
        super().__init__(lambda: Turns(CONNECTIONS_MAX, quiet_s))


class Lines:
    """The connections of one event loop, by node; None is the one server, or the primary.

    They are closed with the loop: `asyncio.run` ends the generators that were begun on its loop before it closes it,
    so one of ours waits for that. `ended`: what is still used then isn't kept.
    """

    def __init__(self, quiet_s: float) -> None:
        self.pid = os.getpid()
        self.ended = False
        self.idle: defaultdict[Place | None, deque[Connection]] = defaultdict(deque)
        self._kept: weakref.WeakKeyDictionary[Connection, float] = weakref.WeakKeyDictionary()
        self.turns = _TurnsByPlace(quiet_s)
        self.listeners: dict[Place | None, Listener] = {}
        self.waits: defaultdict[str, Wait] = defaultdict(Wait)
        self.asking = asyncio.Lock()
        self._end = self._until_the_loop_ends()
        with suppress(StopIteration):  # as far as its yield: nothing is awaited before
            self._end.__anext__().send(None)

    async def keep(self, place: Place | None, connection: Connection) -> None:
        """Lays a connection by for the next call."""
        if self.ended:
            await connection.disconnect(nowait=True)
        else:
            idle, now = self.idle[place], time.monotonic()
            idle.append(connection)
            self._kept[connection] = now
            # The last laid by is taken first, so that what a busy time left over is the first to go.
            if len(idle) > 1 and now - self._kept[idle[0]] > SPARE_S:
                await idle.popleft().disconnect(nowait=True)

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
        await self._hang_up()
        with suppress(RuntimeError):  # the loop is at it already
            await self._end.aclose()

    def abandon(self) -> None:
        """Hangs up on a loop that is closed, and can do nothing any more."""
        self.ended = True
        for wait in self.waits.values():
            if wait.connection is not None:
                hang_up_at_once(wait.connection)
        while self.idle:
            _, idle = self.idle.popitem()
            for connection in idle:
                hang_up_at_once(connection)

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            if self.pid == os.getpid():
                await self._hang_up()

    async def _hang_up(self) -> None:
        self.ended = True
        for listener in self.listeners.values():
            await listener.aclose()
        for wait in self.waits.values():
            await wait.close()
        while self.idle:
            _, idle = self.idle.popitem()
            for connection in idle:
                await connection.disconnect()


def hang_up_at_once(connection: Connection) -> None:
    """Closes the socket of a connection whose loop is closed. That loop would have to be called for the last step."""
    writer, connection._writer, connection._reader = connection._writer, None, None  # noqa: SLF001
    if writer is None:
        return
    line = writer.transport.get_extra_info("socket")
    with suppress(Exception):
        line.shutdown(socket.SHUT_RDWR)
    with suppress(Exception):
        writer.transport.abort()
    with suppress(Exception):
        writer.transport._call_connection_lost(None)  # type: ignore[attr-defined] # noqa: SLF001
