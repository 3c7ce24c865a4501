"""The TLS of an address, made once for all its connections, and again when a file of it was renewed.

The library would make it for each connection: reading the system's authorities takes 60 ms of CPU. Besides, its async
face knows fewer settings than its sync one, depending on the version. As in Python itself, an authority that is named
is the only one that is trusted, and a key whose password is missing is an error, never a prompt.
"""

from __future__ import annotations

import os
import ssl

from taskq.address import Address

_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
_CHECKS = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class Tls:
    """What an address's connections are wrapped in."""

    def __init__(self, address: Address) -> None:
        self._options = address.options
        self._stamp: tuple[int, ...] = ()
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """The context.

        Raises:
            ConnectionError: one of the files can't be used.
        """
        try:
            stamp = tuple(os.stat(str(self._options[each])).st_mtime_ns for each in _FILES if each in self._options)  # noqa: PTH116
            if self._context is None or stamp != self._stamp:
                self._context, self._stamp = self._make(), stamp
        except OSError as error:  # also an SSLError
            raise ConnectionError(f"the TLS files can't be used: {error}") from error
        return self._context

    def _make(self) -> ssl.SSLContext:
        said = {name: str(value) for name, value in self._options.items()}
        made = ssl.create_default_context(cafile=said.get("ssl_ca_certs"), capath=said.get("ssl_ca_path"))
        check = said.get("ssl_cert_reqs", "required")
        made.check_hostname = check != "none" and bool(self._options.get("ssl_check_hostname", True))
        made.verify_mode = _CHECKS[check]
        if "ssl_certfile" in said:
            password = said.get("ssl_password", "")
            made.load_cert_chain(said["ssl_certfile"], said.get("ssl_keyfile"), password=lambda: password)
        return made
