"""The way to the server: the only room that imports redis, and only when something is sent.

`connect` and `connect_async` give a handle at once, without I/O; `run` and `run_async` execute a command on it within
a deadline. A broken connection, a failover, a server that loads its data: the command is sent again until the deadline
passes, which is safe, because every command may be repeated. Errors of redis come out as ours, the cause kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from taskq.commands.command import Command
from taskq.connection.aio import AsyncServer
from taskq.connection.sync import Server
from taskq.connection.translate import passing
from taskq.errors import Unavailable
from taskq.settings import Settings

__all__ = [
    "AsyncServer",
    "Server",
    "connect",
    "connect_async",
    "passes",
    "run",
    "run_async",
    "run_many",
    "run_many_async",
]

T = TypeVar("T")


def connect(settings: Settings, *, role: str = "client") -> Server:
    """A handle for threads. No I/O; safe to make before a fork and to use after it.

    Args:
        settings: where the server is and how long a call may take.
        role: the name the server shows in `CLIENT LIST`: `taskq:<role>`.
    """
    return Server(settings, role=role)


def connect_async(settings: Settings, *, role: str = "client") -> AsyncServer:
    """A handle for coroutines, usable from several event loops. No I/O. Arguments as for `connect`."""
    return AsyncServer(settings, role=role)


def run(server: Server, command: Command[T], *, deadline_s: float | None = None) -> T:
    """Executes a command.

    Args:
        server: from `connect`.
        command: from `taskq.commands`.
        deadline_s: how long to try; default: the settings' `deadline`.

    Raises:
        Unavailable: the server did not answer in time, or refuses us.
        ServerFull: it is at maxmemory.
        ServerUnsupported: it lacks something taskq needs.
    """
    return server.run(command, deadline_s=deadline_s)


def run_many(server: Server, commands: Sequence[Command[T]], *, deadline_s: float | None = None) -> list[T]:
    """Executes commands in one round trip; raises the first error after all were answered. As `run` otherwise."""
    return server.run_many(commands, deadline_s=deadline_s)


async def run_async(server: AsyncServer, command: Command[T], *, deadline_s: float | None = None) -> T:
    """Executes a command. As `run`."""
    return await server.run(command, deadline_s=deadline_s)


async def run_many_async(
    server: AsyncServer, commands: Sequence[Command[T]], *, deadline_s: float | None = None
) -> list[T]:
    """Executes commands in one round trip. As `run_many`."""
    return await server.run_many(commands, deadline_s=deadline_s)


def passes(error: Unavailable) -> bool:
    """Whether a later call may well succeed: the server was away or busy, and didn't refuse us."""
    return error.__cause__ is not None and passing(error.__cause__)
