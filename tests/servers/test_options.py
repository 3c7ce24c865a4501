"""The options that connections really have, on whatever redis-py is installed: none is left to the library (PACK-07).

And what follows from them: an empty poll is no error, however short the URL's or the library's own time-outs are.
"""

import asyncio
import contextlib
import socket

import pytest
import redis
import redis.asyncio

from taskq.connection import connect, connect_async
from taskq.connection.dial import AsyncDial, SyncDial
from taskq.settings import Settings
from tests.waiting import wait_until

SETTINGS = Settings(url="redis://u:p@localhost:6379/2", deadline_ms=3_000)
COMMON = {
    "db": 2,
    "username": "u",
    "password": "p",
    "client_name": "taskq:client",
    "protocol": 2,
    "socket_connect_timeout": 2.0,
    "socket_keepalive": True,
    "host": "localhost",
    "port": 6379,
}


def effective(connection):
    """What a connection has, by the names of its constructor."""
    return {name: getattr(connection, name) for name in COMMON if hasattr(connection, name)} | {
        "protocol": int(connection.protocol)
    }


def once(connection):
    """A connection of ours never tries again by itself: how long a call takes is ours to say."""
    retry = connection.retry
    return (retry._retries, type(retry._backoff).__name__)


def test_a_sync_connection():
    connection = SyncDial(SETTINGS, "client").open()
    assert effective(connection) == COMMON
    assert connection.socket_timeout == 3.0
    assert connection.health_check_interval == 30
    assert once(connection) == (0, "NoBackoff")
    assert connection.socket_keepalive_options[socket.TCP_KEEPIDLE] == 30
    assert connection.encoder.decode_responses is False
    assert connection.encoder.encoding_errors == "surrogatepass"


@pytest.mark.parametrize("blocking", [False, True])
async def test_an_async_connection(blocking):
    connection = await AsyncDial(SETTINGS, "client").open(blocking=blocking)
    assert effective(connection) == COMMON
    assert connection.socket_timeout is None  # each exchange is bounded by us
    assert connection.health_check_interval == (0 if blocking else 30)
    assert once(connection) == (0, "NoBackoff")
    assert connection.socket_keepalive_options[socket.TCP_KEEPIDLE] == 30
    assert connection.encoder.decode_responses is False


@pytest.mark.parametrize("deadline_ms, seconds", [(5_000, 5.0), (50, 0.05), (1, 0.05)])
def test_the_deadline_bounds_each_read(deadline_ms, seconds):
    connection = SyncDial(Settings(url="redis://h", deadline_ms=deadline_ms), "client").open()
    assert connection.socket_timeout == seconds
    assert connection.socket_connect_timeout == min(2.0, seconds)


def test_a_connection_costs_no_greeting(settings, serve, namespace):
    server = serve()
    with redis.Redis(port=server.port, protocol=2) as admin:
        admin.config_resetstat()
        with contextlib.closing(connect(Settings(url=server.url, namespace=namespace))) as ours:
            ours.ping()
        stats = admin.info("commandstats")
    sent = {name.removeprefix("cmdstat_") for name in stats} - {"info", "config|resetstat", "config"}
    assert sent <= {"client|setname", "client", "ping"}


async def test_an_empty_poll_is_no_error_though_the_deadline_is_short(settings, q):
    """CONN-03: blocking is longer than any time-out of a call."""
    server = connect_async(Settings(url=settings.url, namespace=settings.namespace, deadline_ms=100), role="worker")
    loop = asyncio.get_running_loop()
    begun = loop.time()
    assert await server.block([q.wake("async")], 1.5) is None
    assert loop.time() - begun >= 1.4
    await server.aclose()


def test_a_listener_outlives_the_deadline(settings, q, raw):
    server = connect(Settings(url=settings.url, deadline_ms=100))
    with contextlib.closing(server), server.listen("taskq:test") as bell:
        assert bell.wait(0.5) is False
        wait_until(lambda: raw.pubsub_numsub("taskq:test")[0][1] == 1)
        raw.publish("taskq:test", "x")
        assert bell.wait(5)
