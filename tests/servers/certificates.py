"""A certificate authority made for one run of the tests, and what it signed. Needs the program `openssl`."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Certificates:
    """Files: an authority, what it signed for a server and a client, and an authority that signed neither."""

    folder: Path

    @property
    def ca(self) -> str:
        return str(self.folder / "ca.pem")

    @property
    def stranger(self) -> str:
        return str(self.folder / "stranger.pem")

    def key(self, who: str) -> str:
        return str(self.folder / f"{who}.key")

    def certificate(self, who: str) -> str:
        return str(self.folder / f"{who}.pem")

    def encrypted(self, who: str, password: str) -> str:
        """That key once more, under a password."""
        _openssl(self.folder, "pkey", "-in", f"{who}.key", "-aes256", "-passout", f"pass:{password}",
                 "-out", f"{who}.locked.key")  # fmt: skip
        return str(self.folder / f"{who}.locked.key")


def make(folder: Path) -> Certificates:
    """Make all of them in that folder. The server's certificate is for `localhost`, not for its address."""
    for name in ("ca", "stranger"):
        _openssl(folder, "req", "-x509", *_KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2",
                 "-subj", f"/CN=taskq {name}", "-addext", "keyUsage=critical,keyCertSign")  # fmt: skip
    (folder / "server.ext").write_text("subjectAltName=DNS:localhost\n")
    (folder / "client.ext").write_text("extendedKeyUsage=clientAuth\n")
    for name in ("server", "client"):
        _openssl(folder, "req", *_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        _openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                 "-out", f"{name}.pem", "-days", "2", "-extfile", f"{name}.ext")  # fmt: skip
    return Certificates(folder)


def _openssl(folder: Path, *words: str) -> None:
    done = subprocess.run(["openssl", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
