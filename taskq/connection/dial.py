"""How a connection is opened: every option that we depend on is set here, none is left to a library's default.

Libraries change defaults between majors (timeouts, protocol, retries); a test asserts the effective values.
"""

from __future__ import annotations

import asyncio
import encodings.idna  # noqa: F401 # looking up a host loads it: a child forked meanwhile would wait for that for ever
import inspect
import socket
import time
from typing import TYPE_CHECKING, Any

from taskq.address import Address, parse_url
from taskq.connection import inherited, sentinel
from taskq.connection.cluster import Place
from taskq.connection.tls import Tls
from taskq.connection.translate import failures
from taskq.settings import Settings

if TYPE_CHECKING:
    import redis
    import redis.asyncio as redis_asyncio

#: A peer that vanished without a word is noticed after 30 + 3 x 5 s even on an idle connection.
_KEEPALIVE = {
    getattr(socket, name): seconds
    for name, seconds in {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}.items()
    if hasattr(socket, name)
}
CONNECT_TIMEOUT_S = 2.0
#: How long each answer may take by which a new connection logs in; also if a call may take an hour.
GREETING_S = 5.0
_HEALTH_CHECK_S = 30


class Dial:
    """Opens connections of one role. `read_timeout_s` None means that a read may last (blocking, listening)."""

    def __init__(self, settings: Settings, role: str) -> None:
        self.address: Address = parse_url(settings.url)
        self.where = self.address.where
        self._tls = Tls(self.address)
        self._role = role
        deadline_s = max(settings.deadline_ms / 1000, 0.05)
        # Where there may be somebody else to turn to, half of the deadline is kept for that.
        self._timeout_s = deadline_s if self.address.kind == "single" else deadline_s / 2
        self._sentinels = self.address.hosts if self.address.kind == "sentinel" else ()

    def options(self, *, read_timeout_s: float | None, host: str, port: int) -> dict[str, Any]:
        """The arguments of a connection's constructor."""
        from redis.backoff import NoBackoff

        address = self.address
        options: dict[str, Any] = {
            "db": address.db,
            "username": address.username,
            "password": address.password,
            "client_name": f"taskq:{self._role}",
            "socket_timeout": read_timeout_s,
            "socket_connect_timeout": min(CONNECT_TIMEOUT_S, self._timeout_s),
            "health_check_interval": _HEALTH_CHECK_S if read_timeout_s is not None else 0,
            "decode_responses": False,
            "encoding": "utf-8",
            "encoding_errors": "surrogatepass",
            "protocol": 2,
            "retry": self._retry_class()(NoBackoff(), 0),
        }
        options |= _no_greeting()
        if address.path is not None:
            return options | {"path": address.path}
        options |= {
            "host": host,
            "port": port,
            "socket_keepalive": True,
            "socket_keepalive_options": dict(_KEEPALIVE),
        }
        return options

    def _retry_class(self) -> Any:
        from redis.retry import Retry

        return Retry

    @property
    def timeout_s(self) -> float:
        """How long one read or write may take."""
        return self._timeout_s

    def _sentinel_options(self, place: Place) -> dict[str, Any]:
        """The arguments of a connection to a sentinel: as to the server, with the login of sentinels."""
        options = self.options(read_timeout_s=sentinel.ANSWER_S, host=place[0], port=place[1])
        options |= {"db": 0, "client_name": None, "socket_connect_timeout": sentinel.ANSWER_S}
        given = self.address.options
        return options | {"username": given.get("sentinel_username"), "password": given.get("sentinel_password")}

    def _prefer(self, place: Place) -> None:
        """Ask this sentinel first from now on."""
        self._sentinels = (place, *(other for other in self._sentinels if other != place))

    def _avoid(self, place: Place) -> None:
        """Ask this sentinel last from now on."""
        self._sentinels = (*(other for other in self._sentinels if other != place), place)


