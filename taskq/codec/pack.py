"""Python values into bytes, and the place of a value that can't go there.

Plain values never leave C. A value of any other type comes to `_special`,
which takes it apart in Python, level by level, so that neither a cycle nor
deep nesting can exhaust a stack.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any
from uuid import UUID

from taskq.codec.classes import full_name
from taskq.codec.scalars import SCALARS
from taskq.codec.types import PLAIN, Types
from taskq.codec.wire import MAX_DEPTH, Code, ExtType, may_be_deep, new_packer
from taskq.errors import Unencodable

_KEPT_BYTES = 1 << 20


class _TooDeep(Unencodable):
    """A container at a level where none may be."""

    def __init__(self) -> None:
        super().__init__(f"it is nested deeper than {MAX_DEPTH} levels, or contains itself: pass something flatter")


def pack(value: Any, types: Types, level: int = 0) -> bytes:
    """The bytes of a value; any Exception means that it has none.

    `level` is that of the outermost container: below 0 for the frame around the arguments.
    """
    data = _pack(value, types)
    if len(data) > MAX_DEPTH and may_be_deep(data):
        _simple(value, level, types)  # measures exactly, and is otherwise thrown away
    return data


def _pack(value: Any, types: Types) -> bytes:
    # A packer is costly to make and can't be shared while it works, by threads or by a value inside a value.
    try:
        packer = types.packers.pop()
    except IndexError:
        packer = new_packer(partial(_special, types=types))
    try:
        data: bytes = packer.pack(value)
    except UnicodeEncodeError:
        data = new_packer(partial(_special, types=types), surrogates=True).pack(value)
    if len(data) < _KEPT_BYTES:  # one that has grown would keep its memory
        types.packers.append(packer)
    return data


def _special(value: Any, level: int = 0, *, types: Types) -> Any:
    """A value that isn't plain, as a msgpack extension."""
    scalar = SCALARS.get(type(value))
    if scalar is None and isinstance(value, UUID):
        scalar = SCALARS[UUID]  # drivers of databases bring their own subclass
    if scalar is not None:
        return ExtType(scalar.code, scalar.write(value))
    form = types.form(type(value))
    if level >= MAX_DEPTH:
        raise _TooDeep
    state = form.state(value)
    if form.name is None:
        return ExtType(form.code, _pack([_simple(part, level + 1, types) for part in state], types))
    return ExtType(form.code, _pack([form.name, _simple(state, level + 1, types)], types))


def _simple(value: Any, level: int, types: Types) -> Any:
    """A value of plain values and extensions alone."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is not list and kind is not dict:
        return _special(value, level, types=types)
    if level >= MAX_DEPTH:
        raise _TooDeep
    level += 1
    if kind is list:
        return value if _all_plain(value) else [_simple(part, level, types) for part in value]
    if _all_plain(value) and _all_plain(value.values()):
        return value
    return {_simple(key, level, types): _simple(part, level, types) for key, part in value.items()}


def _all_plain(parts: Iterable[Any]) -> bool:
    # In C throughout: large results are rows of plain values, and would else take several times as long.
    return PLAIN.issuperset(map(type, parts))


# --- where it failed ------------------------------------------------------------


def refusal(error: Exception, roots: Iterable[tuple[str, Any]], types: Types) -> Unencodable:
    """What to raise for a value that can't be packed: it names the place and says what to do."""
    path = "the value"
    for root, value in roots:
        found = _failure(value, 0, types)
        if found is not None:
            path, error = _locate(value, 0, root, found, types)
            break
    if isinstance(error, Unencodable):
        reason = str(error)
    else:
        reason = f"it can't be stored: {full_name(type(error))}: {str(error)[:200]}"
    return Unencodable(f"{path}: {reason}")


def _locate(value: Any, level: int, path: str, error: Exception, types: Types) -> tuple[str, Exception]:
    if not isinstance(error, _TooDeep):  # a path of a hundred steps would tell nobody anything
        for step, part in _parts(value, types):
            found = _failure(part, level + 1, types)
            if found is not None:
                return _locate(part, level + 1, path + step, found, types)
    return path, error


def _failure(value: Any, level: int, types: Types) -> Exception | None:
    try:
        _pack([_simple(value, level, types)], types)
    except Exception as error:  # noqa: BLE001 (encoders are users' code)
        return error
    return None


def _parts(value: Any, types: Types) -> Iterator[tuple[str, Any]]:
    """Every part of a value, with the step of the path that leads there."""
    kind = type(value)
    if kind is list or kind is tuple:
        yield from ((f"[{index}]", part) for index, part in enumerate(value))
    elif kind is dict:
        for key, part in value.items():
            yield f" (its key {_short(key)})", key
            yield f"[{_short(key)}]", part
    elif kind is set or kind is frozenset:
        yield from ((" (a member)", part) for part in value)
    elif kind not in PLAIN and kind not in SCALARS:
        yield from _state_parts(value, types)


def _state_parts(value: Any, types: Types) -> Iterator[tuple[str, Any]]:
    try:
        form = types.form(type(value))
        state = form.state(value)
    except Exception:  # noqa: BLE001 (as in _failure; it is the failure itself)
        return
    fields = state[0] if form.code is Code.MODEL and isinstance(state, list) else state
    if form.code in (Code.DATACLASS, Code.MODEL):
        yield from ((f".{name}", part) for name, part in fields.items())
    else:
        yield f" (as {full_name(type(value))} encodes it)", state


def _short(key: Any) -> str:
    if isinstance(key, str):
        return json.dumps(key if len(key) <= 40 else key[:37] + "...", ensure_ascii=False)
    return repr(key)[:40] if type(key) in PLAIN else f"a {type(key).__name__}"
