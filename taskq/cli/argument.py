"""How the arguments of `taskq enqueue` are read. Pure.

An ARG is JSON if it parses, else text. `k=v` is a keyword if k is an identifier;
`"k=v"` in JSON's quotes is the text again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from taskq.errors import shown


def read_args(words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the keyword arguments that the words stand for.

    Raises:
        ValueError: a keyword is given twice.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name.isidentifier():
            args.append(_value(word))
        elif name in kwargs:
            raise ValueError(f"keyword {name} is given twice")
        else:
            kwargs[name] = _value(text)
    return args, kwargs


def read_payload(text: str) -> tuple[list[Any], dict[str, Any]]:
    """`--payload '{"args": [], "kwargs": {}}'`; either may be left out.

    Raises:
        ValueError: anything else.
    """
    try:
        payload = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--payload is no JSON: {error}") from None
    if not isinstance(payload, dict) or not payload.keys() <= {"args", "kwargs"}:
        raise ValueError('--payload takes {"args": [...], "kwargs": {...}}')
    args, kwargs = payload.get("args", []), payload.get("kwargs", {})
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise ValueError('--payload takes {"args": [...], "kwargs": {...}}, a list and an object')  # noqa: TRY004
    return args, kwargs


def read_pair(text: str, option: str) -> tuple[str, str]:
    """`key=value` of `--meta`, both text.

    Raises:
        ValueError: there is no `=`, or nothing before it.
    """
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise ValueError(f"{option} {shown(text)}: give key=value")
    return key, value


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> NoReturn:
    # Python's reader would take NaN and Infinity; they are no JSON, and as words they are more likely names.
    raise ValueError(f"{name} is no JSON")
