"""The sync face: connections kept in a pile, one command at a time on each."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from taskq.commands.command import Command
from taskq.connection.dial import SyncDial
from taskq.connection.patience import Patience
from taskq.connection.translate import failures, lost_script, moved_primary, passing, translated
from taskq.settings import Settings

if TYPE_CHECKING:
    import redis

T = TypeVar("T")


class Server:
    """A server, for threads. Each call takes a connection of its own; idle ones are kept for the next calls."""

    def __init__(self, settings: Settings, *, role: str = "client") -> None:
        self.settings = settings
        self._dial = SyncDial(settings, role)
        self._idle: deque[redis.Connection] = deque()
        self._pid = os.getpid()
        self._cluster: Any = None

    @property
    def where(self) -> str:
        """The server as messages name it; no password."""
        return self._dial.where

    def run(self, command: Command[T], *, deadline_s: float | None = None) -> T:
        """See `taskq.connection.run`."""
        return command.read(self._persist(lambda: self._call(command), deadline_s))

    def run_many(self, commands: Sequence[Command[T]], *, deadline_s: float | None = None) -> list[T]:
        """See `taskq.connection.run_many`."""
        replies: list[Any] = [None] * len(commands)
        open_: list[int] = list(range(len(commands)))

        def step() -> None:
            nonlocal open_
            open_ = self._exchange(commands, open_, replies)
            if open_:  # what a pipeline could not answer is asked again, each by itself
                for index in list(open_):
                    replies[index] = self._call(commands[index])
                    open_.remove(index)

        self._persist(step, deadline_s)
        return [command.read(reply) for command, reply in zip(commands, replies, strict=True)]

    def ping(self, *, deadline_s: float | None = None) -> bool:
        """Whether the server answers.

        Raises:
            Unavailable: it does not, within the deadline.
        """
        return bool(self._persist(lambda: self._send("PING") == b"PONG", deadline_s))

    def info(self, section: str = "server") -> bytes:
        """The server's own report, as text."""
        reply: bytes = self._persist(lambda: self._send("INFO", section), None)
        return reply

    @contextmanager
    def listen(self, channel: str) -> Iterator[Listening]:
        """Hears what is published on a channel, on a connection of its own, from the moment this returns."""
        listening = Listening(self._dial, channel)
        try:
            listening.open()
            yield listening
        finally:
            listening.close()

    def close(self) -> None:
        """Closes all idle connections. The handle can be used again; it opens new ones then."""
        while self._idle:
            self._idle.pop().disconnect()

    def _persist(self, attempt: Any, deadline_s: float | None) -> Any:
        """Tries until it works, the error won't pass, or the deadline is over."""
        patience = Patience(self.settings.deadline_ms / 1000 if deadline_s is None else deadline_s)
        while True:
            try:
                return attempt()
            except failures() as error:
                pause_s = patience.pause_s() if passing(error) else None
                if pause_s is None:
                    raise translated(error, self.where) from error
                if moved_primary(error):
                    self.close()
                if pause_s:
                    time.sleep(pause_s)

    def _call(self, command: Command[Any]) -> Any:
        script = command.script
        try:
            return self._send("EVALSHA", script.sha, len(command.keys), *command.keys, *command.args)
        except Exception as error:
            if not lost_script(error):
                raise
        return self._send("EVAL", script.source, len(command.keys), *command.keys, *command.args)

    def _send(self, *words: Any) -> Any:
        if self._dial.address.kind == "cluster":
            return self._shards().execute(*words)
        connection = self._take()
        try:
            connection.send_command(*words)
            reply = connection.read_response()
        except BaseException as error:
            self._put_back(connection, error)
            raise
        self._idle.append(connection)
        return reply

    def _exchange(self, commands: Sequence[Command[Any]], asked: list[int], replies: list[Any]) -> list[int]:
        """Sends the asked ones together; returns those that need another try."""
        import redis.exceptions as redis_errors

        if self._dial.address.kind == "cluster" or len(asked) == 1:
            return asked
        connection = self._take()
        again: list[int] = []
        try:
            words = [
                ("EVALSHA", each.script.sha, len(each.keys), *each.keys, *each.args)
                for each in (commands[index] for index in asked)
            ]
            connection.send_packed_command(connection.pack_commands(words))
            for index in asked:
                try:
                    replies[index] = connection.read_response()
                except redis_errors.ResponseError:
                    again.append(index)
        except BaseException as error:
            self._put_back(connection, error)
            raise
        self._idle.append(connection)
        return again

    def _take(self) -> redis.Connection:
        if self._pid != os.getpid():  # after a fork the sockets are the parent's: forget them, don't close them
            self._idle, self._pid = deque(), os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            return self._dial.open()

    def _put_back(self, connection: redis.Connection, error: BaseException) -> None:
        """After an error reply the connection is good; after anything else a reply may still be on its way."""
        import redis.exceptions as redis_errors

        if isinstance(error, redis_errors.ResponseError) and not moved_primary(error):
            self._idle.append(connection)
        else:
            connection.disconnect()

    def _shards(self) -> Any:
        from taskq.connection.cluster import SyncCluster

        if self._cluster is None or self._pid != os.getpid():
            self._cluster, self._pid = SyncCluster(self._dial), os.getpid()
        return self._cluster


class Listening:
    """One subscription. `wait` hears a message, or nothing; the caller looks for itself in either case."""

    def __init__(self, dial: SyncDial, channel: str) -> None:
        self._dial = dial
        self._channel = channel
        self._connection: redis.Connection | None = None

    def open(self) -> None:
        """Subscribes. A server that can't be reached is no error: the caller looks from time to time anyway."""
        import redis.exceptions as redis_errors

        try:
            connection = self._dial.open(blocking=True)
            self._connection = connection
            connection.send_command("SUBSCRIBE", self._channel)
            if connection.can_read(self._dial.timeout_s):
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

