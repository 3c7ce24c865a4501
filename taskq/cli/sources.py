"""Which Python files of a project have changed: looked at by time and size, in steps, so that no watcher is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_NOT_OURS = {"__pycache__", "node_modules", "site-packages", "venv"}
_FILES_MAX = 20_000  # more than any project's own sources; a home folder as the current one must not stall us

Stamp = dict[str, tuple[int, int]]


def stamp(folder: Path) -> Stamp:
    """Time of change and size of each `.py` file under a folder, without hidden and installed ones."""
    stamps: Stamp = {}
    for entry in _python_files(folder):
        try:
            seen = entry.stat()
        except OSError:
            continue  # gone between listing and looking: the next look sees it
        stamps[entry.path] = (seen.st_mtime_ns, seen.st_size)
        if len(stamps) >= _FILES_MAX:
            break
    return stamps


def changed(before: Stamp, after: Stamp) -> list[str]:
    """Files that are new, gone or different, by name."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _python_files(folder: Path) -> Iterator[os.DirEntry[str]]:
    waiting = [os.fspath(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or entry.name in _NOT_OURS:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):  # noqa: PTH110, PTH118 (many)
                            waiting.append(entry.path)
                    elif entry.name.endswith(".py"):
                        yield entry
        except OSError:
            continue  # not readable for us, so not imported by us either
