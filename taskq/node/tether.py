"""What ties a worker to its node: descriptors handed over, death with the parent, deafness to its node's signals.

A worker that outlived its node would run jobs nobody renews. Three things end it: the kernel's parent-death signal
(also while C code holds the GIL), a look at getppid (the parent may have died before the signal was asked for), and a
pipe whose end of file a thread waits for (where there is no such signal, as on macOS, it stands alone). A byte in that
pipe asks what runs here: the thread answers also while the loop is held.

The order of the worker's first lines:

    ends = Ends.from_argv(sys.argv[1:])
    tie(ends.parent_pid)
    table = Table.attach(ends.table_fd)
    watch(ends.pipe_fd, table.beat_thread, account.tell)
    start = channel.hear(ends.socket())
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_PR_SET_PDEATHSIG = 1
_TICK_MS = 1_000
_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Ends:
    """The descriptors a worker inherits, and its parent's pid, as words on its command line."""

    channel_fd: int
    table_fd: int
    pipe_fd: int
    parent_pid: int

    def to_argv(self) -> list[str]:
        """As the last words of the worker's command line."""
        return [f"--ends={self.channel_fd},{self.table_fd},{self.pipe_fd},{self.parent_pid}"]

    @classmethod
    def from_argv(cls, argv: Sequence[str]) -> Ends:
        """Read them back, and keep them from being inherited any further by what user code starts.
        Raises ValueError if a person has called the worker by hand.
        """
        for word in argv:
            if word.startswith("--ends="):
                ends = cls(*map(int, word[7:].split(",")))
                for fd in (ends.channel_fd, ends.table_fd, ends.pipe_fd):
                    os.set_inheritable(fd, False)  # noqa: FBT003 - positional only
                return ends
        raise ValueError("a worker is started by its node: use `taskq worker APP`")

    def socket(self) -> socket.socket:
        """The worker's end of the channel."""
        return socket.socket(fileno=self.channel_fd)


def tie(parent_pid: int) -> None:
    """Die with the parent, and leave signals to it. Called from the main thread, first of all.

    SIGTERM, SIGINT and SIGUSR1 reach a worker when somebody signals the whole control group; the node decides what
    happens then, so here they do nothing. They get a handler rather than SIG_IGN: what is ignored stays ignored in
    programs that user code starts, which could then not be terminated.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, _nothing)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


def watch(pipe_fd: int, tick: Callable[[], None], asked: Callable[[], None] = lambda: None) -> threading.Thread:
    """Start the thread that calls `tick` every second, `asked` when the node asks what runs here, and that kills this
    process, with all it started in its process group, when the pipe's other end is gone.
    """
    thread = threading.Thread(target=_watch, args=(pipe_fd, tick, asked), name="taskq-tether", daemon=True)
    thread.start()
    return thread


def _watch(pipe_fd: int, tick: Callable[[], None], asked: Callable[[], None]) -> None:
    poll = select.poll()
    poll.register(pipe_fd, select.POLLIN)
    while True:
        tick()
        if not poll.poll(_TICK_MS):
            continue
        if not os.read(pipe_fd, _BYTES):
            die()
        asked()


def die() -> None:
    """SIGKILL for this process, and for its group where it leads one."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _nothing(_signal: int, _frame: object) -> None:
    """The node has the signal too."""
