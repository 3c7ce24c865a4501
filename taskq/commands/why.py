"""Why a job isn't running, as far as its queue knows."""

from __future__ import annotations

from typing import Any, NamedTuple

from taskq.commands.command import Command, build, text
from taskq.keys import QueueKeys


class Shut(NamedTuple):
    """The first gate of the claim that a job can't pass.

    Attributes:
        word: `missing damaged ended running due pending paused whole gate turn`, as `lua/why.lua` says.
        now_ms: the server's time.
        facts: what belongs to the word, as texts.
    """

    word: str
    now_ms: int
    facts: dict[str, str]


def why(q: QueueKeys, id: str, *, now: int | None = None) -> Command[Shut]:
    """Why a job isn't running. It changes nothing.

    Args:
        q: the queue.
        id: the full id.
        now: the time in ms; None for the server's clock.
    """

    def read(reply: Any) -> Shut:
        words = [text(each) if isinstance(each, bytes) else str(each) for each in reply[2:]]
        return Shut(text(reply[1]), int(reply[0]), dict(zip(words[::2], words[1::2], strict=True)))

    return build("why", q, read, {"now": now, "id": id})
