"""The sync face: connections kept in a pile, in a cluster one a node, one command at a time on each."""

from __future__ import annotations

import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from taskq.commands.command import Command
from taskq.connection import wire
from taskq.connection.cluster import REDIRECTS_MAX, Place, Route
from taskq.connection.dial import SyncDial, within
from taskq.connection.durable import Wanted, missing
from taskq.connection.failed import Failed
from taskq.connection.login import login_of
from taskq.connection.patience import Patience, soonest
from taskq.connection.translate import failures, lost_script, moved_primary
from taskq.connection.where import SyncWhere
from taskq.settings import Settings

if TYPE_CHECKING:
    import redis

T = TypeVar("T")


class Server:
    """A server, for threads. Each call takes a connection of its own; idle ones are kept for the next calls."""

    def __init__(self, settings: Settings, *, role: str = "client") -> None:
        self.settings = settings
        self._dial = SyncDial(settings, role)
        self._login = login_of(settings, role)
        self._idle: defaultdict[Place | None, deque[redis.Connection]] = defaultdict(deque)
        self._pid = os.getpid()
        self._where = SyncWhere(self._dial)

    @property
    def where(self) -> str:
        """The server as messages name it; no password."""
        return self._dial.where

    def run(self, command: Command[T], *, deadline_s: float | None = None) -> T:
        """See `taskq.connection.run`."""
        patience = self._patience(deadline_s, command.resend_s)
        if self._login is not None:
            self._login.check((command.script,), patience.left_s())
        return command.read(self._persist(lambda patience: self._call(command, patience), patience))

    def run_many(self, commands: Sequence[Command[T]], *, deadline_s: float | None = None) -> list[T]:
        """See `taskq.connection.run_many`."""
        patience = self._patience(deadline_s, soonest(command.resend_s for command in commands))
        if self._login is not None:
            self._login.check([command.script for command in commands], patience.left_s())
        replies: list[Any] = [None] * len(commands)
        open_: list[int] = list(range(len(commands)))

        def step(patience: Patience) -> None:
            if len(open_) > 1:
                self._exchange(commands, open_, replies, patience)
            for index in list(open_):  # what a pipeline could not answer is asked again, each by itself
                replies[index] = self._call(commands[index], patience)
                open_.remove(index)

        self._persist(step, patience)
        return [command.read(reply) for command, reply in zip(commands, replies, strict=True)]

    def ping(self, *, deadline_s: float | None = None) -> bool:
        """Whether the server answers.

        Raises:
            Unavailable: it does not, within the deadline.
        """
        return bool(
            self._persist(lambda patience: self._send(None, ("PING",), patience) == b"PONG", self._patience(deadline_s))
        )

    @contextmanager
    def listen(self, channel: str) -> Iterator[Listening]:
        """Hears what is published on a channel, on a connection of its own, from the moment this returns."""
        listening = Listening(lambda: self._dial.open(self._where.route(channel).place), self._dial.timeout_s, channel)
        try:
            listening.open()
            yield listening
        finally:
            listening.close()

    def close(self) -> None:
        """Closes all idle connections. The handle can be used again; it opens new ones then."""
        for place in list(self._idle):
            self._drop_idle(place)

    def _patience(self, deadline_s: float | None, resend_s: float | None = None) -> Patience:
        return Patience(self.settings.deadline_ms / 1000 if deadline_s is None else deadline_s, resend_s=resend_s)

    def _persist(self, attempt: Callable[[Patience], Any], patience: Patience) -> Any:
        """Tries until it works, the error won't pass, or the deadline is over."""
        failed = Failed(patience, self._dial.address)
        while True:
            try:
                return attempt(patience)
            except failures() as error:
                pause_s = failed.pause_s(error)
            if pause_s:
                time.sleep(pause_s)

    def _call(self, command: Command[Any], patience: Patience) -> Any:
        wanted = None
        if command.durable and self.settings.wait_replicas:
            wanted = Wanted(self.settings.wait_replicas, patience)
        key = command.keys[0]
        try:
            reply = self._send(key, wire.call(command), patience, wanted)
        except Exception as error:
            if not lost_script(error):
                raise
            patience.refused()
            reply = self._send(key, wire.call(command, source=True), patience, wanted)
        if wanted is not None and wanted.missing:
            raise missing([command], wanted)
        return reply

    def _send(self, key: str | None, words: tuple[Any, ...], patience: Patience, wanted: Wanted | None = None) -> Any:
        """One command, to the node that serves the key (None: to any), wherever that is now."""
        route = self._where.route(key, patience)
        for _ in range(REDIRECTS_MAX):
            try:
                return self._at(route, words, patience, wanted)
            except Exception as error:
                further = self._where.follow(error, route.place)
                if further is None:
                    raise
                route = further
        return self._at(route, words, patience, wanted)

    def _at(self, route: Route, words: tuple[Any, ...], patience: Patience, wanted: Wanted | None = None) -> Any:
        connection = self._take(route.place)
        try:
            self._ready(connection, patience)
            connection.send_packed_command([wire.one(words, asking=route.asking)])
            if route.asking:
                connection.read_response()
            reply = connection.read_response()
            if wanted is not None:
                self._until_replicated(connection, wanted)
        except BaseException as error:
            self._put_back(connection, route.place, error)
            raise
        self._put_back(connection, route.place)
        return reply

    def _until_replicated(self, connection: redis.Connection, wanted: Wanted) -> None:
        connection.send_command(*wanted.words(self._dial.timeout_s))
        wanted.acknowledged = connection.read_response()

    def _exchange(
        self, commands: Sequence[Command[Any]], open_: list[int], replies: list[Any], patience: Patience
    ) -> None:
        """Sends the open ones together, to each node its own, and strikes out what was answered."""
        by_place: dict[Place | None, list[int]] = {}
        for index in open_:
            by_place.setdefault(self._where.route(commands[index].keys[0], patience).place, []).append(index)
        failure: BaseException | None = None
        answered: set[int] = set()
        for place, asked in by_place.items():
            try:
                self._pipeline(place, commands, asked, replies, patience, answered=answered)
            except failures() as error:
                failure = error
        open_[:] = [index for index in open_ if index not in answered]
        if failure is not None:
            raise failure

    def _pipeline(
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
        connection = self._take(place)
        try:
            self._ready(connection, patience)
            connection.send_packed_command([wire.many(commands[index] for index in asked)])
            for index in asked:
                within(connection, min(self._dial.timeout_s, patience.left_s()))
                try:
                    replies[index] = connection.read_response()
                    heard.add(index)
                except redis_errors.ResponseError:
                    pass  # asked again by itself, which follows what the error says
            if wanted is not None and heard:
                self._until_replicated(connection, wanted)
        except BaseException as error:
            self._put_back(connection, place, error)
            raise
        self._put_back(connection, place)
        if wanted is not None and wanted.missing:
            raise missing([commands[index] for index in sorted(heard)], wanted)
        answered |= heard

    def _take(self, place: Place | None) -> redis.Connection:
        if self._pid != os.getpid():  # after a fork the sockets are the parent's: forget them, don't close them
            self._idle, self._pid = defaultdict(deque), os.getpid()
        try:
            return self._idle[place].pop()
        except IndexError:
            if self._where.kind == "sentinel":  # whatever lies idle is to where the primary was before
                self.close()
            return self._dial.open(place)

    def _ready(self, connection: redis.Connection, patience: Patience) -> None:
        self._dial.ready(connection, patience.left_s())
        if patience.sending():
            within(connection, min(self._dial.timeout_s, patience.left_s()))

    def _put_back(self, connection: redis.Connection, place: Place | None, error: BaseException | None = None) -> None:
        """After an error reply the connection is good; after anything else a reply may still be on its way, and the
        idle ones to the same node are not better.
        """
        import redis.exceptions as redis_errors

        if error is None or (isinstance(error, redis_errors.ResponseError) and not moved_primary(error)):
            self._idle[place].append(connection)
            self._where.answered(place)
            return
        connection.disconnect()
        if self._where.failed(error, place):
            self._drop_idle(place)

    def _drop_idle(self, place: Place | None) -> None:
        idle = self._idle.pop(place, ())
        while idle:
            idle.pop().disconnect()


class Listening:
    """One subscription. `wait` hears a message, or nothing; the caller looks for itself in either case."""

    def __init__(self, open_: Callable[[], redis.Connection], timeout_s: float, channel: str) -> None:
        self._open = open_
        self._timeout_s = timeout_s
        self._channel = channel
        self._connection: redis.Connection | None = None

    def open(self) -> None:
        """Subscribes. A server that can't be reached is no error: the caller looks from time to time anyway."""
        import redis.exceptions as redis_errors

        try:
            connection = self._open()
            self._connection = connection
            connection.send_command("SUBSCRIBE", self._channel)
            if connection.can_read(self._timeout_s):
                connection.read_response()
        except (redis_errors.RedisError, OSError):
            self.close()

    def wait(self, timeout_s: float) -> bool:
        """Whether something was published within the time. Seconds."""
        import redis.exceptions as redis_errors

        if self._connection is None:
            time.sleep(min(timeout_s, 0.25))
            self.open()
            return False
        try:
            if not self._connection.can_read(timeout_s):
                return False
            self._connection.read_response()
        except (redis_errors.RedisError, OSError):
            self.close()
            return False
        return True

    def close(self) -> None:
        """Ends the subscription with its connection."""
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None
