"""Values as they stand in the names of keys: lanes, limits, locks and unique keys are named after what calls carry.

An encoded value holds only what a name may hold, takes at most 64 bytes, and is
another for another value; what was readable stays so.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from uuid import UUID

LONGEST = 64
"""The most bytes of an encoded value; a longer one is `~` and its digest."""

NO_KEY = "-"
"""The fairness key of a job that has none."""

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@+-")
_EMPTY = "%"
_TEXT = (int, float, Decimal, UUID, date, time, timedelta)


def encoded(value: object) -> str:
    """A value, or a tuple of values, as it stands in the names of keys: a tuple's parts are joined by `/`.

    A number and its text are one value: `7` and `"7"` name the same tenant.

    Raises:
        ValueError: nothing can be named after it: it is a list, a dict, an object without a text of its own ...
    """
    if isinstance(value, str) and value.isascii() and value.isalnum() and len(value) <= LONGEST:
        return value  # most of them
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        text = "/".join([_part(_text(each), "") for each in value])
        # A tuple of one is its value; one of none is none that a value could be.
        text = text if value else "%%"
    else:
        text = _part(_text(value), "/")
    if len(text) <= LONGEST:
        return text
    return "~" + hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _part(text: str, more: str) -> str:
    if not text:
        return _EMPTY
    plain = _PLAIN.union(more.encode(), b"~")
    raw = text.encode(errors="surrogatepass")
    parts = [chr(byte) if byte in plain else f"%{byte:02X}" for byte in raw]
    if parts[0] == "~" or text == NO_KEY:  # else it would be a digest, or no key
        parts[0] = f"%{raw[0]:02X}"
    return "".join(parts)


def _text(value: object) -> str:
    """The value's text. Only of what has one text wherever it is asked for."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, _TEXT):
        if isinstance(value, float) and value.is_integer() and math.fabs(value) < 1e15:
            return str(int(value))  # 2.0 == 2
        return str(value)
    raise ValueError("it is no text, number, time, UUID, Enum or None, nor a tuple of such")


def lane(group: str, gates: Iterable[str]) -> str:
    """A job's keys as its record holds them: `<fairness key>:<gates>`, the key encoded, `-` for none."""
    return f"{group}:{','.join(sorted(set(gates)))}"


def gate(name: str, *, lock: bool = False) -> str:
    """The name of one of a job's gates, without its value: a limit's, or `!` and a lock's.

    A limit's begins with no `+`, which is the gate of a reservation, and no `@`, which is a fairness key's.
    """
    if lock:
        return "!" + encoded(name)
    text = encoded(name)
    return f"%{ord(text[0]):02X}{text[1:]}" if text[0] in "+@" else text


def once(key: str, how: str) -> str:
    """What a job is unique by, as its record holds it: the key, how long it is held, what another call meets."""
    return f"{key} {how}"


def unique_key(task: str | None, value: str, kind: str = "") -> str:
    """The name of a unique key: of one task, or (None) of all tasks of a queue; the value encoded.

    `kind` tells `debounce` and `throttle` apart from `unique`: a call of one is never handed the job of another.
    """
    return f"{'' if task is None else encoded(task)}:{kind and kind + ':'}{value}"


def parsed(text: str) -> tuple[str | None, list[str], str | None]:
    """The reverse of `lane`, still encoded: the fairness key; each limit, without its cost; the lock.

    What can't be read is left out: a record may hold anything.
    """
    group, _, passed = text.partition(":")
    gates = [each.partition("#")[0] for each in passed.split(",") if each]
    locks = [each[1:] for each in gates if each[0] == "!"]
    limits = [each for each in gates if each[0] not in "!*#+"]
    return (None if group == NO_KEY or not group else group), limits, locks[0] if locks else None


def decoded(text: str) -> str:
    """A value's text again; a digest stays one."""
    if text == _EMPTY:
        return ""
    raw, at = bytearray(), 0
    while at < len(text):
        if text[at] == "%" and _is_hex(text[at + 1 : at + 3]):
            raw.append(int(text[at + 1 : at + 3], 16))
            at += 3
        else:
            raw += text[at].encode(errors="surrogatepass")
            at += 1
    return raw.decode(errors="replace")


def _is_hex(digits: Sequence[str]) -> bool:
    return len(digits) == 2 and all(digit in "0123456789ABCDEFabcdef" for digit in digits)
