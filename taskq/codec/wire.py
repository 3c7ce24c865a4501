"""The stored bytes of arguments and results: msgpack, and our extension types.

    payload   = [args, kwargs]                  b"" stands for no arguments
    result    = any value                       b"" stands for None
    extension = code, body                      the codes of `Code`
    body      = text or bytes                   up to COMPLEX: values without parts
                [part, ...]                     TUPLE, SET, FROZENSET
                ["module:Class", state]         ENUM, DATACLASS, MODEL
                ["registered name", state]      OBJECT

Bytes written once may wait in Redis for weeks: a code is never given a second
meaning, and what an older reader doesn't know gets a code of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import msgpack

MAX_DEPTH = 100
"""How many containers may stand inside one another, in each argument or result."""

MAX_INT_BITS = 8192
"""The longest integer. Python's own time for printing one grows with the square of its length."""

ExtType = msgpack.ExtType


class Code(IntEnum):
    """The extension types; -1, msgpack's own timestamp, is read as a datetime in UTC."""

    INT = 1
    TUPLE = 2
    SET = 3
    FROZENSET = 4
    DATETIME = 5
    DATE = 6
    TIME = 7
    TIMEDELTA = 8
    UUID = 9
    DECIMAL = 10
    COMPLEX = 11
    ENUM = 12
    DATACLASS = 13
    MODEL = 14
    OBJECT = 15


# Every byte that can open a container: fixmap and fixarray, the ext forms, array and map of 16 and 32 bits.
_OPENERS = bytes([*range(0x80, 0xA0), *range(0xC7, 0xCA), *range(0xD4, 0xD9), *range(0xDC, 0xE0)])


def may_be_deep(data: bytes) -> bool:
    """Whether the value could be nested deeper than MAX_DEPTH; False is certain, True is not.

    A level costs at least one opening byte, so few such bytes anywhere prove a
    shallow value. Callers ask only for more than MAX_DEPTH bytes: most payloads
    are settled by their length.
    """
    return len(data) - len(data.translate(None, _OPENERS)) > MAX_DEPTH


def new_packer(default: Callable[[Any], Any], *, surrogates: bool = False) -> Any:
    """A packer that hands every value that isn't exactly a plain one to `default`.

    With `surrogates` it also takes text that isn't valid Unicode (file names
    have such), at twice the time for every text.
    """
    # strict_types: else a tuple would come back as a list, and an IntEnum as a number.
    return msgpack.Packer(default=default, strict_types=True, unicode_errors="surrogatepass" if surrogates else None)


def unpack(data: bytes, ext_hook: Callable[[int, bytes], Any]) -> Any:
    """Decode msgpack in C; raises ValueError or TypeError for what isn't any.

    msgpack allocates in proportion to the length of the bytes at most, and has a
    bound of its own of about a thousand levels.
    """
    return msgpack.unpackb(
        data,
        ext_hook=ext_hook,
        strict_map_key=False,  # a key may be a number or a tuple; Python's hashes are salted against floods of text
        unicode_errors="surrogatepass",
        timestamp=3,
    )
