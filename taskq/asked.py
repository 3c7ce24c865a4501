"""What people ask for by a name or an id, or as a page: refused before it is sent, by one rule for all faces.

Whether there is such a thing only the server knows; here is decided whether there can be.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar, cast

from taskq.errors import did_you_mean, shown

P = ParamSpec("P")
T = TypeVar("T")

LIMIT_MAX = 1000


def spelled(fn: Callable[P, T]) -> Callable[P, T]:
    """A function whose misspelt arguments are answered, on every Python, with the nearest name: a TypeError."""
    known = [name for name in inspect.signature(fn).parameters if name != "self"]
    called_as = fn.__qualname__.split(".")[-2] if fn.__name__ == "__init__" else fn.__name__

    def check(given: dict[str, object]) -> None:
        for name in given:
            if name not in known:
                raise TypeError(f"{called_as}() has no argument {shown(name)}{did_you_mean(name, known)}")

    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
            check(kwargs)
            return await fn(*args, **kwargs)

        return cast("Callable[P, T]", awaited)

    @functools.wraps(fn)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        check(kwargs)
        return fn(*args, **kwargs)

    return called


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


def checked_ids(ids: Iterable[str]) -> list[str]:
    """Ids of jobs as a list. TypeError for a single text, which would be read letter by letter, and for no list."""
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise TypeError(f"ids={shown(ids)} is no list of ids: give such as ['default:7']")
    return list(ids)


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


def checked_flag(value: object, name: str, refusal: type[Exception] = TypeError) -> bool:
    """Yes or no. Raises `refusal` naming the argument."""
    if isinstance(value, bool):
        return value
    raise refusal(f"{name}={shown(value)} is none: give True or False")


def checked_whole(value: object, name: str) -> int:
    """A whole number. Raises TypeError naming the argument."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError(f"{name}={shown(value)} is no number: give a whole one")
