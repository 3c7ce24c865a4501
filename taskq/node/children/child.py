"""One worker process as its node sees it: spawned, spoken with, killed, seen to end.

Spawned, not forked, from the main thread: the parent-death signal is tied to the thread that spawned, and the main
thread lives as long as the process. Each worker leads a session of its own, so that a terminal's Ctrl-C and a signal to
the node's process group reach the node alone, and so that whatever user code started in it can be killed with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from taskq.node.channel import Channel, Hello, Message, Start, ToWorker
from taskq.node.table import Entry, Table, now_ms
from taskq.node.tether import Ends

COMMAND = (sys.executable, "-m", "taskq.node.worker")


class Child:
    """A worker, from its start to its burial.

    Attributes:
        worker: its id, new at each start.
        table: what it runs; readable after its death, until `forget`.
        hello: what it said of APP; None before. `ready`: it claims. `drained`: it said that nothing is left.
        holding: it was told to claim nothing yet.
        born_ms: when it was started (monotonic).
        killed_for: why the node itself killed it; '' if it did not.
        culprits: the (id, epoch) whose hard timeout made the node kill it.
        forgiven: where the node killed it, its jobs had no part in that: only the culprits pay with an attempt.
        told: what the keeper has told it: (word, id, epoch).
        spare: it waits, loaded, until another asks to be replaced.
        loaded: set once it said hello.
        ageing: set once it should be replaced soon. `heavy`: because it takes too much memory.
        leaving: set once it asked to be replaced. `patient`: what it runs may take its time. `surplus`: there are too
            many, and nobody follows it.
        ended: set once it is dead, its process group too; `code` is then its return code (negative: a signal).
        over: set once it is dead and all it had said was heard.
    """

    def __init__(self, start: Start, slots: int, *, command: Sequence[str] = COMMAND) -> None:
        """Start the process. Must be called in the main thread."""
        self.worker = start.worker
        self.table = Table.create(slots)
        self.hello: Hello | None = None
        self.ready = False
        self.holding = start.hold
        self.drained = False
        self.born_ms = now_ms()
        self.killed_for = ""
        self.culprits: frozenset[tuple[str, int]] = frozenset()
        self.forgiven = True
        self.told: set[tuple[str, str, int]] = set()
        self.spare = False
        self.heavy = False
        self.patient = False
        self.surplus = False
        self.loaded = asyncio.Event()
        self.ageing = asyncio.Event()
        self.leaving = asyncio.Event()
        self.ended = asyncio.Event()
        self.over = asyncio.Event()
        self.code: int | None = None
        self._start = start
        self._channel: Channel | None = None
        self._end, theirs = socket.socketpair()
        pipe, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        ends = Ends(theirs.fileno(), self.table.fd, pipe, os.getpid())
        try:
            self._process = subprocess.Popen(
                [*command, start.app, *ends.to_argv()],
                stdin=subprocess.DEVNULL,
                pass_fds=(ends.channel_fd, ends.table_fd, ends.pipe_fd),
                start_new_session=True,
            )
        except OSError:
            self.forget()
            raise
        finally:
            theirs.close()
            os.close(pipe)
        self.pid = self._process.pid
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._wait, args=(loop,), name=f"wait-{self.pid}", daemon=True).start()

    async def listen(self, on_message: Callable[[Child, Message], None]) -> None:
        """Send the start message and pass on what the worker says, until it is gone."""
        self._channel = channel = await Channel.open(self._end)
        channel.send(self._start)
        while (message := await channel.receive()) is not None:
            on_message(self, message)

    def send(self, message: ToWorker) -> None:
        """Say something to the worker; nothing happens if it is gone."""
        if self._channel is not None:
            self._channel.send(message)

    def hang_up(self) -> None:
        """Its last word was heard."""
        if self._channel is not None:
            self._channel.close()

    def ask(self) -> None:
        """Have the worker log what runs in it, also while its loop is held."""
        with contextlib.suppress(OSError):  # it is gone, or was asked very often and doesn't answer
            os.write(self._pipe, b"?")

    def kill(self, why: str, culprits: frozenset[tuple[str, int]] = frozenset(), *, forgiven: bool = True) -> None:
        """SIGKILL for the process group, because the node decided so: its jobs are refunded but for `culprits`; not
        `forgiven`: each that has begun may be to blame, as if the worker had died by itself.
        """
        if self.killed_for or self._process.returncode is not None:
            return
        self.killed_for = why
        self.culprits = culprits
        self.forgiven = forgiven
        _kill_group(self.pid)

    def held(self) -> list[Entry]:
        """What stands in its table."""
        return self.table.read()

    @property
    def cause(self) -> str:
        """What ended it, for `worker died: W (...)`."""
        if self.killed_for:
            return self.killed_for
        if self.code is not None and self.code < 0:
            try:
                return signal.Signals(-self.code).name
            except ValueError:
                return f"signal {-self.code}"
        return f"exit code {self.code}"

    def forget(self) -> None:
        """Close what belonged to a dead child, once nobody will ask its table any more."""
        self.table.close()
        os.close(self._pipe)
        if self._channel is not None:
            self._channel.close()
        else:
            self._end.close()

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Runs in a thread of its own, asleep in the kernel until the child is dead. Its group is killed while the
        child is still a zombie: until it is reaped its number can't be given to another process.
        """
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            _kill_group(self.pid)
        code = self._process.wait()
        try:
            loop.call_soon_threadsafe(self._set_ended, code)
        except RuntimeError:
            return  # the loop is closed: the node itself is ending

    def _set_ended(self, code: int) -> None:
        self.code = code
        self.ended.set()


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped (state T), by a SIGSTOP say. A stopped worker runs nothing, so nobody renews for
    it. Where there is no /proc (macOS), False.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - a kernel file, read often
            return file.read().rpartition(b")")[2].split()[0] == b"T"
    except (OSError, IndexError):
        return False


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # nobody is left in it
