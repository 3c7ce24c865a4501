"""What a server was really told to write, in its order: the history, by which claims about leaders are judged.

MONITOR shows each call of a script, and behind it what the script then did. A reply may be lost and a record may be
written again later; neither hides here that a write was accepted, and whose it was.
"""

from __future__ import annotations

import re
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import redis

from taskq import scripts
from tests.waiting import wait_until

_LINE = re.compile(r'^\+[\d.]+ \[\d+ ([^\]]+)\] (".*)$')
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')


class Call(NamedTuple):
    """One call of a script.

    Attributes:
        script: its name.
        said: its arguments, by their names in its header. `rest`: those that follow.
        did: the commands that it ran.
    """

    script: str
    said: dict[str, str]
    rest: list[str]
    did: list[list[str]]


class Witness:
    """Watches a server, in a thread, from its making to `close`; only calls of these scripts.

    Args:
        client: of the server.
        names: of the scripts.
    """

    def __init__(self, client: redis.Redis, names: set[str]) -> None:
        self._client = client
        self._scripts = {scripts.load(name).sha: scripts.load(name) for name in names}
        for script in self._scripts.values():
            client.script_load(script.source)
        self._calls: list[Call] = []
        self._open: Call | None = None
        self._last = ""
        at = client.get_connection_kwargs()
        self._line = socket.create_connection((at["host"], at["port"]))
        self._line.sendall(b"MONITOR\r\n")
        self._lines = self._line.makefile(encoding="utf-8", errors="replace", newline="\r\n")
        assert next(self._lines) == "+OK\r\n"
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def calls(self) -> list[Call]:
        """All that the server was told before this was asked."""
        mark = uuid.uuid4().hex
        self._client.echo(mark)
        wait_until(lambda: mark in self._last, 60, what="the witness to have read all")
        return list(self._calls)

    def close(self) -> None:
        """Watch no longer."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._lines.close()
        self._line.close()

    def _watch(self) -> None:
        with suppress(OSError, ValueError):
            for source, line in self._told():
                if source == "lua":
                    if self._open is not None:
                        self._open.did.append(words(line))
                    continue
                if line.startswith('"ECHO"'):
                    self._last = line
                self._open = self._call(line)
                if self._open is not None:
                    self._calls.append(self._open)

    def _told(self) -> Iterator[tuple[str, str]]:
        for line in self._lines:
            if found := _LINE.match(line.rstrip("\r\n")):
                yield found[1], found[2]

    def _call(self, line: str) -> Call | None:
        """The call of a script that is watched, or None."""
        if line[:9].upper() != '"EVALSHA"':
            return None  # those that are watched are known to the server from the beginning
        said = words(line)
        script = self._scripts.get(said[1].lower())
        if script is None:
            return None
        args = said[3 + int(said[2]) :]
        named = dict(zip(script.args, args, strict=False))
        return Call(script.name, named, args[len(script.args) :], [])


def words(line: str) -> list[str]:
    """A command's words, as MONITOR writes them."""
    return [re.sub(r"\\(.)", r"\1", each) if "\\" in each else each for each in _WORD.findall(line)]
