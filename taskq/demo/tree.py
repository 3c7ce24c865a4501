"""Which files the demo reads: every regular file under a folder, and what they looked like when they were listed."""

from __future__ import annotations

import os
import stat
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# What isn't part of the library that came with Python: made by it, or installed into it.
_NOT_THE_LIBRARYS = {"__pycache__", "site-packages", "dist-packages"}


class File(NamedTuple):
    """A file by its full path, and its time of change and size; None if it can't be looked at."""

    path: str
    mark: tuple[int, int] | None


def standard_library() -> Path:
    """The folder of the running Python's standard library."""
    return Path(sysconfig.get_path("stdlib"))


def files(folder: Path) -> list[File]:
    """Every file under a folder, in order of its path. Pipes, sockets and devices aren't files to read."""
    found = [File(path, mark(path)) for path in _walk(folder)]
    return sorted(found, key=lambda file: file.path)


def mark(path: str) -> tuple[int, int] | None:
    """Time of change in ns and size of a regular file; None if there is none."""
    try:
        seen = os.stat(path)  # noqa: PTH116 - thousands of texts, no need for objects
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size


def sendable(path: str) -> str | bytes:
    """The path as a job carries it: text, or bytes where the name isn't UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def _walk(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder.absolute()):
        folders[:] = [name for name in folders if name not in _NOT_THE_LIBRARYS]
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118 - as above
            if _may_be_read(path):
                yield path


def _may_be_read(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - as above
    except OSError:
        return True  # a link to nowhere, say: its job will fail, as in life
