"""Values without parts: how each stands in the bytes, comes back, and is shown as JSON.

Each is one row of `SCALARS`: its code, the body written for it, the reader of
that body, and the JSON value of that body. Times are ISO 8601 text, followed
where there is one by the name of the zone and the fold:
`2024-10-27T02:30:00+01:00;Europe/Berlin;1`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from uuid import UUID

from taskq.codec.wire import MAX_INT_BITS, Code
from taskq.errors import InvalidPayload, Unencodable

_MICROSECOND = timedelta(microseconds=1)
# Never dots: a stored zone may not become a path outside the folder of zones.
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}")


@dataclass(frozen=True, slots=True)
class Scalar:
    """One type: `write` its body, `read` it back, `show` the body as JSON; `type` is the JSON's `$type`."""

    code: Code
    type: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    show: Callable[[bytes], Any]


def _write_int(value: int) -> bytes:
    if value.bit_length() > MAX_INT_BITS:
        raise Unencodable(f"an integer of {value.bit_length()} bits is over the limit of {MAX_INT_BITS}: pass bytes")
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _read_int(body: bytes) -> int:
    if len(body) > MAX_INT_BITS // 8 + 1:
        raise InvalidPayload(f"an integer of {len(body)} bytes is over the limit of {MAX_INT_BITS} bits")
    return int.from_bytes(body, "big", signed=True)


def _zone_name(zone: tzinfo | None) -> str:
    """The name of a ZoneInfo; other zones are stored as the offset that they gave."""
    if zone is None or type(zone) is timezone:
        return ""
    from zoneinfo import ZoneInfo

    key = zone.key if isinstance(zone, ZoneInfo) else None
    return key if key and _ZONE.fullmatch(key) else ""


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    if not _ZONE.fullmatch(name):
        raise InvalidPayload("a stored time names no time zone")
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise InvalidPayload(f"the time zone {name} isn't known here: install the package tzdata") from error


def _write_moment(value: datetime | time) -> bytes:
    zone, text = _zone_name(value.tzinfo), value.isoformat()
    return (f"{text};{zone};{value.fold}" if zone or value.fold else text).encode("ascii")


def _moment_parts(body: bytes) -> tuple[str, str, int]:
    text, _, rest = body.decode("ascii").partition(";")
    zone, _, fold = rest.partition(";")
    return text, zone, int(fold == "1")


def _read_datetime(body: bytes) -> datetime:
    text, zone, fold = _moment_parts(body)
    moment = datetime.fromisoformat(text).replace(fold=fold)
    if not zone:
        return moment
    there = moment.replace(tzinfo=_zone(zone))
    # The rules of a zone change. Where this machine's rules differ from the writer's, the instant wins over the clock's
    # face: two machines must not mean different moments.
    same = moment.tzinfo is None or there.utcoffset() == moment.utcoffset()
    return there if same else moment.astimezone(there.tzinfo)


def _read_time(body: bytes) -> time:
    text, zone, fold = _moment_parts(body)
    moment = time.fromisoformat(text).replace(fold=fold)
    return moment.replace(tzinfo=_zone(zone)) if zone else moment


def _show_moment(body: bytes) -> str:
    # By text alone: whoever only looks needs no zone files.
    return _moment_parts(body)[0]


def _read_date(body: bytes) -> date:
    return date.fromisoformat(body.decode("ascii"))


def _write_timedelta(value: timedelta) -> bytes:
    return b"%d" % (value // _MICROSECOND)


def _microseconds(body: bytes) -> int:
    if len(body) > 24:
        raise InvalidPayload("a stored timedelta is out of range")
    return int(body)


def _show_timedelta(body: bytes) -> int | float:
    seconds, rest = divmod(_microseconds(body), 1_000_000)
    return seconds + rest / 1_000_000 if rest else seconds


def _show_complex(body: bytes) -> list[Any]:
    return [show_float(part) for part in struct.unpack(">dd", body)]


def show_float(value: float) -> Any:
    """A float as JSON: itself, or its name where JSON has no number for it."""
    finite = value - value == 0
    return value if finite else {"$type": "float", "value": str(value)}


SCALARS: dict[type, Scalar] = {
    int: Scalar(Code.INT, "int", _write_int, _read_int, _read_int),
    datetime: Scalar(Code.DATETIME, "datetime", _write_moment, _read_datetime, _show_moment),
    date: Scalar(Code.DATE, "date", lambda value: value.isoformat().encode(), _read_date, _show_moment),
    time: Scalar(Code.TIME, "time", _write_moment, _read_time, _show_moment),
    timedelta: Scalar(
        Code.TIMEDELTA,
        "timedelta",
        _write_timedelta,
        lambda body: timedelta(microseconds=_microseconds(body)),
        _show_timedelta,
    ),
    UUID: Scalar(
        Code.UUID,
        "uuid",
        lambda value: value.bytes,
        lambda body: UUID(bytes=body),
        lambda body: str(UUID(bytes=body)),
    ),
    Decimal: Scalar(
        Code.DECIMAL,
        "decimal",
        lambda value: str(value).encode(),
        lambda body: Decimal(body.decode("ascii")),
        lambda body: body.decode("ascii"),
    ),
    complex: Scalar(
        Code.COMPLEX,
        "complex",
        lambda value: struct.pack(">dd", value.real, value.imag),
        lambda body: complex(*struct.unpack(">dd", body)),
        _show_complex,
    ),
}

BY_CODE: dict[int, Scalar] = {scalar.code: scalar for scalar in SCALARS.values()}
