"""What is wrong with a server or the way to it, in one line that ends with what to try.

Read off the error's text, since servers and libraries give one class to many causes. The first row that fits counts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from taskq.address import Address
from taskq.errors import ServerFull, ServerUnsupported, TaskQError, Unavailable


class PageTooDeep(TaskQError, ValueError):
    """A page that starts deeper in a lane than the server reads: caught as any other page that can't be."""


class _Row(NamedTuple):
    """`words`: any of them in the text, whatever their case. `says` is about `{where}`, and may quote `{text}` or how
    many there are at `{most}`.
    """

    words: tuple[str, ...]
    says: str
    kind: type[TaskQError] = Unavailable
    tls: bool | None = None  # only with such a URL
    sockets: bool | None = None  # only for a Unix socket, or only for none


_SILENCE = _Row((), "no answer from the server at {where} ({text}): is it running, and is the URL right?")

_ANSWERS = (
    _Row(
        ("without any password configured",),
        "the server at {where} has no password for the default user: leave it out of the URL, or set requirepass",
    ),
    _Row(
        ("authentication required", "noauth", "client already authenticated"),
        "the server at {where} wants a password: write redis://:PASSWORD@HOST or redis://USER:PASSWORD@HOST",
    ),
    _Row(
        ("wrongpass", "invalid username-password", "invalid password", "invalid username"),
        "the server at {where} refuses the login ({text}): check user name and password in the URL "
        "(signs such as @ / : # as %40 %2F %3A %23)",
    ),
    _Row(
        ("noperm", "has no permissions", "no permissions to access", "acl failure", "can't run this command"),
        "the server at {where} forbids what taskq needs ({text}): `taskq doctor` says what to add to the user's ACL",
    ),
    _Row(
        ("command not allowed when used memory",),
        "the server at {where} is at maxmemory: nothing was added; free memory or raise the limit",
        ServerFull,
    ),
    _Row(
        ("unknown command 'sentinel'", "unknown command `sentinel`"),
        "what answers for {where} is no sentinel: name the sentinels' ports, or write redis://",
    ),
    _Row(
        ("unknown command", "unknown redis command", "unknown subcommand"),
        "the server at {where} lacks a command that taskq needs ({text}): use Redis 6.2 or newer, or Valkey",
        ServerUnsupported,
    ),
    _Row(
        ("moved ",),
        "the server at {where} is one of a cluster: write redis+cluster:// (rediss+cluster:// with TLS)",
    ),
    _Row(
        ("cluster support disabled",),
        "the server at {where} is no cluster: write redis:// instead of redis+cluster://",
    ),
    _Row(
        ("select is not allowed in cluster",),
        "the server at {where} is a cluster and has only database 0: write redis+cluster://, and no number",
    ),
    _Row(
        ("db index is out of range", "invalid db index"),
        "the server at {where} has no database of that number: lower it in the URL, or raise `databases`",
    ),
    _Row(
        ("read only replica", "replica instances", "readonly", "link with master is down"),
        "the server at {where} is a read-only replica: name the primary in the URL, or sentinels (redis+sentinel://)",
    ),
    _Row(
        ("loading the dataset", "is loading", "loading redis"),
        "the server at {where} is still loading its data: wait until it has",
    ),
    _Row(
        ("misconf",),
        "the server at {where} can't write its data to disk and takes none: look at its disk and its log",
    ),
    _Row(
        ("noreplicas", "not enough good replicas"),
        "the server at {where} has too few replicas to take a write (min-replicas-to-write): look at its replicas",
    ),
    _Row(
        ("running a script", "busy running", "script kill"),
        "the server at {where} is held up by a script: see SLOWLOG; SCRIPT KILL ends one that has written nothing",
    ),
    _Row(
        ("clusterdown", "cluster is down", "hash slot not served"),
        "the cluster at {where} doesn't serve every slot ({text}): look at CLUSTER INFO",
    ),
    _Row(
        ("max number of clients",),
        "the server at {where} has no connection left: raise maxclients, or end clients",
    ),
    _Row(
        ("protected mode", "denied redis is running"),
        "the server at {where} is in protected mode and takes no calls from other machines: give it a password",
    ),
    _Row(
        ("offset cannot be so deep",),
        "of the jobs that wait in a lane the first {most} can be shown, and this page is deeper: give a smaller offset",
        PageTooDeep,
    ),
    _Row(("no such master", "no primary is known"), "{where}: the sentinels know no such master: check its name"),
)
_WAY = (
    # --- TLS
    _Row(
        ("hostname mismatch", "ip address mismatch", "doesn't match"),
        "the certificate of {where} is for another name ({text}): write that one, or ssl_check_hostname=false",
    ),
    _Row(
        ("certificate verify failed", "certificate_verify_failed"),
        "the certificate of {where} is signed by nobody we trust ({text}): name its authority's file by ssl_ca_certs",
    ),
    _Row(
        ("certificate required", "certificate_required", "bad certificate", "handshake failure", "unknown ca"),
        "{where} wants a certificate of us ({text}): name its files by ssl_certfile and ssl_keyfile",
        tls=True,
    ),
    _Row(
        ("the tls files can't be used",),
        "{text}: check ssl_ca_certs, ssl_certfile, ssl_keyfile and ssl_password in the URL",
        tls=True,
    ),
    _Row(
        ("wrong version number", "wrong_version_number", "record layer"),
        "what answers at {where} speaks no TLS ({text}): write redis:// instead of rediss://",
        tls=True,
    ),
    _SILENCE._replace(words=("refused", "call failed", "name or service", "name resolution", "unreachable"), tls=True),
    _Row(
        ("",),
        "no TLS answer from {where} ({text}): is it running, does it take TLS there (if not, write redis://), "
        "and does it want a certificate (ssl_certfile, ssl_keyfile)?",
        tls=True,
    ),
    # --- anything else on the way
    _Row(("protocol error",), "what answers at {where} is no Redis, or wants TLS (rediss://) ({text}): check the URL"),
    _Row(
        ("reset by peer", "closed by server", "connection closed", "broken pipe", "eof"),
        "the server at {where} hangs up ({text}): does it want TLS (rediss://), is it a Redis, and is it well?",
        sockets=False,
    ),
    _Row(
        ("no such file", "connection refused", "permission denied"),
        "no server answers at the socket {where} ({text}): is it running, is that its `unixsocket`, and may we use it?",
        sockets=True,
    ),
)


def about_server(text: str, address: Address) -> TaskQError | None:
    """Our error for what a server answered; None if it means nothing special."""
    lowered = text.lower()
    for row in _ANSWERS:
        if any(words in lowered for words in row.words):
            return _said(row, text, address)
    return None


def about_way(text: str, address: Address) -> TaskQError:
    """Our error for a server that was not reached, or did not answer."""
    lowered = text.lower()
    for row in _WAY:
        fits = row.tls in {None, address.tls} and row.sockets in {None, address.path is not None}
        if fits and any(words in lowered for words in row.words):
            return _said(row, text, address)
    return _said(_SILENCE, text, address)


def _said(row: _Row, text: str, address: Address) -> TaskQError:
    most = _MOST.search(text)
    known = {"where": address.where, "text": text.rstrip("."), "most": f"{int(most[1]):,}" if most else "few"}
    return row.kind(row.says.format(**known))


_MOST = re.compile(r"the first (\d{1,9}) jobs")
