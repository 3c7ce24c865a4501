"""Where one request or reply ends and the next begins (RESP 2), and which script a request calls.

Enough for a proxy that wants to harm one reply and no other.
"""

from __future__ import annotations

import hashlib
from collections import deque

from taskq import scripts


def split(data: bytes) -> tuple[list[bytes], bytes]:
    """The whole values that stand there, each with its bytes, and the beginning of one that doesn't end yet."""
    values, at = [], 0
    while (end := _end(data, at)) is not None:
        values.append(data[at:end])
        at = end
    return values, data[at:]


def _end(data: bytes, at: int) -> int | None:
    line = data.find(b"\r\n", at)
    if line < 0:
        return None
    kind, rest = data[at : at + 1], data[at + 1 : line]
    at = line + 2
    if kind == b"$" and rest != b"-1":
        at += int(rest) + 2
        return at if at <= len(data) else None
    if kind == b"*":
        for _ in range(int(rest)):
            end = _end(data, at)
            if end is None:
                return None
            at = end
    return at


def words(request: bytes) -> list[bytes]:
    """A request's words."""
    found, at = [], request.index(b"\r\n") + 2
    while at < len(request):
        line = request.index(b"\r\n", at)
        size = int(request[at + 1 : line])
        found.append(request[line + 2 : line + 2 + size])
        at = line + 2 + size + 2
    return found


class Asked:
    """What was asked on one connection and isn't answered yet: scripts by name, everything else as its command.

    `blind`: nothing is known any more, because the server pushes, or because something was swallowed.
    """

    def __init__(self) -> None:
        self.blind = False
        self._open: deque[str] = deque()
        self._names = {scripts.load(name).sha: name for name in scripts.names()}
        self._begun = b""
        self._half = b""

    def ask(self, data: bytes) -> None:
        """Take in what a client sent."""
        if self.blind:
            return
        requests, self._begun = split(self._begun + data)
        for request in requests:
            said = words(request)
            command = said[0].upper().decode()
            self.blind = self.blind or command == "SUBSCRIBE"
            if command == "EVALSHA":
                command = self._names.get(said[1].decode().lower(), command)
            elif command == "EVAL":
                sha = hashlib.sha1(said[1], usedforsecurity=False).hexdigest()
                command = self._names.get(sha, command)
            self._open.append(command)

    def answer(self, data: bytes) -> list[tuple[str, bytes]]:
        """Take in what the server sent; the whole replies, each with what it answers. NOSCRIPT answers no script."""
        if self.blind:
            return [("", data)]
        replies, self._half = split(self._half + data)
        named = [(self._open.popleft(), reply) for reply in replies]
        return [("" if reply.startswith(b"-NOSCRIPT") else name, reply) for name, reply in named]
