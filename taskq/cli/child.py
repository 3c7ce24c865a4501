"""Processes that `dev` and the demo start: they die with us, however we end, and only we hear the terminal's Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

# Asks the kernel to be killed with its parent, then becomes the command. Not a preexec_fn: that would run Python
# between fork and exec. The signal is SIGKILL: whoever dies without a word takes its server along, and a node without
# a server has nothing to drain to.
_TIED = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


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
    words = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), *command] if tied else list(command)
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
