"""How a connection is opened: every option that we depend on is set here, none is left to a library's default.

Libraries change defaults between majors (timeouts, protocol, retries); a test asserts the effective values.
"""

from __future__ import annotations

import inspect
import socket
from typing import TYPE_CHECKING, Any

from taskq.address import Address, parse_url
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
_CONNECT_TIMEOUT_S = 2.0
_HEALTH_CHECK_S = 30


class Dial:
    """Opens connections of one role. `read_timeout_s` None means that a read may last (blocking, listening)."""

    def __init__(self, settings: Settings, role: str) -> None:
        self.address: Address = parse_url(settings.url)
        self.where = self.address.where
        self._role = role
        self._timeout_s = max(settings.deadline_ms / 1000, 0.05)

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
            "socket_connect_timeout": min(_CONNECT_TIMEOUT_S, self._timeout_s),
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
        return options | {key: value for key, value in address.options.items() if key.startswith("ssl_")}

    def _retry_class(self) -> Any:
        from redis.retry import Retry

        return Retry

    @property
    def timeout_s(self) -> float:
        """How long one read or write may take."""
        return self._timeout_s


class SyncDial(Dial):
    """Opens blocking connections."""

    def open(self, *, blocking: bool = False) -> redis.Connection:
        """A connection, not yet connected; the primary is looked up first where sentinels know it."""
        import redis

        host, port = self._primary()
        options = self.options(read_timeout_s=None if blocking else self.timeout_s, host=host, port=port)
        if self.address.path is not None:
            return redis.UnixDomainSocketConnection(**options)  # type: ignore[abstract,return-value] # same interface
        return (redis.SSLConnection if self.address.tls else redis.Connection)(**options)

    def _primary(self) -> tuple[str, int]:
        if self.address.kind != "sentinel":
            return self.address.hosts[0] if self.address.hosts else ("", 0)
        import redis.sentinel

        sentinel = redis.sentinel.Sentinel(list(self.address.hosts), sentinel_kwargs=_sentinel_options(self))
        try:
            host, port = sentinel.discover_master(self.address.master or "")
        finally:
            for each in sentinel.sentinels:
                each.close()
        return host, port


class AsyncDial(Dial):
    """Opens connections for an event loop."""

    async def open(self, *, blocking: bool = False) -> redis_asyncio.Connection:
        """As `SyncDial.open`."""
        import redis.asyncio.connection as redis_asyncio

        host, port = await self._primary()
        options = self.options(read_timeout_s=None if blocking else self.timeout_s, host=host, port=port)
        options["socket_timeout"] = None  # the library's costs an asyncio task a write, and loses cancels: see `aio`
        if self.address.path is not None:
            return redis_asyncio.UnixDomainSocketConnection(**options)  # type: ignore[return-value] # same interface
        return (redis_asyncio.SSLConnection if self.address.tls else redis_asyncio.Connection)(**options)

    def _retry_class(self) -> Any:
        from redis.asyncio.retry import Retry

        return Retry

    async def _primary(self) -> tuple[str, int]:
        if self.address.kind != "sentinel":
            return self.address.hosts[0] if self.address.hosts else ("", 0)
        import redis.asyncio.sentinel

        sentinel = redis.asyncio.sentinel.Sentinel(list(self.address.hosts), sentinel_kwargs=_sentinel_options(self))
        try:
            host, port = await sentinel.discover_master(self.address.master or "")
        finally:
            for each in sentinel.sentinels:
                await each.aclose()
        return host, port


def _no_greeting() -> dict[str, Any]:
    """Two commands fewer a connection: the library would tell its name and version. Older majors call it otherwise."""
    from redis.connection import AbstractConnection

    if "driver_info" in inspect.signature(AbstractConnection.__init__).parameters:
        return {"driver_info": None}
    return {"lib_name": None, "lib_version": None}


def _sentinel_options(dial: Dial) -> dict[str, Any]:
    options: dict[str, Any] = {
        "socket_timeout": _CONNECT_TIMEOUT_S,
        "socket_connect_timeout": _CONNECT_TIMEOUT_S,
        "protocol": 2,
    }
    for ours, theirs in (("sentinel_username", "username"), ("sentinel_password", "password")):
        if ours in dial.address.options:
            options[theirs] = dial.address.options[ours]
    return options
