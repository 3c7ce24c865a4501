"""Fixtures every folder of tests shares: a real server per test process, a fresh namespace per test, no leaked keys.

TASKQ_TEST_SERVER=<path of a redis-server or valkey-server> runs the suite on another server,
TASKQ_TEST_CLUSTER=1 on one in cluster mode (a single shard, that refuses scripts with keys of two slots),
TASKQ_TEST_CLUSTER=3 the guide on three shards. With TASKQ_TEST_SKIPS=no, as in CI, a skipped test fails the run.
"""

from __future__ import annotations

import logging
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import redis
import structlog

from taskq.embedded import Embedded
from tests.leaks import leaked
from tests.ports import cluster_port
from tests.waiting import wait_until

if TYPE_CHECKING:  # loaded in the fixtures, so that a fault in one room doesn't fail the tests of all
    from taskq.connection import Server
    from taskq.keys import QueueKeys
    from taskq.settings import Settings

_SERVER = os.environ.get("TASKQ_TEST_SERVER")
_SHARDS = int(os.environ.get("TASKQ_TEST_CLUSTER") or 0)
_CLUSTER = _SHARDS == 1

# A program that is started in the background may be deaf to Ctrl-C, and so would be all that its tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What a developer has set for their own programs must not reach the tests. What is said to the tests stays, since their
# own processes (`--numprocesses`) are started later and read it too.
for _name in [name for name in os.environ if name.startswith("TASKQ_") and not name.startswith("TASKQ_TEST_")]:
    del os.environ[_name]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On a server of one's choice only what meets a server is run: the rest has nothing new to say there."""
    if _SERVER is None:
        return
    meets: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        meets[not {"embedded", "server_binary"}.isdisjoint(getattr(item, "fixturenames", ()))].append(item)
    items[:] = meets[True]
    config.hook.pytest_deselected(items=meets[False])


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where everything is installed that a test may want, nothing is skipped: a skipped test shows nothing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", ()) if reporter is not None else ()
    if skipped and os.environ.get("TASKQ_TEST_SKIPS") == "no":
        reporter.write_line("Skipped tests fail this run (TASKQ_TEST_SKIPS=no).")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """A command that a test calls in this process sets up logging; the next test must find it as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def server_binary() -> str | None:
    """The server program the suite runs on; None for the embedded one. For tests that start servers of their own."""
    return _SERVER


@pytest.fixture(scope="session")
def shards_wanted() -> int:
    """How many shards; 0 for a server that isn't in cluster mode."""
    return _SHARDS


@pytest.fixture(scope="session")
def embedded(server_binary: str | None) -> Iterator[Embedded]:
    """A server for each test process, on TCP as in life."""
    config = {"cluster-enabled": "yes"} if _CLUSTER else {}
    with Embedded(port=cluster_port() if _CLUSTER else 0, binary=server_binary, config=config) as server:
        if _CLUSTER:
            _take_all_slots(server.url)
        yield server


@pytest.fixture(scope="session")
def server_url(embedded: Embedded) -> str:
    return embedded.url


@pytest.fixture(scope="session")
def _keyspace(server_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(server_url) as client:
        yield client


@pytest.fixture
def namespace() -> str:
    return f"t{uuid.uuid4().hex[:8]}"


@pytest.fixture(autouse=True)
def _no_changed_signals() -> Iterator[None]:
    """What a test made of Ctrl-C would meet the tests after it."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    before = [signal.getsignal(number) for number in numbers]
    yield
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.fixture(autouse=True)
def _no_leaked_keys(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test that used the server: every key it left has a TTL or a reason; then the server is emptied.

    Whoever reaches it by its port alone, as through a proxy, uses it too.
    """
    used = not {"embedded", "server_url"}.isdisjoint(request.fixturenames)
    keyspace = request.getfixturevalue("_keyspace") if used else None
    namespace = request.getfixturevalue("namespace") if "namespace" in request.fixturenames else None
    yield
    if keyspace is not None:
        found = leaked(keyspace, namespace)
        keyspace.flushall()
        assert not found, "\n".join(["keys leaked:", *found])


@pytest.fixture
def settings(server_url: str, namespace: str) -> Settings:
    """Settings of an app on this server, in a namespace of its own."""
    from taskq.settings import Settings

    return Settings(url=server_url, namespace=namespace)


@pytest.fixture
def q(namespace: str) -> QueueKeys:
    """Keys of the queue `default`."""
    from taskq import keys

    return keys.queue(namespace, "default")


@pytest.fixture
def raw(server_url: str) -> Iterator[redis.Redis]:
    """A bare client, for looking at what the scripts wrote (bytes)."""
    with redis.Redis.from_url(server_url) as client:
        yield client


@pytest.fixture
def server(settings: Settings) -> Iterator[Server]:
    """A connection as taskq's own code makes it."""
    from taskq.connection import connect

    server = connect(settings)
    yield server
    server.close()


@pytest.fixture
def run(server: Server) -> Callable[..., Any]:
    """`run(command)` executes an operation and gives its typed reply."""
    from taskq import connection

    def run(command: Any, **options: Any) -> Any:
        return connection.run(server, command, **options)

    return run


def _take_all_slots(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.execute_command("CLUSTER ADDSLOTS", *range(16384))
        wait_until(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
