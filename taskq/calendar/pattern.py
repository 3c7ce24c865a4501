"""A cron expression, read once: which seconds of the wall clock it means, in no time zone.

croniter knows the grammar; the walk from one time to the next is ours, because it has
to be fast and must not know of daylight saving. Dates are days since 1970, times are
seconds since 1970-01-01 00:00 on a wall clock that never changes.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable
from datetime import date
from functools import lru_cache
from typing import Final

from taskq.errors import did_you_mean, shown

DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""Short names of common expressions; `@every 90s` is an interval and stands in `declare`."""

LAST_YEAR: Final = 9000
"""No time lies beyond it: Python's dates end at 9999, and time zones need room there."""

# The rarest dates, such as a fifth Monday in February, come back after 28 years, or 40 where a century has no leap day.
_YEARS_TRIED = 50
_LONGEST = 1000
_DAY_S = 86_400
_EPOCH = date(1970, 1, 1).toordinal()
# How many values each has, and what the last of them is called.
_FIELDS: Final = {
    "second": (60, "59"),
    "minute": (60, "59"),
    "hour": (24, "23"),
    "day of the month": (31, "31"),
    "month": (12, "12|dec"),
    "day of the week": (7, "[67]|sat|sun"),
}
_RANDOM = re.compile(r"(?:^|,)[hr](?:[(/,]|$)")
_STEP = re.compile(r"/(\d{1,9})")
_SAME = re.compile(r"(?:^|,)(\w+)-\1(?:[/,]|$)")


class Pattern:
    """A cron expression's times. Made by `read`, which keeps the latest ones.

    `every_hour`: no hour is left out. `often`: several times within an hour, or every hour; what
    happens to such a rule when the clocks change is another thing (`times`).
    """

    __slots__ = (
        "_dates",
        "_days",
        "_first_s",
        "_hours",
        "_last_day",
        "_minutes",
        "_months",
        "_nth",
        "_seconds",
        "_weekdays",
        "every_hour",
        "often",
    )

    def __init__(self, fields: list[list[int | str]], nth: dict[int, set[int | str]]) -> None:
        minutes, hours, days, months, weekdays, seconds = fields
        self._seconds = _following(seconds, 60)
        self._minutes = _following(minutes, 60)
        self._hours = _following(hours, 24)
        self._months = frozenset(_numbers(months, range(1, 13)))
        self._days = None if days == ["*"] else frozenset(_numbers(days, ()))
        self._last_day = "l" in days
        self._weekdays = None if weekdays == ["*"] and not nth else frozenset(_numbers(weekdays, ())) - nth.keys()
        self._nth = nth
        self._dates: dict[tuple[int, int], tuple[int, ...]] = {}
        self._first_s = self._hours[0] * 3600 + self._minutes[0] * 60 + self._seconds[0]
        self.every_hour = len(set(self._hours)) == 25  # with the -1 at the end
        once_an_hour = len(set(self._minutes)) == 2 and len(set(self._seconds)) == 2
        self.often = self.every_hour or not once_an_hour

    def at_or_after(self, wall_s: int) -> int | None:
        """The first time from this one on; None if there is none within 50 years."""
        today, second = divmod(wall_s, _DAY_S)
        day = self._day(today)
        if day == today:
            if (time := self._time(second)) >= 0:
                return day * _DAY_S + time
            day = self._day(today + 1)
        return None if day is None else day * _DAY_S + self._first_s

    def _time(self, second: int) -> int:
        """The first time of a day from this second on, or -1."""
        hour, rest = divmod(second, 3600)
        if self._hours[hour] == hour:
            minute, rest = divmod(rest, 60)
            if self._minutes[minute] == minute and (found := self._seconds[rest]) >= 0:
                return hour * 3600 + minute * 60 + found
            if (found := self._minutes[minute + 1]) >= 0:
                return hour * 3600 + found * 60 + self._seconds[0]
        found = self._hours[hour + 1]
        return found if found < 0 else found * 3600 + self._minutes[0] * 60 + self._seconds[0]

    def _day(self, day: int) -> int | None:
        """The first day from this one on; None if there is none within 50 years."""
        if day + _EPOCH >= date.max.toordinal():
            return None
        start = date.fromordinal(day + _EPOCH)
        year, month, least = start.year, start.month, start.day
        for _ in range(12 * _YEARS_TRIED):
            if year > LAST_YEAR:
                return None
            if month in self._months:
                for number in self._dates_of(year, month):
                    if number >= least:
                        return date(year, month, number).toordinal() - _EPOCH
            least, month = 1, month + 1
            if month > 12:
                year, month = year + 1, 1
        return None

    def _dates_of(self, year: int, month: int) -> tuple[int, ...]:
        found = self._dates.get((year, month))
        if found is None:
            if len(self._dates) >= 256:
                self._dates.clear()
            found = self._dates[year, month] = tuple(sorted(self._read_month(year, month)))
        return found

    def _read_month(self, year: int, month: int) -> Iterable[int]:
        first, length = monthrange(year, month)
        every = range(1, length + 1)
        days: set[int] = set()
        if self._days is not None:
            days.update(day for day in every if day in self._days or (self._last_day and day == length))
        if self._weekdays is not None:
            # Both day fields given: a day that fits either, as cron has always had it.
            for day in every:
                weekday = (first + day) % 7  # 0 is Sunday; Python's 0 is Monday
                which = self._nth.get(weekday, ())
                if weekday in self._weekdays or (day + 6) // 7 in which or ("l" in which and day + 7 > length):
                    days.add(day)
        return every if self._days is None and self._weekdays is None else days


