"""Plain commands on a connection of their own, an error reply being an answer: for looking at a server, not for jobs.

Sync only: it is used once at a node's start (in a thread) and by `taskq doctor`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from taskq.address import parse_url
from taskq.connection.dial import SyncDial
from taskq.connection.patience import Patience
from taskq.connection.translate import failures, passing, translated
from taskq.settings import Settings

if TYPE_CHECKING:
    import redis

T = TypeVar("T")
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A server's error reply, as it said it."""

    text: str

    @property
    def forbids(self) -> bool:
        """Whether the login may not do this."""
        return self.text.startswith("NOPERM")

    @property
    def unknown(self) -> bool:
        """Whether the server has no such command."""
        return "unknown command" in self.text.lower() or "unknown subcommand" in self.text.lower()


class Line:
    """A connection to ask on."""

    def __init__(self, connection: redis.Connection) -> None:
        self._connection = connection

    def ask(self, *calls: Sequence[str | int]) -> list[Any]:
        """The replies to these calls, sent together. A refusal is a reply, unless it will pass: that one is raised."""
        import redis.exceptions as redis_errors

        answers: list[Any] = []
        raised: Exception | None = None
        # No ping before: a server that can't save its data refuses even that.
        self._connection.send_packed_command(self._connection.pack_commands(calls), check_health=False)
        for _ in calls:
            try:
                answers.append(self._connection.read_response())
            except redis_errors.ResponseError as error:
                moved = isinstance(error, redis_errors.MovedError)
                # The library takes off the word that names the kind, and puts it into the class.
                kind = "NOPERM " if isinstance(error, redis_errors.NoPermissionError) else "MOVED " if moved else ""
                answers.append(Refusal(kind + str(error).removeprefix(kind)))
                # One that can't save its data still answers; that it takes no writes is told besides.
                if not moved and passing(error) and not str(error).startswith("MISCONF"):
                    raised = error
        if raised is not None:
            raise raised
        return answers


@contextmanager
def line(settings: Settings, *, at: Place | None = None) -> Iterator[Line]:
    """A connection to the server, or in a cluster to the node `at`. Raises redis's errors."""
    connection = SyncDial(settings, "check").open(at)
    connection.client_name = None  # a login that may not even name itself is to be told what it lacks
    try:
        connection.connect()
        yield Line(connection)
    finally:
        connection.disconnect()


def asked(settings: Settings, talk: Callable[[Line], T], *, deadline_s: float | None = None) -> T:
    """What `talk` makes of the server's answers; tried again while the server is away, within the deadline.

    In a cluster any node that the URL names will do. Raises as `taskq.connection.run`.
    """
    patience = Patience(settings.deadline_ms / 1000 if deadline_s is None else deadline_s)
    address = parse_url(settings.url)
    places: Sequence[Place | None] = address.hosts if address.kind == "cluster" else (None,)
    tries = 0
    while True:
        try:
            with line(settings, at=places[tries % len(places)]) as asking:
                return talk(asking)
        except failures() as error:
            tries += 1
            pause_s = patience.pause_s() if passing(error) else None
            if pause_s is None:
                raise translated(error, address) from error
            time.sleep(pause_s)
