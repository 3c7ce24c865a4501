"""Processes that `dev` and the demo start: they die with us, however we end, and only we hear the terminal's Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

from taskq.tied import tied as tied_to_us


def taskq(*arguments: str) -> list[str]:
    """The command line of a taskq command, by this interpreter."""
    return [sys.executable, "-m", "taskq.cli", *arguments]


def start(
    command: Sequence[str],
    *,
    tied: bool = True,
    theirs: bool = False,
    stdin: int | IO[bytes] | None = subprocess.DEVNULL,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    environ: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program by its full path.

    Args:
        command: program and arguments.
        tied: whether it is killed when we die. Call it in the main thread then: the tie is to the calling thread.
        theirs: whether it is the user's own program: it shares our terminal, and hears Ctrl-C itself. Ours have a
            session of their own, so that we end them in order.
        stdin: as for Popen; nothing unless given.
        stdout: as for Popen.
        stderr: as for Popen.
        environ: its environment; ours unless given.
    """
    # SIGKILL: whoever dies without a word takes its server along, and a node without a server has nothing to drain to.
    words = tied_to_us(command, signal.SIGKILL) if tied else list(command)
    return subprocess.Popen(
        words,
        stdin=None if theirs else stdin,
        stdout=stdout,
        stderr=stderr,
        env=environ,
        start_new_session=not theirs,
    )


def stop(process: subprocess.Popen[bytes], *, patience_s: float) -> int:
    """SIGTERM; after `patience_s` again, then SIGKILL. Gives the return code. Safe on one that has ended.

    To a node the first means to drain and the second to hurry.
    """
    for number, seconds in ((signal.SIGTERM, patience_s), (signal.SIGTERM, 5.0), (signal.SIGKILL, None)):
        if process.poll() is None:
            process.send_signal(number)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
    return process.wait()
