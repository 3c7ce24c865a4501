"""A TCP proxy that misbehaves on request, between nodes or producers and their server.

`mode` holds for all its connections, also for those that are open: "pass"; "deaf", which delivers requests and drops
their replies, so that nobody knows what was done; "hole", which swallows everything and closes nothing; "snap", which
closes a connection instead of passing on a reply. `fate` decides over each single reply, by what it answers: a script,
or another command. `delay_s`: how much later a reply arrives.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Literal

from tests.chaos.wire import Asked

Fate = Literal["pass", "half", "lost"]


class Proxy:
    """Listens on a port of its own, in threads; `url` leads to the server behind it.

    Attributes:
        fate: called with what a reply answers. "half" delivers half of it, "lost" none; both close the connection.
    """

    def __init__(self, port: int) -> None:
        self.mode: Literal["pass", "deaf", "hole", "snap"] = "pass"
        self.fate: Callable[[str], Fate] | None = None
        self.delay_s = 0.0
        self._target = port
        self._lines: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self._spawn(self._accept)

    def lead(self, port: int) -> None:
        """New connections go to another server, as where a name was pointed elsewhere. Those that are open stay."""
        self._target = port

    def cut(self) -> None:
        """Close every connection."""
        for line in list(self._lines):
            _shut(line)

    def close(self) -> None:
        """Close every connection and take no more."""
        _shut(self._listener)
        self._threads.pop(0).join(5)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(5)

    def _spawn(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._lines.add(client)
                self._spawn(partial(self._carry, client))

    def _carry(self, client: socket.socket) -> None:
        """One connection, to its end."""
        try:
            with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._target), 5) as server:
                self._pass_on(client, server, Asked())
        finally:
            self._lines.discard(client)

    def _pass_on(self, client: socket.socket, server: socket.socket, asked: Asked) -> None:
        for line in (client, server):
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            for source in select.select([client, server], [], [])[0]:
                data = source.recv(65536)
                if not data:
                    return
                if source is server:
                    if self.mode == "snap":
                        return
                    time.sleep(self.delay_s)
                if self.mode == "hole":
                    asked.blind = True
                elif source is client:
                    asked.ask(data)
                    server.sendall(data)
                elif not self._answer(client, asked.answer(data)):
                    return

    def _answer(self, client: socket.socket, replies: list[tuple[str, bytes]]) -> bool:
        """Deliver replies as far as they may be; whether the connection goes on."""
        for what, reply in replies:
            fate = self.fate(what) if self.fate is not None and what else "pass"
            if self.mode == "pass":
                client.sendall(reply[: len(reply) // 2] if fate == "half" else b"" if fate == "lost" else reply)
            if fate != "pass":
                return False
        return True


def _shut(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
