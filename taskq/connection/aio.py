"""The async face: one set of connections an event loop, and in a cluster one a node; cancelled calls close theirs.

A connection whose call was cancelled after sending has a reply on its way; if it went back, the next caller would get
somebody else's answer.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 # can't be imported first while Python exits, when handlers still enqueue
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from taskq.commands.command import Command
from taskq.connection import wire
from taskq.connection.cluster import REDIRECTS_MAX, Place, Route
from taskq.connection.dial import GREETING_S, AsyncDial
from taskq.connection.durable import Wanted, missing
from taskq.connection.failed import Failed
from taskq.connection.lines import CONNECTIONS_MAX, Lines, Wait
from taskq.connection.listen import Channel, Listener
from taskq.connection.login import login_of
from taskq.connection.patience import Patience, soonest
from taskq.connection.translate import failures, lost_script, moved_primary, translated
from taskq.connection.turns import Stuck, Turns
from taskq.connection.where import HERE, AsyncWhere
from taskq.errors import Unavailable
from taskq.settings import Settings

if TYPE_CHECKING:
    from redis.asyncio import Connection

T = TypeVar("T")

#: How much longer than a blocking command its answer may take.
_BLOCK_MARGIN_S = 3.0
_BLOCK_MIN_S = 0.01  # Redis 6.2 cuts a millisecond down to 0, which means for ever
#: Where a replica may have taken over meanwhile, a wait is short: it is noticed that the one we wait at fell silent.
_BLOCK_MAX_S, _BLOCK_MAX_MARGIN_S = 2.0, 1.5
_ON_THE_MOVE_S = 0.25


class AsyncServer:
    """A server, for coroutines. Usable from several event loops; each has connections of its own."""

    def __init__(self, settings: Settings, *, role: str = "client") -> None:
        self.settings = settings
        self._dial = AsyncDial(settings, role)
        self._login = login_of(settings, role)
        self._where = AsyncWhere(self._dial)
        self._loops: dict[asyncio.AbstractEventLoop, Lines] = {}

    @property
    def where(self) -> str:
        """The server as messages name it; no password."""
        return self._dial.where

    def away(self, key: str) -> object:
        """What serves this key, if the last we heard of it is that it doesn't answer; else None. Known in clusters."""
        return self._where.away(key)

    async def run(self, command: Command[T], *, deadline_s: float | None = None) -> T:
        """See `taskq.connection.run`."""
        if self._login is not None and self._login.doubtful((command.script,)):
            await asyncio.to_thread(self._login.check, (command.script,), deadline_s)
        return command.read(
            await self._persist(lambda patience: self._call(command, patience), deadline_s, command.resend_s)
        )

    async def run_many(self, commands: Sequence[Command[T]], *, deadline_s: float | None = None) -> list[T]:
        """See `taskq.connection.run_many`."""
        if self._login is not None:
            scripts = [command.script for command in commands]
            if self._login.doubtful(scripts):
                await asyncio.to_thread(self._login.check, scripts, deadline_s)
        replies: list[Any] = [None] * len(commands)
        open_: list[int] = list(range(len(commands)))

        async def step(patience: Patience) -> None:
            if len(open_) > 1:
                await self._exchange(commands, open_, replies, patience)
            for index in list(open_):  # what a pipeline could not answer is asked again, each by itself
                replies[index] = await self._call(commands[index], patience)
                open_.remove(index)

        await self._persist(step, deadline_s, soonest(command.resend_s for command in commands))
        return [command.read(reply) for command, reply in zip(commands, replies, strict=True)]

    async def ping(self, *, deadline_s: float | None = None) -> bool:
        """Whether the server answers.

        Raises:
            Unavailable: it does not, within the deadline.
        """
        return bool(await self._persist(lambda patience: self._send(None, ("PING",), patience), deadline_s) == b"PONG")

    async def block(self, keys: Sequence[str], timeout_s: float) -> str | None:
        """Waits for a marker on one of the keys and takes it; None if none came in time or `unblock` was called.

        Runs on a connection of its own, one call at a time. In a cluster all keys must be of one queue, and each queue
        may be waited for beside the others.

        Raises:
            Unavailable: the connection broke.
        """
        wait = self._lines().waits[self._where.group(keys[0])]
        timeout_s = max(timeout_s, _BLOCK_MIN_S)
        margin_s = _BLOCK_MARGIN_S
        if self._where.kind != "single":
            timeout_s, margin_s = min(timeout_s, _BLOCK_MAX_S), _BLOCK_MAX_MARGIN_S
        try:
            async with asyncio.timeout(timeout_s + margin_s):
                reply = await self._pop(wait, keys, timeout_s)
        except BaseException as error:
            await wait.close()
            if isinstance(error, Exception):
                await self._doubt(wait.place, error)
                raise translated(error, self._dial.address) from error
            raise
        return reply[0].decode() if reply else None

    async def unblock(self, key: str = "") -> None:
        """Lets a `block` that is under way return at once; in a cluster the one for the queue of this key. Without one
        it does nothing.
        """
        wait = self._lines().waits[self._where.group(key)]
        if wait.connection is not None:
            words = ("CLIENT", "UNBLOCK", wait.id, "TIMEOUT")
            await self._persist(lambda patience: self._at(Route(wait.place), words, patience), None)

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[Channel]:
        """Hears what is published on a channel from the moment this is entered. All channels share a connection; in a
        cluster those of one node, so that what happens there depends on no other.
        """
        try:
            at = (await self._route(channel)).place
        except failures():
            at = None  # any node will do, if it can be reached: what is published is heard everywhere
        listeners = self._lines().listeners
        listener = listeners.get(at)
        if listener is None:
            listener = listeners[at] = Listener(self._dial, at)
        async with listener.channel(channel) as heard:
            yield heard

    async def aclose(self) -> None:
        """Closes this loop's connections. The handle can be used again; it opens new ones then."""
        lines = self._loops.pop(asyncio.get_running_loop(), None)
        if lines is None or lines.pid != os.getpid():
            return
        await lines.aclose()

    def _lines(self) -> Lines:
        loop = asyncio.get_running_loop()
        lines = self._loops.get(loop)
        if lines is None or lines.pid != os.getpid():
            for other in [each for each in list(self._loops) if each.is_closed()]:
                left = self._loops.pop(other, None)
                if left is not None and left.pid == os.getpid():
                    left.abandon()
            lines = self._loops[loop] = Lines(self._dial.timeout_s)
        return lines

    async def _persist(
        self,
        attempt: Callable[[Patience], Awaitable[Any]],
        deadline_s: float | None,
        resend_s: float | None = None,
    ) -> Any:
        """Tries until it works, the error won't pass, or the deadline is over."""
        strict = deadline_s is not None  # whoever names a deadline has no time to wait for turns either
        deadline_s = self.settings.deadline_ms / 1000 if deadline_s is None else deadline_s
        patience = Patience(deadline_s, resend_s=resend_s, strict=strict)
        failed = Failed(patience, self._dial.address)
        while True:
            try:
                return await attempt(patience)
            except failures() as error:
                pause_s = failed.pause_s(error)
            await asyncio.sleep(pause_s)

    async def _doubt(self, place: Place | None, error: Exception) -> None:
        """A connection to this node failed: others to it that lie idle are not better, and it may have moved."""
        if self._where.failed(error, place):
            await self._lines().drop_idle(place)

    async def _call(self, command: Command[Any], patience: Patience) -> Any:
        wanted = None
        if command.durable and self.settings.wait_replicas:
            wanted = Wanted(self.settings.wait_replicas, patience)
        key = command.keys[0]
        try:
            reply = await self._send(key, wire.call(command), patience, wanted)
        except Exception as error:
            if not lost_script(error):
                raise
            patience.refused()
            reply = await self._send(key, wire.call(command, source=True), patience, wanted)
        if wanted is not None and wanted.missing:
            raise missing([command], wanted)
        return reply

    async def _send(
        self, key: str | None, words: tuple[Any, ...], patience: Patience, wanted: Wanted | None = None
    ) -> Any:
        """One command, to the node that serves the key (None: to any), wherever that is now."""
        if self._where.kind == "single":
            return await self._at(HERE, words, patience, wanted)
        route = await self._route(key, patience)
        for _ in range(REDIRECTS_MAX):
            try:
                return await self._at(route, words, patience, wanted)
            except Exception as error:
                further = self._where.follow(error, route.place)
                if further is None:
                    raise
                route = further
        return await self._at(route, words, patience, wanted)

    async def _at(self, route: Route, words: tuple[Any, ...], patience: Patience, wanted: Wanted | None = None) -> Any:
        async with self._line(route.place, patience) as connection:
            await connection.send_packed_command(wire.one(words, asking=route.asking))
            if route.asking:
                await connection.read_response()
            reply = await connection.read_response()
            if wanted is not None:
                await self._until_replicated(connection, wanted)
            return reply

    async def _until_replicated(self, connection: Connection, wanted: Wanted) -> None:
        await connection.send_packed_command(wire.one(wanted.words(self._dial.timeout_s)))
        wanted.acknowledged = await connection.read_response()

    async def _exchange(
        self, commands: Sequence[Command[Any]], open_: list[int], replies: list[Any], patience: Patience
    ) -> None:
        """Sends the open ones together, to each node its own, and strikes out what was answered."""
        by_place: dict[Place | None, list[int]] = {}
        for index in open_:
            route = await self._route(commands[index].keys[0], patience)
            by_place.setdefault(route.place, []).append(index)
        answered: set[int] = set()
        pipelines = [
            self._pipeline(place, commands, asked, replies, patience, answered=answered)
            for place, asked in by_place.items()
        ]
        try:
            if len(pipelines) == 1:
                await pipelines[0]
                return
            failed = [each for each in await asyncio.gather(*pipelines, return_exceptions=True) if each is not None]
        finally:
            open_[:] = [index for index in open_ if index not in answered]
        for error in failed:
            raise error

    async def _pipeline(
        self,
        place: Place | None,
        commands: Sequence[Command[Any]],
        asked: list[int],
        replies: list[Any],
        patience: Patience,
        *,
        answered: set[int],
    ) -> None:
        """Sends the asked ones to one node. What was answered joins `answered`, also if the connection breaks then."""
        import redis.exceptions as redis_errors

        wanted, heard = None, answered
        if self.settings.wait_replicas and any(commands[index].durable for index in asked):
            wanted, heard = Wanted(self.settings.wait_replicas, patience), set()
        async with self._line(place, patience) as connection:
            await connection.send_packed_command(wire.many(commands[index] for index in asked))
            for index in asked:
                try:
                    replies[index] = await connection.read_response()
                    heard.add(index)
                except redis_errors.ResponseError:
                    pass  # asked again by itself, which follows what the error says
            if wanted is not None and heard:
                await self._until_replicated(connection, wanted)
        if wanted is not None and wanted.missing:
            raise missing([commands[index] for index in sorted(heard)], wanted)
        answered |= heard

    @asynccontextmanager
    async def _line(self, place: Place | None, patience: Patience) -> AsyncIterator[Connection]:
        """A connection for one exchange; kept afterwards only if nothing can still arrive on it."""
        import redis.exceptions as redis_errors

        lines = self._lines()
        turns = lines.turns[place]
        await self._turn(turns, patience)
        connection: Connection | None = None
        began, allowed_s = time.monotonic(), min(self._dial.timeout_s, patience.left_s())
        try:
            # The library would bound each write by asyncio.wait_for, which before Python 3.12 swallows a cancel
            # that comes as the write ends (measured: every tenth one): a waiter that nobody could stop.
            async with asyncio.timeout(allowed_s) as bound:
                if lines.idle[place]:
                    connection = lines.idle[place].pop()
                else:
                    connection = await self._open(lines, place)
                    async with asyncio.timeout(GREETING_S):
                        await connection.connect()
                if patience.sending():
                    left_s = min(self._dial.timeout_s, patience.left_s())
                    bound.reschedule(asyncio.get_running_loop().time() + left_s)
                yield connection
        except redis_errors.ResponseError as error:
            if connection is not None and moved_primary(error):
                await connection.disconnect(nowait=True)
                await self._doubt(place, error)
            elif connection is not None:
                await lines.keep(place, connection)
            turns.answered()
            raise
        except BaseException as error:
            if connection is not None:
                await connection.disconnect(nowait=True)
            if isinstance(error, Exception):
                patience.held_up(began, allowed_s)
                await self._doubt(place, error)
            raise
        else:
            await lines.keep(place, connection)
            turns.answered()
            self._where.answered(place)
        finally:
            turns.give_back()

    async def _turn(self, turns: Turns, patience: Patience) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(patience.turn_s()):
                patience.waited(await turns.take())
        except (Stuck, TimeoutError):
            raise Unavailable(
                f"{CONNECTIONS_MAX} calls to {self.where} are under way and none ended within "
                f"{time.monotonic() - began:.1f} s: is it running?"
            ) from TimeoutError("no turn")

    async def _open(self, lines: Lines, place: Place | None) -> Connection:
        if self._where.kind == "sentinel":  # whatever else lies idle is to where the primary was before
            await lines.leave_others(place)
        return await self._dial.open(place)

    async def _pop(self, wait: Wait, keys: Sequence[str], timeout_s: float) -> Any:
        import redis.exceptions as redis_errors

        for _ in range(REDIRECTS_MAX):
            place = (await self._route(keys[0])).place
            if wait.connection is not None and wait.place != place:
                await wait.close()
            connection = wait.connection or await wait.open(self._dial, place)
            try:
                await connection.send_command("BZPOPMIN", *keys, timeout_s)
                return await connection.read_response()
            except (redis_errors.AskError, redis_errors.TryAgainError) as error:  # also MovedError
                further = self._where.follow(error, wait.place)
                if further is None or further.asking:  # the queue stands still while its slot moves
                    await asyncio.sleep(_ON_THE_MOVE_S)
                    return None
                await wait.close()
        return None

    async def _route(self, key: str | None, patience: Patience | None = None) -> Route:
        if self._where.kind == "single":
            return HERE
        async with asyncio.timeout(None if patience is None else patience.left_s()):
            return await self._where.route(key, self._lines().asking)
