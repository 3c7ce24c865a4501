"""A job that forks: its child is a copy of this worker, but no worker.

It has the worker's sockets and its event loop, and no right to either: whatever it did with them would be done to the
parent's. So a child whose code comes back to ours, by returning, raising or waiting, ends at once.
"""

from __future__ import annotations

import asyncio
import os
import threading

_child = False


def mark(loop: asyncio.AbstractEventLoop) -> None:
    """From now on children of this process know what they are. Called by the loop's thread, once in a process."""
    thread = threading.get_ident()

    def in_child() -> None:
        global _child  # noqa: PLW0603 (it is the process that is one)
        _child = True
        if threading.get_ident() == thread:
            loop.call_soon(leave)  # for code beside the jobs, such as a task of theirs, which comes back to the loop

    os.register_at_fork(after_in_child=in_child)


def leave(error: BaseException | None = None) -> None:
    """End this process if it is a child, with 0, or with 1 if `error` ended its code (SystemExit says for itself)."""
    if not _child:
        return
    code = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    os._exit(code & 0xFF)
