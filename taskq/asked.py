"""What people ask for by a name or an id, or as a page: refused before it is sent, by one rule for all faces.

Whether there is such a thing only the server knows; here is decided whether there can be.
"""

from __future__ import annotations

from taskq.errors import shown

LIMIT_MAX = 1000


def checked_text(value: object, *, name: str, of: str) -> str:
    """An id or a name.

    Args:
        value: what was given.
        name: the argument's name, for the message.
        of: what it belongs to, such as "node".

    Raises:
        TypeError: it is no text.
    """
    if isinstance(value, str):
        return value
    raise TypeError(f"{name}={shown(value)} is no {of}'s {name}: give text")


def check_page(limit: object, offset: object, *, of: str, most: int = LIMIT_MAX) -> None:
    """The numbers of a page: `limit` from 1 to `most`, `offset` from 0 on. `of`: what it holds, such as "jobs".

    Raises:
        TypeError: one is no whole number.
        ValueError: one is out of range.
    """
    if not 1 <= checked_whole(limit, "limit") <= most:
        raise ValueError(f"limit={shown(limit)} is out of range: a page holds 1 to {most} {of}")
    if checked_whole(offset, "offset") < 0:
        raise ValueError(f"offset={shown(offset)} is negative: it is how many {of} to skip")


def checked_whole(value: object, name: str) -> int:
    """A whole number. Raises TypeError naming the argument."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError(f"{name}={shown(value)} is no number: give a whole one")
