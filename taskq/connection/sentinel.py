"""Asking sentinels where the primary is: one after the other until one knows, each for a second at most.

One that holds the primary for dead has nothing to tell yet: to connect there, and wait for an answer that doesn't come,
would cost more than to ask again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

#: How long one sentinel may take to answer.
ANSWER_S = 1.0
#: How old what they said may be before one of them is asked again.
AGAIN_S = 1.0
UNANSWERED_AGAIN_S = 2.0


def questions(master: str) -> list[tuple[str, str, str]]:
    """What to send to a sentinel, in one go."""
    return [("SENTINEL", "GET-MASTER-ADDR-BY-NAME", master), ("SENTINEL", "MASTER", master)]


def primary(master: str, address: Any, record: Any) -> tuple[str, int]:
    """The primary that a sentinel named by its two answers. An answer may be the error it was.

    Raises:
        ConnectionError: it knows none that lives.
    """
    for answer in (address, record):
        if isinstance(answer, Exception) and "No such master" not in str(answer):
            raise answer
    if not address or isinstance(address, Exception) or isinstance(record, Exception):
        raise ConnectionError(f"no primary is known by the name {master!r}")
    host, port = address[0].decode(), int(address[1])
    fields = dict(zip(record[::2], record[1::2], strict=False))
    same = (fields.get(b"ip"), fields.get(b"port")) == (address[0], address[1])
    if same and _down(fields.get(b"flags", b"")):
        raise ConnectionError(f"the primary at {host}:{port} is down, and no other was chosen yet")
    return host, port


def _down(flags: bytes) -> bool:
    return not {b"s_down", b"o_down"}.isdisjoint(flags.split(b","))


def first_error(errors: Iterable[BaseException]) -> BaseException:
    """What to tell if none knew: rather that the primary is down than that a sentinel didn't answer."""
    found = list(errors)
    told = [error for error in found if type(error) is ConnectionError]
    return (told or found or [ConnectionError("no sentinel is named")])[0]


class Primary:
    """Where the primary was when sentinels were last asked, for all loops and threads of a client.

    They are asked again now and then while calls are made: a failover that the sentinels were told to make leaves the
    old primary up, and writable for a while; what it takes then is lost.
    """

    def __init__(self) -> None:
        self.place: tuple[str, int] | None = None
        self._fresh_until = 0.0

    @property
    def fresh(self) -> bool:
        """Whether it needs no asking."""
        return self.place is not None and time.monotonic() < self._fresh_until

    def asking(self) -> None:
        """Somebody asks: the others needn't meanwhile."""
        self._fresh_until = time.monotonic() + AGAIN_S

    def unknown(self) -> None:
        """The sentinel didn't answer, or knew of none: what was known must do for a while."""
        self._fresh_until = time.monotonic() + UNANSWERED_AGAIN_S

    def fell_silent(self, place: tuple[str, int]) -> None:
        """It doesn't answer, or says that it isn't the primary."""
        if place == self.place:
            self.place = None