class SyncDial(Dial):
    """Opens blocking connections."""

    def open(self, at: Place | None = None, *, read_timeout_s: float | None = None) -> redis.Connection:
        """A connection, not yet connected: to a node of the cluster, or else to the server, which is looked up first
        where sentinels know it.
        """
        import redis

        host, port = at or self.primary()
        options = self.options(read_timeout_s=read_timeout_s or self.timeout_s, host=host, port=port)
        if self.address.path is not None:
            return redis.UnixDomainSocketConnection(**options)  # type: ignore[abstract,return-value] # same interface
        return self._connection(options)

    def ready(self, connection: redis.Connection, left_s: float) -> None:
        """Connects it unless it is, and gives its reads and writes so much time from now on."""
        began = time.monotonic()
        if connection._sock is None:  # noqa: SLF001
            within(connection, min(self.timeout_s, left_s, GREETING_S))
            connection.socket_connect_timeout = min(CONNECT_TIMEOUT_S, connection.socket_timeout or left_s)
            connection.connect()
            left_s -= time.monotonic() - began
        within(connection, min(self.timeout_s, left_s))

    def _connection(self, options: dict[str, Any]) -> redis.Connection:
        import redis

        if not self.address.tls:
            return redis.Connection(**options)
        context = self._tls.context()
        connection = redis.SSLConnection(**options)
        connection._wrap_socket_with_ssl = lambda line: context.wrap_socket(line, server_hostname=connection.host)  # type: ignore[method-assign] # noqa: SLF001
        return connection

    def primary(self, *, ask: int | None = None) -> Place:
        """Where the server is; with sentinels by the word of the first that knows it, of so many (`ask`)."""
        if self.address.kind != "sentinel":
            return self.address.hosts[0] if self.address.hosts else ("", 0)
        errors: list[BaseException] = []
        for place in self._sentinels[:ask]:
            try:
                found = self._ask(place)
            except failures() as error:
                errors.append(error)
                self._avoid(place)
            else:
                self._prefer(place)
                return found
        raise sentinel.first_error(errors)

    def _ask(self, place: Place) -> Place:
        import redis.exceptions as redis_errors

        master = self.address.master or ""
        connection = self._connection(self._sentinel_options(place))
        answers: list[Any] = []
        try:
            connection.send_packed_command(connection.pack_commands(sentinel.questions(master)))
            for _ in range(2):
                try:
                    answers.append(connection.read_response())
                except redis_errors.ResponseError as error:
                    answers.append(error)
        finally:
            connection.disconnect()
        return sentinel.primary(master, *answers)


class AsyncDial(Dial):
    """Opens connections for an event loop."""

    async def open(self, at: Place | None = None, *, blocking: bool = False) -> redis_asyncio.Connection:
        """As `SyncDial.open`. `blocking`: for a read that may last, so that the library sends no pings in between."""
        import redis.asyncio.connection as redis_asyncio

        host, port = at or await self.primary()
        options = self.options(read_timeout_s=None if blocking else self.timeout_s, host=host, port=port)
        if self.address.path is not None:
            options["socket_timeout"] = None
            local = redis_asyncio.UnixDomainSocketConnection(**options)
            inherited.mark(local)  # type: ignore[arg-type] # same interface
            return local  # type: ignore[return-value] # as above
        return self._connection(options)

    def _connection(self, options: dict[str, Any]) -> redis_asyncio.Connection:
        import redis.asyncio.connection as redis_asyncio

        options["socket_timeout"] = None  # the library's costs an asyncio task a write, and loses cancels: see `aio`
        connection = (redis_asyncio.SSLConnection if self.address.tls else redis_asyncio.Connection)(**options)
        if isinstance(connection, redis_asyncio.SSLConnection):
            connection.ssl_context.context = self._tls.context()
        inherited.mark(connection)
        return connection

    def _retry_class(self) -> Any:
        from redis.asyncio.retry import Retry

        return Retry

    async def primary(self, *, ask: int | None = None) -> Place:
        """As `SyncDial.primary`."""
        if self.address.kind != "sentinel":
            return self.address.hosts[0] if self.address.hosts else ("", 0)
        errors: list[BaseException] = []
        for place in self._sentinels[:ask]:
            try:
                async with asyncio.timeout(sentinel.ANSWER_S):
                    found = await self._ask(place)
            except failures() as error:
                errors.append(error)
                self._avoid(place)
            else:
                self._prefer(place)
                return found
        raise sentinel.first_error(errors)

    async def _ask(self, place: Place) -> Place:
        import redis.exceptions as redis_errors

        master = self.address.master or ""
        connection = self._connection(self._sentinel_options(place))
        answers: list[Any] = []
        try:
            await connection.connect()
            await connection.send_packed_command(connection.pack_commands(sentinel.questions(master)))
            for _ in range(2):
                try:
                    answers.append(await connection.read_response())
                except redis_errors.ResponseError as error:
                    answers.append(error)
        finally:
            await connection.disconnect(nowait=True)
        return sentinel.primary(master, *answers)


def within(connection: redis.Connection, seconds: float) -> None:
    """Bounds each read and write of a connection. The library would do so only when it connects."""
    connection.socket_timeout = seconds = max(seconds, 0.001)
    line: socket.socket | None = connection._sock  # noqa: SLF001
    if line is not None:
        line.settimeout(seconds)


def _no_greeting() -> dict[str, Any]:
    """Two commands fewer a connection: the library would tell its name and version. Older majors call it otherwise."""
    from redis.connection import AbstractConnection

    if "driver_info" in inspect.signature(AbstractConnection.__init__).parameters:
        return {"driver_info": None}
    return {"lib_name": None, "lib_version": None}
