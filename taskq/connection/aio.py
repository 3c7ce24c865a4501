"""The async face: one set of connections an event loop, cancelled calls close theirs.

A connection whose call was cancelled after sending has a reply on its way; if it went back, the next caller would get
somebody else's answer.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from hiredis import pack_command

from taskq.commands.command import Command
from taskq.connection.dial import AsyncDial
from taskq.connection.listen import Channel, Listener
from taskq.connection.patience import Patience
from taskq.connection.translate import failures, lost_script, moved_primary, passing, translated
from taskq.errors import Unavailable
from taskq.settings import Settings

if TYPE_CHECKING:
    from redis.asyncio import Connection

T = TypeVar("T")

#: Connections a loop holds for calls at most; further calls wait their turn within their deadline.
CONNECTIONS_MAX = 32
#: How much longer than a blocking command its answer may take.
_BLOCK_MARGIN_S = 3.0


class _Lines:
    """The connections of one event loop."""

    def __init__(self, dial: AsyncDial) -> None:
        self.pid = os.getpid()
        self.idle: deque[Connection] = deque()
        self.places = asyncio.Semaphore(CONNECTIONS_MAX)
        self.listener = Listener(dial)
        self.blocked: Connection | None = None
        self.blocked_id: int | None = None
        self.cluster: Any = None


class AsyncServer:
    """A server, for coroutines. Usable from several event loops; each has connections of its own."""

    def __init__(self, settings: Settings, *, role: str = "client") -> None:
        self.settings = settings
        self._dial = AsyncDial(settings, role)
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Lines] = weakref.WeakKeyDictionary()

    @property
    def where(self) -> str:
        """The server as messages name it; no password."""
        return self._dial.where

    async def run(self, command: Command[T], *, deadline_s: float | None = None) -> T:
        """See `taskq.connection.run`."""
        return command.read(await self._persist(lambda: self._call(command), deadline_s))

    async def run_many(self, commands: Sequence[Command[T]], *, deadline_s: float | None = None) -> list[T]:
        """See `taskq.connection.run_many`."""
        replies: list[Any] = [None] * len(commands)
        open_: list[int] = list(range(len(commands)))

        async def step() -> None:
            nonlocal open_
            open_ = await self._exchange(commands, open_, replies)
            for index in list(open_):  # what a pipeline could not answer is asked again, each by itself
                replies[index] = await self._call(commands[index])
                open_.remove(index)

        await self._persist(step, deadline_s)
        return [command.read(reply) for command, reply in zip(commands, replies, strict=True)]

    async def ping(self, *, deadline_s: float | None = None) -> bool:
        """Whether the server answers.

        Raises:
            Unavailable: it does not, within the deadline.
        """
        return bool(await self._persist(lambda: self._send("PING"), deadline_s) == b"PONG")

    async def block(self, keys: Sequence[str], timeout_s: float) -> str | None:
        """Waits for a marker on one of the keys and takes it; None if none came in time or `unblock` was called.

        Runs on a connection of its own, one call at a time. In a cluster all keys must be of one queue.

        Raises:
            Unavailable: the connection broke.
        """
        lines = self._lines()
        try:
            async with asyncio.timeout(timeout_s + _BLOCK_MARGIN_S):
                if self._dial.address.kind == "cluster":
                    reply = await self._shards(lines).block(keys, timeout_s)
                else:
                    connection = await self._blocking(lines)
                    await connection.send_command("BZPOPMIN", *keys, timeout_s)
                    reply = await connection.read_response()
        except BaseException as error:
            if lines.blocked is not None:
                await lines.blocked.disconnect(nowait=True)
                lines.blocked = lines.blocked_id = None
            if isinstance(error, Exception):
                raise translated(error, self.where) from error
            raise
        return reply[0].decode() if reply else None

    async def unblock(self) -> None:
        """Lets a `block` that is under way return at once. Without one it does nothing."""
        lines = self._lines()
        if lines.blocked_id is not None:
            await self._persist(lambda: self._send("CLIENT", "UNBLOCK", lines.blocked_id, "TIMEOUT"), None)

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[Channel]:
        """Hears what is published on a channel from the moment this is entered. All channels share a connection."""
        async with self._lines().listener.channel(channel) as heard:
            yield heard

    async def aclose(self) -> None:
        """Closes this loop's connections. The handle can be used again; it opens new ones then."""
        lines = self._loops.pop(asyncio.get_running_loop(), None)
        if lines is None or lines.pid != os.getpid():
            return
        await lines.listener.aclose()
        if lines.cluster is not None:
            await lines.cluster.aclose()
        for connection in (*lines.idle, lines.blocked):
            if connection is not None:
                await connection.disconnect()

    def _lines(self) -> _Lines:
        loop = asyncio.get_running_loop()
        lines = self._loops.get(loop)
        if lines is None or lines.pid != os.getpid():
            lines = self._loops[loop] = _Lines(self._dial)
        return lines

    async def _persist(self, attempt: Callable[[], Awaitable[Any]], deadline_s: float | None) -> Any:
        """Tries until it works, the error won't pass, or the deadline is over."""
        patience = Patience(self.settings.deadline_ms / 1000 if deadline_s is None else deadline_s)
        while True:
            try:
                return await attempt()
            except failures() as error:
                pause_s = patience.pause_s() if passing(error) else None
                if pause_s is None:
                    raise translated(error, self.where) from error
                if moved_primary(error):
                    await self._drop_idle()
                await asyncio.sleep(pause_s)

    async def _drop_idle(self) -> None:
        idle = self._lines().idle
        while idle:
            await idle.pop().disconnect(nowait=True)

    async def _call(self, command: Command[Any]) -> Any:
        script = command.script
        try:
            return await self._send("EVALSHA", script.sha, len(command.keys), *command.keys, *command.args)
        except Exception as error:
            if not lost_script(error):
                raise
        return await self._send("EVAL", script.source, len(command.keys), *command.keys, *command.args)

    async def _send(self, *words: Any) -> Any:
        if self._dial.address.kind == "cluster":
            return await self._shards(self._lines()).execute(*words)
        async with self._line() as connection:
            # hiredis packs six times faster than the library, whose async face doesn't use it: 3 µs a job of a batch.
            await connection.send_packed_command(pack_command(words))
            return await connection.read_response()

    async def _exchange(self, commands: Sequence[Command[Any]], asked: list[int], replies: list[Any]) -> list[int]:
        """Sends the asked ones together; returns those that need another try."""
        import redis.exceptions as redis_errors

        if self._dial.address.kind == "cluster" or len(asked) == 1:
            return asked
        again: list[int] = []
        async with self._line() as connection:
            words: list[Any] = [
                ("EVALSHA", each.script.sha, len(each.keys), *each.keys, *each.args)
                for each in (commands[index] for index in asked)
            ]
            await connection.send_packed_command(b"".join(map(pack_command, words)))
            for index in asked:
                try:
                    replies[index] = await connection.read_response()
                except redis_errors.ResponseError:
                    again.append(index)
        return again

    @asynccontextmanager
    async def _line(self) -> AsyncIterator[Connection]:
        """A connection for one exchange; kept afterwards only if nothing can still arrive on it."""
        import redis.exceptions as redis_errors

        lines = self._lines()
        try:
            async with asyncio.timeout(self._dial.timeout_s):
                await lines.places.acquire()
        except TimeoutError:
            raise Unavailable(
                f"{CONNECTIONS_MAX} calls to {self.where} are under way and none ended within {self._dial.timeout_s} s"
            ) from None
        try:
            connection = lines.idle.pop() if lines.idle else await self._dial.open()
            try:
                # The library would bound each write by asyncio.wait_for, which before Python 3.12 swallows a cancel
                # that comes as the write ends (measured: every tenth one): a waiter that nobody could stop.
                async with asyncio.timeout(self._dial.timeout_s):
                    yield connection
            except redis_errors.ResponseError as error:
                if moved_primary(error):
                    await connection.disconnect(nowait=True)
                else:
                    lines.idle.append(connection)
                raise
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            lines.idle.append(connection)
        finally:
            lines.places.release()

    async def _blocking(self, lines: _Lines) -> Connection:
        if lines.blocked is None:
            connection = await self._dial.open(blocking=True)
            lines.blocked = connection
            await connection.connect()
            await connection.send_command("CLIENT", "ID")
            lines.blocked_id = await connection.read_response()
        return lines.blocked

    def _shards(self, lines: _Lines) -> Any:
        from taskq.connection.cluster import AsyncCluster

        if lines.cluster is None:
            lines.cluster = AsyncCluster(self._dial)
        return lines.cluster