def _numbers(field: list[int | str], every: Iterable[int]) -> Iterable[int]:
    return every if field == ["*"] else (item for item in field if isinstance(item, int))


def _following(field: list[int | str], size: int) -> list[int]:
    """For each value of a field the first one from it on that is meant, or -1; one longer than the field."""
    table, members = [-1] * (size + 1), set(_numbers(field, range(size)))
    for value in reversed(range(size)):
        table[value] = value if value in members else table[value + 1]
    return table


@lru_cache(maxsize=1024)
def read(expression: str) -> Pattern:
    """A cron expression of 5 fields, or of 6 with the seconds first, or a descriptor such as "@daily".

    Fields are lists of numbers, names, ranges and steps; also `L` (the last day of the month), `5L`'s
    croniter form `L5` (the last Friday) and `5#2` (the second Friday).

    Raises:
        ValueError: no such expression, or one whose dates never come.
    """
    pattern = _parse(expression)
    if pattern.at_or_after(946_684_800) is None:  # 2000: a fixed year, so that all judge alike
        raise ValueError(f"cron expression {shown(expression)} never fires: no month has such a day")
    return pattern


def _parse(expression: str) -> Pattern:
    said = f"cron expression {shown(expression)}"
    text = expression.strip().lower()
    if text.startswith("@") and text not in DESCRIPTORS:
        known = [*DESCRIPTORS, "@every 5m"]
        raise ValueError(
            f"{shown(expression)} is no descriptor{did_you_mean(text, known)}: there are {', '.join(known)}"
        )
    if len(text) > _LONGEST or not text.isascii():
        raise ValueError(f"{said} is too long, or not in ASCII")
    fields = DESCRIPTORS.get(text, text).split()
    if len(fields) not in {5, 6}:
        raise ValueError(
            f"{said} has {len(fields)} field{'s' * (len(fields) != 1)}: it has 5 (minute, hour, day of the month,"
            " month, day of the week), or 6 with the second first"
        )
    fields = fields if len(fields) == 6 else ["0", *fields]
    for name, field in zip(_FIELDS, fields, strict=True):
        _refuse_traps(f"{said}: {shown(field)} as {name}", name, field)
    try:
        return Pattern(*_expand(fields))
    except ValueError:
        for index, name in enumerate(_FIELDS):  # which of them is it?
            alone = ["0", *"*****"]
            alone[index] = fields[index]
            try:
                _expand(alone)
            except ValueError as error:
                raise ValueError(f"{said}: {shown(fields[index])} is no {name}") from error
        raise ValueError(f"{said} can't be read") from None


def _refuse_traps(said: str, name: str, field: str) -> None:
    """What croniter takes, and means otherwise than most who write it, or otherwise in each process or version."""
    if _RANDOM.search(field):
        raise ValueError(f"{said} is drawn by lot: give a number, and jitter= to spread schedules")
    if same := _SAME.search(field):
        raise ValueError(f"{said}: give {shown(same[1])} for one, * for all of them")
    if name == "day of the month" and "w" in field:
        raise ValueError(f"{said}: the nearest weekday (W) isn't supported")
    size, last = _FIELDS[name]
    if re.search(rf"(?:^|,)(?:{last})/", field) or any(int(step) > size for step in _STEP.findall(field)):
        raise ValueError(f"{said} has a step beyond the field's end: give '@every …' for an interval")


def _expand(fields: list[str]) -> tuple[list[list[int | str]], dict[int, set[int | str]]]:
    from croniter import croniter  # only who declares or fires a schedule needs it

    # Always five fields: with six, versions before 7 take a 0 for the first and refuse a 7 for Sunday.
    second, *others = fields
    seconds, *_ = croniter.expand(f"{second} * * * *")[0]
    expanded, nth = croniter.expand(" ".join(others))
    # Its numbers pass for text in its annotations.
    return [list(field) for field in (*expanded, seconds)], {int(day): set(which) for day, which in nth.items()}
