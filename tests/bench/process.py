"""A real node for the rows that need one, and what the machine says of its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

Node = subprocess.Popen[bytes]

_RUN = "import sys; from taskq.cli.main import main; sys.exit(main())"


def environment(url: str) -> dict[str, str]:
    """What a process of the bench needs to find its server and its app."""
    root = str(Path(__file__).resolve().parents[2])
    return os.environ | {
        "TASKQ_URL": url,
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
    }


@contextmanager
def node(url: str, *arguments: str, app: str = "tests.bench.app", log_level: str = "warning") -> Iterator[Node]:
    """`taskq worker APP` with default settings, ended by SIGTERM."""
    command = [sys.executable, "-c", _RUN, "worker", app, "--log-level", log_level, *arguments]
    process = subprocess.Popen(command, env=environment(url))
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def children(pid: int) -> list[int]:
    """The processes that `pid` started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def memory_bytes(pid: int) -> int:
    """What a process alone would free: its unique set (private pages)."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return 1024 * sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_"))


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def until(predicate: object, timeout_s: float = 120.0, every_s: float = 0.005) -> None:
    """Waits for something to be true."""
    end = time.monotonic() + timeout_s
    while not predicate():  # type: ignore[operator]
        if time.monotonic() > end:
            raise TimeoutError(f"not within {timeout_s} s")
        time.sleep(every_s)
