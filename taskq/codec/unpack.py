"""Bytes back into Python values. Whatever the bytes are, the only error is InvalidPayload.

Plain values and scalars are decoded in C alone. Containers of ours are left as
they are by the first pass and opened level by level in Python: one pass of C
never runs inside another, so bytes made by hand exhaust no stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from taskq.codec.classes import full_name, make_dataclass, make_enum, make_model
from taskq.codec.scalars import BY_CODE
from taskq.codec.types import Types
from taskq.codec.wire import MAX_DEPTH, Code, ExtType, may_be_deep, unpack
from taskq.errors import InvalidPayload

_NODES = frozenset({list, dict, ExtType})
_PARTS: dict[int, Callable[[list[Any]], Any]] = {Code.TUPLE: tuple, Code.SET: set, Code.FROZENSET: frozenset}


class _ContainerMet(Exception):
    """The bytes hold an extension that has parts."""


def read(data: bytes, types: Types, level: int = 0) -> Any:
    """The value that the bytes hold.

    `level` is that of the outermost container: below 0 for the frame around the arguments.
    """
    try:
        if len(data) <= MAX_DEPTH or not may_be_deep(data):
            try:
                return unpack(data, ext_hook=_scalar_only)
            except _ContainerMet:
                pass
        return _build(unpack(data, ext_hook=_scalar_or_node), level, types)
    except InvalidPayload:
        raise
    except Exception as error:
        raise InvalidPayload(f"the stored value can't be decoded: {reason(error)}") from error


def reason(error: Exception) -> str:
    """An error of msgpack, of a constructor or of a user's decoder, in a line."""
    return f"{full_name(type(error))}: {str(error)[:200]}"


def _scalar_only(code: int, body: bytes) -> Any:
    scalar = BY_CODE.get(code)
    if scalar is None:
        raise _ContainerMet
    return scalar.read(body)


def _scalar_or_node(code: int, body: bytes) -> Any:
    scalar = BY_CODE.get(code)
    return ExtType(code, body) if scalar is None else scalar.read(body)


def _build(node: Any, level: int, types: Types) -> Any:
    kind = type(node)
    if kind not in _NODES:
        return node
    check_level(level)
    level += 1
    if kind is ExtType:
        return _open(node.code, node.data, level, types)
    if kind is list:
        return node if _all_done(node) else [_build(part, level, types) for part in node]
    if _all_done(node) and _all_done(node.values()):
        return node
    return {_build(key, level, types): _build(part, level, types) for key, part in node.items()}


def _all_done(parts: Iterable[Any]) -> bool:
    return _NODES.isdisjoint(map(type, parts))  # in C throughout, as in `pack`


def check_level(level: int) -> None:
    """Refuse a container at a level where none may be."""
    if level >= MAX_DEPTH:
        raise InvalidPayload(f"the stored value is nested deeper than {MAX_DEPTH} levels")


def _open(code: int, body: bytes, level: int, types: Types) -> Any:
    if code not in _KNOWN:
        raise InvalidPayload(
            f"the stored value holds extension {code}, which this version of taskq doesn't know", newer=True
        )
    parts = unpack(body, ext_hook=_scalar_or_node)
    if not isinstance(parts, list):
        raise InvalidPayload("the stored value can't be decoded: an extension without parts")
    make = _PARTS.get(code)
    if make is not None:
        return make([_build(part, level, types) for part in parts])
    name, state = parts
    state = _build(state, level, types)
    if code == Code.OBJECT:
        return _revive(types.revive, name, state)
    return _revive(_CLASSES[code], name, state)


_CLASSES: dict[int, Callable[[object, Any], Any]] = {
    Code.ENUM: make_enum,
    Code.DATACLASS: make_dataclass,
    Code.MODEL: make_model,
}
_KNOWN = frozenset({*_PARTS, *_CLASSES, Code.OBJECT})


def _revive(make: Callable[[object, Any], Any], name: object, state: Any) -> Any:
    try:
        return make(name, state)
    except InvalidPayload:
        raise
    except Exception as error:
        shown = str(name)[:200].replace(":", ".")
        raise InvalidPayload(f"a stored {shown} can't be rebuilt: {reason(error)}") from error
