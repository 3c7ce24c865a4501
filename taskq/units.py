"""Durations, sizes and instants: what a person writes, and the integers we keep.

Inside taskq a duration is an `int` of milliseconds (`…_ms`), an instant is
milliseconds since 1970 in UTC, a size is bytes. People write 30, "5m",
timedelta(hours=1), "1MiB" and aware datetimes. Every refusal is a ValueError
that names the argument and says the rule.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from taskq.errors import shown

Duration: TypeAlias = int | float | str | timedelta
"""Seconds, a timedelta, or text such as "90", "250ms", "5m", "1h30m", "1d"."""

Size: TypeAlias = int | str
"""Bytes, or text such as "512KiB", "1MiB", "10MB"."""

LONGEST_MS = 100 * 365 * 24 * 3600 * 1000
"""The longest duration taken: 100 years. Longer ones are slips, such as ms given for seconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS_A_UNIT = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_BYTES_A_UNIT = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "kib": 2**10,
    "mb": 10**6,
    "mib": 2**20,
    "gb": 10**9,
    "gib": 2**30,
}
# At most 15 digits: enough for every duration, and nobody can make us parse a megabyte of them.
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_PLAIN = re.compile(rf"[+-]?{_NUMBER}")
# Largest unit first and each once, so that "5m1h" and "1s1s" are refused as the slips they are.
_TEXT = re.compile(r"(?P<sign>[+-]?)" + "".join(rf"(?:(?P<{unit}>{_NUMBER})\s*{unit}\s*)?" for unit in _MS_A_UNIT))
_SIZE = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>[a-z]*)")


def duration_ms(value: Duration, *, name: str = "duration", negative: bool = False) -> int:
    """A duration in milliseconds.

    Args:
        value: seconds (int or float), a timedelta, or text ("5m", "1h30m", "250ms", "90").
        name: the argument's name, for the message.
        negative: whether one below zero is taken.

    Raises:
        ValueError: not a duration, NaN, negative, or beyond 100 years.

    A duration above zero never becomes 0: what is shorter than a millisecond is one.
    """
    ms = _exact_ms(value, name)
    if not math.isfinite(ms) or abs(ms) > LONGEST_MS:
        raise ValueError(
            f"{name}={shown(value)} is out of range: a duration is finite and at most 100 years (numbers are seconds)"
        )
    if ms < 0 and not negative:
        raise ValueError(f"{name}={shown(value)} is negative: a duration is zero or more")
    return round(ms) or math.ceil(ms)


def _exact_ms(value: Duration, name: str) -> float:
    if isinstance(value, timedelta):
        return value / timedelta(milliseconds=1)
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Far beyond every limit, where an int no longer fits a float.
        return value * 1000 if abs(value) <= LONGEST_MS else math.inf
    if isinstance(value, str):
        text = value.strip()
        if _PLAIN.fullmatch(text):
            return float(text) * 1000
        parts = _TEXT.fullmatch(text)
        if parts and any(parts[unit] for unit in _MS_A_UNIT):
            total = sum(float(parts[unit] or 0) * ms for unit, ms in _MS_A_UNIT.items())
            return -total if parts["sign"] == "-" else total
    raise ValueError(
        f"{name}={shown(value)} is no duration: give seconds, a timedelta,"
        ' or text such as "250ms", "30s", "5m", "1h30m", "1d"'
    )


def duration_text(ms: int) -> str:
    """The shortest text that `duration_ms` reads back as `ms`: "1h30m", "250ms", "0s"."""
    left, text = abs(ms), ""
    for unit in ("d", "h", "m", "s", "ms"):  # no weeks: "14d" is how people say it
        count, left = divmod(left, _MS_A_UNIT[unit])
        text += f"{count}{unit}" if count else ""
    return ("-" if ms < 0 else "") + (text or "0s")


def size_bytes(value: Size, *, name: str = "size") -> int:
    """A size in bytes, from bytes or text ("512KiB", "1MiB", "10MB", "4096").

    Raises:
        ValueError: not a size, or below one byte.
    """
    count: float = 0
    if isinstance(value, int) and not isinstance(value, bool):
        count = value
    elif isinstance(value, str):
        parts = _SIZE.fullmatch(value.strip().lower())
        if parts and parts["unit"] in _BYTES_A_UNIT:
            count = float(parts["number"]) * _BYTES_A_UNIT[parts["unit"]]
    if count < 1:
        raise ValueError(
            f'{name}={shown(value)} is no size: give bytes from 1 on, or text such as "512KiB", "1MiB", "10MB"'
        )
    return int(count)


def instant_ms(value: datetime | str, *, name: str = "at") -> int:
    """An instant in milliseconds since 1970, rounded up so that nothing due then starts early.

    Args:
        value: an aware datetime, or RFC 3339 text with an offset ("2030-01-31T09:00:00+01:00").
        name: the argument's name, for the message.

    Raises:
        ValueError: naive (which hour is meant depends on who reads it), before 1970, or no time.
    """
    moment = _read_instant(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        raise ValueError(  # noqa: TRY004 (one kind of refusal for all that can be wrong with it)
            f"{name}={shown(value)} is no instant: give an aware datetime,"
            ' such as datetime.now(UTC), or text such as "2030-01-31T09:00:00Z"'
        )
    if moment.utcoffset() is None:
        raise ValueError(
            f"{name}={shown(value)} has no time zone: give an aware datetime,"
            " such as datetime(2030, 1, 31, 9, tzinfo=ZoneInfo('Europe/Berlin'))"
        )
    ms = -((_EPOCH - moment) // timedelta(milliseconds=1))
    if ms < 0:
        raise ValueError(f"{name}={shown(value)} lies before 1970")
    return ms


def _read_instant(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def rfc3339(ms: int) -> str:
    """An instant as people and JSON read it: "2030-01-31T08:00:00.000Z", always in UTC.

    Raises:
        ValueError: outside the years 1 to 9999, which no clock of ours has said.
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        raise ValueError(f"{shown(ms)} ms is no instant between the years 1 and 9999") from None
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
