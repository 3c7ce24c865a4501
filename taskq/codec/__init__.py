"""Arguments and results as bytes: msgpack with extension types, never pickle.

`encode`/`decode` are for a call's arguments, `encode_value`/`decode_value` for
one value such as a result, `to_json` and its kin for showing them. The bytes
are described in `wire`. Decoding imports nothing and executes nothing that
the bytes name; it only builds objects of classes that are loaded already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taskq.codec.jsonform import bytes_form, show
from taskq.codec.pack import pack, refusal
from taskq.codec.types import DEFAULT, Types
from taskq.codec.unpack import read
from taskq.codec.wire import MAX_DEPTH, MAX_INT_BITS
from taskq.errors import InvalidPayload, PayloadTooLarge

__all__ = [
    "MAX_DEPTH",
    "MAX_INT_BITS",
    "Types",
    "bytes_form",
    "call_to_json",
    "decode",
    "decode_value",
    "encode",
    "encode_value",
    "to_json",
    "value_to_json",
]

# The frame [args, kwargs] and its two members stand around the values, whose own levels count from 0.
_FRAME = -2


def encode(
    args: Sequence[Any], kwargs: Mapping[str, Any], types: Types | None = None, *, max_bytes: int | None = None
) -> bytes:
    """A call's arguments as bytes; `b""` if there are none.

    Args:
        args: positional arguments.
        kwargs: keyword arguments.
        types: what was registered beyond the built-in types; default none.
        max_bytes: the largest payload; default no limit.

    Raises:
        Unencodable: a value can't be stored; the message names its place, such as `args[1]["when"]`.
        PayloadTooLarge: the bytes are more than `max_bytes`.
    """
    if not args and not kwargs:
        return b""
    types = types or DEFAULT
    kwargs = kwargs if type(kwargs) is dict else dict(kwargs)
    try:
        data = pack([list(args), kwargs], types, _FRAME)
    except Exception as error:
        places = [(f"args[{index}]", value) for index, value in enumerate(args)]
        places += [(f'kwargs["{name}"]', value) for name, value in kwargs.items()]
        raise refusal(error, places, types) from error
    if max_bytes is not None and len(data) > max_bytes:
        raise _too_large("the arguments take", len(data), max_bytes)
    return data


def decode(data: bytes, types: Types | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments from bytes.

    Raises:
        InvalidPayload: damaged bytes, or a class that isn't loaded or registered here; nothing else.
    """
    if not data:
        return (), {}
    frame = read(data, types or DEFAULT, _FRAME)
    if type(frame) is list and len(frame) == 2:
        args, kwargs = frame
        if type(args) is list and type(kwargs) is dict:
            for name in kwargs:  # a loop: of all spellings the quickest for the few that a call has
                if type(name) is not str:
                    break
            else:
                return tuple(args), kwargs
    raise InvalidPayload("the stored arguments aren't a list and a mapping")


def encode_value(value: Any, types: Types | None = None, *, name: str = "value", max_bytes: int | None = None) -> bytes:
    """One value as bytes; `b""` if it is None.

    Args:
        value: a result, or any other value.
        types: what was registered beyond the built-in types; default none.
        name: what the value is called in a message, such as "result".
        max_bytes: the most bytes; default no limit.

    Raises:
        Unencodable: it can't be stored; the message names the place.
        PayloadTooLarge: the bytes are more than `max_bytes`.
    """
    if value is None:
        return b""
    if max_bytes is not None and isinstance(value, str | bytes) and len(value) > max_bytes:
        raise _too_large(f"the {name} takes", len(value), max_bytes)  # told without copying it
    types = types or DEFAULT
    try:
        data = pack(value, types)
    except Exception as error:
        raise refusal(error, [(name, value)], types) from error
    if max_bytes is not None and len(data) > max_bytes:
        raise _too_large(f"the {name} takes", len(data), max_bytes)
    return data


def decode_value(data: bytes, types: Types | None = None) -> Any:
    """One value from bytes; raises InvalidPayload as `decode` does."""
    return read(data, types or DEFAULT) if data else None


def to_json(value: Any, types: Types | None = None) -> Any:
    """A Python value as what `json.dumps` takes: `{"$type": ..., "value": ...}` for what JSON can't hold.

    Raises:
        Unencodable: it could not be stored with a job either.
    """
    return value_to_json(encode_value(value, types))


def value_to_json(data: bytes) -> Any:
    """The JSON of a stored value, without its classes; InvalidPayload where it is damaged."""
    return show(data) if data else None


def call_to_json(data: bytes) -> tuple[list[Any], Any]:
    """The JSON of stored arguments, `(args, kwargs)`, without their classes; InvalidPayload where damaged."""
    if not data:
        return [], {}
    frame = show(data, _FRAME)
    if isinstance(frame, list) and len(frame) == 2 and isinstance(frame[0], list) and isinstance(frame[1], dict):
        return frame[0], frame[1]
    raise InvalidPayload("the stored arguments aren't a list and a mapping")


def _too_large(what: str, size: int, limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"{what} {size} bytes, over the limit of {limit} (max_payload): store it elsewhere and pass a reference"
    )
