"""Processes that die with us: the command line that asks the kernel to be ended with its parent, then becomes another.

A preexec_fn would run Python between fork and exec, which deadlocks in a program with threads. Where there is no such
signal (macOS) the process just starts. The tie is to the *thread* that starts it: one that ends takes it along.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

_PROGRAM = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, int(sys.argv[1]))
    if os.getppid() != int(sys.argv[2]):
        sys.exit("the process that started this one is gone")
os.execv(sys.argv[3], sys.argv[3:])
"""


def tied(command: Sequence[str], number: signal.Signals) -> list[str]:
    """The words to start `command` (a full path and its arguments) with; it gets the signal when we end."""
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, str(int(number)), str(os.getpid()), *command]
