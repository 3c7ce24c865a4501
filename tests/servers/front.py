"""TLS before a server that has none: ends it on a port of its own and passes on what is said.

Most server programs on PyPI are built without TLS; to a client this looks as if they were built with it.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import Self

from tests.servers.certificates import Certificates


class Front:
    """Listens while it is entered; `port` is where. With `clients` it asks them for a certificate."""

    def __init__(self, port: int, certificates: Certificates, *, clients: bool = False) -> None:
        self._behind = port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificates.certificate("server"), certificates.key("server"))
        if clients:
            self._context.load_verify_locations(certificates.ca)
            self._context.verify_mode = ssl.CERT_REQUIRED
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._door.accept()
                threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        with caller, contextlib.suppress(OSError):
            caller.settimeout(5)
            try:
                inside = self._context.wrap_socket(caller, server_side=True)
            except ssl.SSLError:
                return  # no TLS, or the wrong one: hang up, as a server does
            with inside, socket.create_connection(("127.0.0.1", self._behind)) as behind:
                inside.settimeout(None)
                threading.Thread(target=_pass_on, args=(behind, inside), daemon=True).start()
                _pass_on(inside, behind)


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while said := one.recv(65536):
            other.sendall(said)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)
