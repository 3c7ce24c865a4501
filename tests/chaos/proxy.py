"""A TCP proxy that misbehaves on request, between nodes and their server.

`mode` holds for all its connections, also for those that are open: "pass"; "deaf", which delivers requests and drops
their replies, so that nobody knows what was done; "hole", which swallows everything and closes nothing; "snap", which
closes a connection instead of passing on a reply. `delay_s`: how much later a reply arrives.
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


class Proxy:
    """Listens on a port of its own, in threads; `url` leads to the server behind it."""

    def __init__(self, port: int) -> None:
        self.mode: Literal["pass", "deaf", "hole", "snap"] = "pass"
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
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._target), 5) as server:
            other = {client: server, server: client}
            while True:
                for source in select.select(list(other), [], [])[0]:
                    data = source.recv(65536)
                    if not data:
                        return
                    if source is server:
                        if self.mode == "snap":
                            return
                        time.sleep(self.delay_s)
                    if self.mode == "pass" or (self.mode in {"deaf", "snap"} and source is client):
                        other[source].sendall(data)
        self._lines.discard(client)


def _shut(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
