"""The processes of the demo: a server, and a node with two workers, as a user would start them.

Which process is which worker is read from the node's own log. Everything dies with us.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, Self

from taskq.cli import child
from taskq.embedded import Embedded, find_binary
from taskq.errors import Unavailable

_SERVER_S = 15.0


@contextlib.contextmanager
def server(*, keep: bool) -> Iterator[Server]:
    """A server that ends with the block. With `keep` it is a process of its own, left up if the block ends well."""
    if not keep:
        with Embedded(port=0) as embedded:
            yield Server(embedded.url, None)
        return
    find_binary()  # says in words why there can be no server
    # Not tied to us, for it is to stay; but on a leash, until it is told so.
    command = child.taskq("server", "--port", "0", "--leash")
    pipe = subprocess.PIPE
    process = child.start(command, tied=False, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    try:
        yield Server(_first_line(process), process.pid)
        if process.stdin:
            process.stdin.write(b"stay\n")
            process.stdin.close()
    except BaseException:
        child.stop(process, patience_s=5.0)
        raise


class Server:
    """Where it is; `pid` is None if it ends with the demo."""

    def __init__(self, url: str, pid: int | None) -> None:
        self.url = url
        self.pid = pid


def _first_line(process: subprocess.Popen[bytes]) -> str:
    """What the server prints once it answers: its URL."""
    timer = threading.Timer(_SERVER_S, process.kill)
    timer.start()
    line = process.stdout.readline() if process.stdout else b""
    timer.cancel()
    if not line:
        raise Unavailable("the demo's server did not start")
    return line.decode().strip()


class Node:
    """`taskq worker` with its workers.

    Attributes:
        workers: pid of each worker that was started, by its id.
        died: ids of the workers that died.
    """

    def __init__(self, app: str, url: str, namespace: str, *, workers: int) -> None:
        place = ("--url", url, "--namespace", namespace)
        options = ("-w", str(workers), "--grace", "5", "--log-format", "json")
        self.workers: dict[str, int] = {}
        self.died: set[str] = set()
        self._last: deque[str] = deque(maxlen=5)
        self._process = child.start(child.taskq("worker", app, *place, *options), stderr=subprocess.PIPE)
        self._reader = threading.Thread(target=self._read, name="demo-node-log", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        child.stop(self._process, patience_s=10.0)
        self._reader.join(5.0)
        if self._process.stderr:
            self._process.stderr.close()

    @property
    def alive(self) -> bool:
        """Whether the node runs."""
        return self._process.poll() is None

    @property
    def last_words(self) -> str:
        """The end of its log, for when it has died."""
        self._reader.join(1.0)
        return " | ".join(self._last) or "it said nothing"

    def kill(self, worker: str) -> bool:
        """SIGKILL one worker; whether it was there."""
        pid = self.workers.get(worker)
        if pid is None or worker in self.died:
            return False
        os.kill(pid, signal.SIGKILL)
        return True

    def _read(self) -> None:
        for raw in self._process.stderr or ():
            text = raw.decode(errors="replace").strip()
            self._last.append(text)
            with contextlib.suppress(ValueError):
                line = json.loads(text)
                if isinstance(line, dict):
                    self._hear(line)

    def _hear(self, line: dict[str, Any]) -> None:
        if line.get("event") == "worker started":
            self.workers[str(line["worker"])] = int(line["worker_pid"])
        elif line.get("event") == "worker died":
            self.died.add(str(line["worker"]))
