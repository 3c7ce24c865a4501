"""`by=` and `fair=`: what a call is told apart by: a parameter, several, or a callable over the call."""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any, TypeAlias

from taskq.errors import BadArguments, shown

By: TypeAlias = str | tuple[str, ...] | Callable[..., object]
"""The name of a parameter, several, or a function that is given the call's arguments and returns a value or a tuple."""

MOST_NAMES = 8


def checked_by(value: object, name: str = "by") -> By:
    """What may be such a thing, whatever the task.

    Raises:
        ValueError: anything else.
    """
    names = (value,) if isinstance(value, str) else value
    if isinstance(names, list):
        names = tuple(names)
    if isinstance(names, tuple) and 0 < len(names) <= MOST_NAMES and all(map(_is_name, names)):
        return names[0] if len(names) == 1 else names
    if callable(value):
        return value
    raise ValueError(
        f"{name}={shown(value)} can tell no calls apart: give a parameter's name, a tuple of up to {MOST_NAMES} names,"
        " or a callable over the call"
    )


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isidentifier() and not keyword.iskeyword(value)


def told_by(by: By | None) -> Any:
    """What is told of it to producers that know the task by its name alone, as JSON holds it; False for a callable."""
    if by is None or isinstance(by, str):
        return by
    return list(by) if isinstance(by, tuple) else False


def heard_by(told: Any, name: str = "by") -> By | None:
    """The reverse of `told_by`. A callable can't be told, so it is one that says so when it is asked."""
    if told is None:
        return None
    return unknown if told is False else checked_by(tuple(told) if isinstance(told, list) else told, name)


def unknown(*_args: object, **_kwargs: object) -> object:
    """Stands for a callable of the workers' code.

    Raises:
        BadArguments: always.
    """
    raise BadArguments("is a function of the workers' code, which isn't known here: enqueue the task with its code")
