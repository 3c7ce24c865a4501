"""Commands as the bytes that are sent, for both faces. hiredis packs by itself: the library would look at each argument
first, which costs its sync face a fifth of a batch, and its async face, which packs in Python, 3 µs a job.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hiredis import pack_command

from taskq.commands.command import Command

_ASKING: bytes = pack_command(("ASKING",))


def one(words: tuple[Any, ...], *, asking: bool = False) -> bytes:
    """One command. `asking`: to a shard that takes over the slot only now; that word has an answer of its own."""
    packed: bytes = pack_command(words)
    return _ASKING + packed if asking else packed


def call(command: Command[Any], *, source: bool = False) -> tuple[Any, ...]:
    """The words of an operation: its script by hash, or with `source` as it is."""
    script = ("EVAL", command.script.source) if source else ("EVALSHA", command.script.sha)
    return (*script, len(command.keys), *command.keys, *command.args)


def many(commands: Iterable[Command[Any]]) -> bytes:
    """Operations, one after the other, their scripts by hash."""
    return b"".join([pack_command(call(each)) for each in commands])
