"""Real nodes, as a person starts them: `taskq worker APP` in a process of its own, with its log in a file.

For the guide and for chaos. A `Fleet` ends all its nodes with the test, whatever became of them.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.waiting import wait_until

_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT")
ROOT = Path(__file__).parents[1]
READY_S = 50.0  # three processes start, on a machine that may be busy; below the time a test may take


class Node:
    """One node: its process, its workers' pids, its log; `told`: it was asked to end."""

    def __init__(self, app: str, *flags: str, folder: Path, environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        self.told = False
        self.expected = int(flags[flags.index("-w") + 1]) if "-w" in flags else 1
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "taskq.cli", "worker", app, "--log-format", "text", *flags],
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(ROOT)} | dict(environment),
                start_new_session=True,
            )
        self.pid = self.process.pid

    def workers(self) -> list[int]:
        """Pids of its living children."""
        try:
            found = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except OSError:
            return []
        return sorted(int(pid) for pid in found if _state_of(int(pid)) not in {"Z", "X", ""})

    def text(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace")

    def faults(self) -> list[str]:
        """Log lines that a traceback follows, but for those about a job that failed: these are ours to explain."""
        found, last = [], ""
        for line in self.text().splitlines():
            if _LOG_LINE.match(line):
                last = line
            elif line.startswith("Traceback") and "job failed" not in last and "attempt failed" not in last:
                found.append(last)
        return found

    def until_ready(self) -> Node:
        """Wait until all its workers claim."""
        try:
            wait_until(self._ready, READY_S)
        except AssertionError as error:
            raise AssertionError(f"the node did not start:\n{self.text()[-4000:]}") from error
        return self

    def _ready(self) -> bool:
        assert self.process.poll() is None, "it ended"
        text = self.text()
        return "node started" in text and text.count("worker ready") >= self.expected == len(self.workers())

    def signal(self, number: int) -> None:
        """Signal the node alone."""
        self.told = True
        os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM: drain."""
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL for the node; its workers die with it. Returns once they are gone."""
        workers = self.workers()
        self.process.kill()
        self.process.wait()
        wait_until(lambda: not any(alive(pid) for pid in workers), 5, what="the death of its workers")

    def wait(self, timeout: float = 30) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(timeout)

    def close(self) -> None:
        """End it, however."""
        if self.process.poll() is None:
            for pid in self.workers():
                _send(pid, signal.SIGCONT)
            self.kill()


class Fleet:
    """Starts nodes of one app on one server, and ends them all.

    Args:
        app: `module[:attribute]`.
        folder: from where, as a person's current folder.
        environment: what the nodes' environment has besides our own.
        logs: where their logs go.
    """

    def __init__(self, app: str, *, folder: Path, environment: Mapping[str, str], logs: Path) -> None:
        self.nodes: list[Node] = []
        self._app = app
        self._folder = folder
        self._environment = dict(environment)
        self._logs = logs

    def begin(self, *flags: str, **environment: str) -> Node:
        """Start a node and don't wait for it."""
        log = self._logs / f"node-{len(self.nodes) + 1}.log"
        node = Node(self._app, *flags, folder=self._folder, environment=self._environment | environment, log=log)
        self.nodes.append(node)
        return node

    def start(self, *flags: str, **environment: str) -> Node:
        """Start a node and wait until all its workers claim."""
        return self.begin(*flags, **environment).until_ready()

    def living(self) -> list[Node]:
        """The nodes that run and weren't told to end."""
        return [node for node in self.nodes if node.process.poll() is None and not node.told]

    def pids(self) -> list[int]:
        """Every living worker, and every living node."""
        living = [node for node in self.nodes if node.process.poll() is None]
        return sorted([pid for node in living for pid in node.workers()] + [node.pid for node in living])

    def text(self) -> str:
        """All logs, one after the other."""
        return "\n".join(f"--- {node.log.name}\n{node.text()}" for node in self.nodes)

    def close(self) -> None:
        """End every node."""
        for node in self.nodes:
            node.close()


def alive(pid: int) -> bool:
    """Whether a process lives; a zombie doesn't."""
    return _state_of(pid) not in {"Z", "X", ""}


def _state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
