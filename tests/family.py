"""The processes below a process, as Linux tells them: for tests that look whether anything is left behind."""

from __future__ import annotations

from pathlib import Path


def children(pid: int) -> list[int]:
    """Pids of all that live below a process, whichever of its threads started them."""
    found: list[int] = []
    for each in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, each.read_text().split())
        except OSError:
            continue  # the thread has ended
    return found + [deeper for each in found for deeper in children(each)]


def gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in {"Z", "X"}
    except OSError:
        return True
