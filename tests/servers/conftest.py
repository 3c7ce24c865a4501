"""Servers of their own with other settings, users with other permissions, certificates."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import redis

from taskq.connection.needs import rules
from taskq.embedded import Embedded
from taskq.settings import Settings
from tests.servers.certificates import Certificates, make


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Made once a test process."""
    return make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def serve(server_binary: str | None) -> Iterator[Callable[..., Embedded]]:
    """`serve(maxmemory="1mb")` starts a server with these settings, on TCP; it ends with the test."""
    with contextlib.ExitStack() as stack:

        def serve(
            folder: Path | None = None, *, port: int = 0, appendonly: bool = False, **config: str | int
        ) -> Embedded:
            named = {name.replace("_", "-"): value for name, value in config.items()}
            server = Embedded(folder, port, named, appendonly=appendonly, binary=server_binary)
            return stack.enter_context(server)

        yield serve


@pytest.fixture
def user(raw: redis.Redis, embedded: Embedded, namespace: str) -> Iterator[Callable[..., Settings]]:
    """`user()` makes a user with no more than the rules say (or those given), and gives settings that log in as it."""
    name, password = f"user-{namespace}", "p@ss/w:rd#%"

    def user(given: str | None = None, **settings: object) -> Settings:
        raw.execute_command("ACL", "DELUSER", name)
        words = (rules(namespace) if given is None else given).split()
        raw.execute_command("ACL", "SETUSER", name, "on", f">{password}", *words)
        url = f"redis://{name}:{quote(password, safe='')}@127.0.0.1:{embedded.port}/0"
        return Settings(url=url, namespace=namespace, **settings)  # type: ignore[arg-type]

    yield user
    raw.execute_command("ACL", "DELUSER", name)
