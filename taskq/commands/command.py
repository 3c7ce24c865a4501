"""An operation as a value: one script, its keys, its arguments and a reader for the reply. No I/O.

`taskq.connection` runs it, sync or async. Arguments are passed by the names in the script's header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from taskq import scripts
from taskq.keys import QueueKeys

T = TypeVar("T")
U = TypeVar("U")

#: What Redis takes as an argument.
Arg = bytes | str | int


@dataclass(frozen=True, slots=True)
class Command(Generic[T]):
    """A call of one script. `read` turns the server's reply into the operation's answer, or raises its error.

    `durable` names the jobs whose records replicas must have before the call counts as answered (`wait_replicas`).
    `resend_s`: how long after it was first sent the call may be sent again; None: as long as there is time.
    """

    script: scripts.Script
    keys: tuple[str, ...]
    args: list[Arg]
    read: Callable[[Any], T]
    durable: tuple[str, ...] = ()
    resend_s: float | None = None

    def then(self, change: Callable[[T], U]) -> Command[U]:
        """The same call, its answer changed further."""
        read = self.read
        return Command(
            self.script, self.keys, self.args, lambda reply: change(read(reply)), self.durable, self.resend_s
        )


def build(
    name: str,
    q: QueueKeys,
    read: Callable[[Any], T],
    named: Mapping[str, Arg | None],
    rest: Iterable[Arg] = (),
    *,
    durable: tuple[str, ...] = (),
    resend_s: float | None = None,
) -> Command[T]:
    """A command for the script `name` on the keys `q`.

    Args:
        name: the script's file name without suffix.
        q: whose keys.
        read: the reader.
        named: the leading arguments by name; None stands for '' (as for `now`: the server's clock).
        rest: the repeated part, flat.
        durable: the jobs whose records replicas must have.
        resend_s: how long it may be sent again.

    Raises:
        KeyError: an argument of the header is missing in `named`.
    """
    script = scripts.load(name)
    args: list[Arg] = ["" if (value := named[each]) is None else value for each in script.args]
    args.extend(rest)
    return Command(script, q.listed(script.keys), args, read, durable, resend_s)


def text(value: object) -> str:
    """A word of a reply."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def texts(reply: Iterable[object]) -> list[str]:
    """A reply that is a list of words."""
    return [text(value) for value in reply]


def text_pairs(flat: list[bytes]) -> dict[str, str]:
    """As `pairs`, of words."""
    return {text(name): text(value) for name, value in pairs(flat).items()}


def pairs(flat: list[bytes]) -> dict[bytes, bytes]:
    """A hash as the server gives it, as a dict."""
    each = iter(flat)
    return dict(zip(each, each, strict=True))
