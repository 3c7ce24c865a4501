"""What a forked child does with its parent's connections: nothing, not even to close them as they are forgotten.

The sockets and the event loop's watch over them are shared. Python closes a stream that is no longer referred to, and
by that the loop stops to look at its socket: said in the child, the parent's connection would be deaf.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redis.asyncio import Connection

_open: weakref.WeakSet[Connection] = weakref.WeakSet()
_left: list[object] = []


class _Left:
    """Stands for the parent's transport: closed, as far as the child is concerned."""

    def is_closing(self) -> bool:
        """Whether there is nothing to close."""
        return True


def mark(connection: Connection) -> None:
    """Remember that a connection belongs to this process alone."""
    _open.add(connection)


def _leave() -> None:
    for connection in list(_open):
        writer = connection._writer  # noqa: SLF001
        connection._writer = connection._reader = None  # noqa: SLF001
        if writer is not None:
            _left.append(writer._transport)  # type: ignore[attr-defined] # noqa: SLF001
            writer._transport = _Left()  # type: ignore[attr-defined] # noqa: SLF001
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave)
