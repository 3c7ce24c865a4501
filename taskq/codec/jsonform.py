"""Stored values as JSON, for people and other programs.

Drawn from the bytes alone: no class is looked up and no user's code runs, so
the command line and the web page show jobs whose code they have never seen.
What JSON can't hold becomes `{"$type": ..., "value": ...}`.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

from taskq.codec.scalars import BY_CODE, show_float
from taskq.codec.unpack import check_level, reason
from taskq.codec.wire import Code, ExtType, unpack
from taskq.errors import InvalidPayload

_PARTS: dict[int, str] = {Code.TUPLE: "tuple", Code.SET: "set", Code.FROZENSET: "frozenset"}
# A pydantic model shows as an object with the class's name: readers needn't know what pydantic is.
_NAMED: dict[int, str] = {
    Code.ENUM: "enum",
    Code.DATACLASS: "dataclass",
    Code.MODEL: "object",
    Code.OBJECT: "object",
}


def show(data: bytes, level: int = 0) -> Any:
    """The JSON form of stored bytes; raises InvalidPayload where they are damaged."""
    try:
        return _show(unpack(data, ext_hook=ExtType), level)
    except InvalidPayload:
        raise
    except Exception as error:
        raise InvalidPayload(f"the stored value can't be decoded: {reason(error)}") from error


def bytes_form(data: bytes) -> dict[str, Any]:
    """Bytes as JSON: base64."""
    return {"$type": "bytes", "value": base64.b64encode(data).decode("ascii")}


def _show(node: Any, level: int) -> Any:
    if isinstance(node, float):
        return show_float(node)
    if isinstance(node, bytes):
        return bytes_form(node)
    if isinstance(node, datetime):  # msgpack's own timestamp, of some other writer
        return {"$type": "datetime", "value": node.isoformat()}
    if isinstance(node, list | dict | ExtType):
        check_level(level)
        return _show_container(node, level + 1)
    return node


def _show_container(node: Any, level: int) -> Any:
    if isinstance(node, ExtType):
        return _show_extension(node.code, node.data, level)
    if isinstance(node, list):
        return [_show(part, level) for part in node]
    if "$type" in node or not all(isinstance(key, str) for key in node):
        return {"$type": "dict", "value": [[_show(key, level), _show(part, level)] for key, part in node.items()]}
    return {key: _show(part, level) for key, part in node.items()}


def _show_extension(code: int, body: bytes, level: int) -> Any:
    scalar = BY_CODE.get(code)
    if scalar is not None:
        value = scalar.show(body)
        return value if scalar.code is Code.INT else {"$type": scalar.type, "value": value}
    if code not in _PARTS and code not in _NAMED:
        raise InvalidPayload(f"the stored value holds extension {code}, which this version of taskq doesn't know")
    parts = unpack(body, ext_hook=ExtType)
    if code in _PARTS:
        return {"$type": _PARTS[code], "value": [_show(part, level) for part in parts]}
    name, state = parts
    if code == Code.MODEL and isinstance(state, list):
        state = state[0]  # the fields; the names of those left to their defaults are no part of the value
    shown = str(name) if code == Code.OBJECT else str(name).replace(":", ".", 1)
    return {"$type": _NAMED[code], "value": _show(state, level), "name": shown}
