"""What a Redis URL means: which servers, how to log in, and how to show it.

Pure: nothing is looked up or connected to. No message and no repr shows a
password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from taskq.errors import did_you_mean, shown

_Kind: TypeAlias = Literal["single", "cluster", "sentinel"]
_Refuse: TypeAlias = Callable[[str], ValueError]  # from a rule, the error that tells it


@dataclass(frozen=True, slots=True)
class Address:
    """Which servers a URL means.

    `hosts` are (name, port) pairs: one for "single", entry points for "cluster", the sentinels for
    "sentinel"; empty for a Unix socket, which is at `path`. `options` are TLS and sentinel
    parameters under redis-py's names.
    """

    kind: _Kind
    hosts: tuple[tuple[str, int], ...]
    path: str | None = None
    db: int = 0
    tls: bool = False
    master: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    options: Mapping[str, str | bool] = field(default_factory=dict, repr=False)

    @property
    def where(self) -> str:
        """The place for messages: "db.example:6379", "/run/redis.sock", "mymaster at s1:26379,s2:26379"."""
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return self.path or (f"{self.master} at {hosts}" if self.master else hosts)


_SCHEMES: dict[str, _Kind] = {
    "redis": "single",
    "rediss": "single",
    "unix": "single",
    "redis+cluster": "cluster",
    "rediss+cluster": "cluster",
    "redis+sentinel": "sentinel",
    "rediss+sentinel": "sentinel",
}
_TLS_FILES = {"ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_cert_reqs"}
_PARAMETERS = {*_TLS_FILES, "ssl_check_hostname", "username", "password", "db"}
_NAMES = re.compile(r"[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")
_SHOWN = 200
_SENTINEL_PARAMETERS = {"sentinel_username", "sentinel_password"}


def parse_url(url: str) -> Address:
    """Which servers a URL means, without talking to any.

    Forms: `redis://[[user]:password@]host[:port][/db]`, `rediss://` (TLS), `unix:///path?db=0`,
    `redis+cluster://h1:p,h2:p`, `rediss+cluster://…`, `redis+sentinel://h1:p,h2:p/master[/db]`.
    Query parameters: `username password db ssl_ca_certs ssl_ca_path ssl_certfile ssl_keyfile
    ssl_password ssl_cert_reqs ssl_check_hostname sentinel_username sentinel_password`.

    Raises:
        ValueError: anything else; the message shows the URL without its password.
    """

    def refuse(rule: str) -> ValueError:
        return ValueError(f"the URL {_legible(mask_url(url))} can't be used: {rule}")

    parts = _split(url, refuse)
    kind, unix = _SCHEMES[parts.scheme], parts.scheme == "unix"
    query = _query(parts, refuse)
    socket, master, db = _path(parts, refuse)
    db = query.pop("db", None) or db or "0"
    if not re.fullmatch("[0-9]{1,9}", db) or (kind == "cluster" and int(db)):
        raise refuse("the database is a number from 0 on (in a cluster only 0)")
    login, _, netloc = parts.netloc.rpartition("@")
    hosts = () if unix else tuple(_host(host, 26379 if master else 6379) for host in netloc.split(","))
    if None in hosts or (kind == "single" and len(hosts) > 1):
        raise refuse(
            "a host is name:port with a port from 1 to 65535 (anything else in its place is hidden, for it may be a"
            " password), and only a cluster or sentinels have several, separated by ','"
        )
    user, _, password = login.partition(":")
    return Address(
        kind=kind,
        hosts=tuple(host for host in hosts if host),
        path=socket,
        db=int(db),
        tls=parts.scheme.startswith("rediss"),
        master=master,
        username=query.pop("username", None) or unquote(user) or None,
        password=query.pop("password", None) or unquote(password) or None,
        options=_options(query, refuse),
    )


def mask_url(url: str) -> str:
    """The URL with `***` for whatever may be secret, however malformed the URL is."""
    # Up to the last '@', since a password with an unescaped '/' or '@' must not slip out.
    masked = re.sub(r"(?s)(://[^:@/]*:).*@", r"\1***@", url)
    if masked == url:
        masked = re.sub(r"(?s)://.*@", "://***@", url)
    # Where a port should be and no number is: somebody forgot the host after the password.
    masked = re.sub(r"(://[^/?@\[\]:,]*:)(?![0-9]{1,5}(?:[/?,]|$))[^/?,@]+", r"\1***", masked)
    return re.sub(r"(?i)([?&][^=&#]*password=)[^&#]*", r"\1***", masked)


def _split(url: str, refuse: _Refuse) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        raise refuse("an IPv6 address stands in brackets, as in redis://[::1]:6379/0") from None
    if parts.scheme not in _SCHEMES or "://" not in url:
        raise refuse(f"it starts with one of {' '.join(f'{scheme}://' for scheme in _SCHEMES)}")
    if "#" in url or "@" in parts.path + parts.query:
        raise refuse("write '#', '/', '?' and '@' in a password as %23, %2F, %3F and %40")
    return parts


def _query(parts: SplitResult, refuse: _Refuse) -> dict[str, str]:
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    known = _PARAMETERS | (_SENTINEL_PARAMETERS if "sentinel" in parts.scheme else set())
    for parameter in query:
        if parameter not in known:
            raise refuse(f"it has an unknown parameter {shown(parameter)}{did_you_mean(parameter, known)}")
    if "rediss" not in parts.scheme and any(parameter.startswith("ssl_") for parameter in query):
        raise refuse(f"TLS parameters need a scheme with TLS, such as {parts.scheme.replace('redis', 'rediss')}://")
    return query


def _path(parts: SplitResult, refuse: _Refuse) -> tuple[str | None, str | None, str | None]:
    """(socket, master, database) as the path names them."""
    if "\0" in unquote(parts.path):
        raise refuse("no path holds a NUL byte")
    path = [unquote(part) for part in parts.path.split("/")[1:] if part]
    if parts.scheme == "unix":
        if parts.netloc.rpartition("@")[2] or not path:
            raise refuse("a socket's path is absolute, as in unix:///run/redis.sock")
        return unquote(parts.path), None, None
    master = path.pop(0) if "sentinel" in parts.scheme and path else None
    if "sentinel" in parts.scheme and not master:
        raise refuse("it names the master, as in redis+sentinel://s1:26379,s2:26379/mymaster/0")
    if len(path) > 1:
        raise refuse("only the number of the database may follow the host, as in redis://localhost:6379/0")
    return None, master, path[0] if path else None


def _host(text: str, default_port: int) -> tuple[str, int] | None:
    match = re.fullmatch(r"(?:\[(?P<v6>[0-9a-fA-F:.%]+)\]|(?P<name>[^\[\]:\s]*))(?::(?P<port>[0-9]{1,5}))?", text)
    port = int(match["port"] or default_port) if match else 0
    if match is None or not 0 < port < 65536:
        return None
    if match["name"] and not _NAMES.fullmatch(match["name"]):
        if not match["name"].isprintable():
            return None
        try:
            match["name"].encode("idna")
        except UnicodeError:
            return None
    return match["v6"] or match["name"] or "localhost", port


def _legible(url: str) -> str:
    """For a message: on one line, and cut."""
    url = url if url.isprintable() else url.encode("unicode_escape").decode()
    return url if len(url) <= _SHOWN else url[:_SHOWN] + "..."


def _options(query: dict[str, str], refuse: _Refuse) -> dict[str, str | bool]:
    options: dict[str, str | bool] = dict(query)
    if "ssl_cert_reqs" in query:
        wanted = query["ssl_cert_reqs"].lower().removeprefix("cert_")
        if wanted not in ("none", "optional", "required"):
            raise refuse("ssl_cert_reqs is one of none, optional, required")
        options["ssl_cert_reqs"] = wanted
    if "ssl_check_hostname" in query:
        wanted = query["ssl_check_hostname"].lower()
        if wanted not in ("true", "false", "1", "0", "yes", "no"):
            raise refuse("ssl_check_hostname is true or false")
        options["ssl_check_hostname"] = wanted in ("true", "1", "yes")
    return options
