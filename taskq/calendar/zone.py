"""Time zones: names from the IANA database, and when their clocks change.

`zoneinfo` answers what the offset is at an instant; here it is asked when it changes.
The answers are kept, in blocks of about a year, so that a rule's next time costs microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from taskq.errors import shown

# Two changes of a zone have never been nearer than six days since 1970 (a test looks): none hides between two looks.
LOOK_S: Final = 2 * 86_400
_BLOCK_S = 184 * LOOK_S
_SECOND = timedelta(seconds=1)
# Names that mean another zone on another machine, or count leap seconds.
_LOCAL = re.compile(r"localtime|posixrules|(?:posix|right)/.*")


class Change(NamedTuple):
    """The instant from which a zone's clocks show `after_s` seconds more than UTC, not `before_s`."""

    at_s: int
    before_s: int
    after_s: int


@lru_cache(maxsize=1024)
def zone(name: str) -> tzinfo:
    """The time zone of an IANA name, such as "Europe/Berlin".

    Raises:
        ValueError: no such zone.
    """
    if name == "UTC":
        return UTC  # also where there is no database
    try:
        if not _LOCAL.fullmatch(name):
            return ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # OSError: "Europe" is a folder
        pass
    raise ValueError(
        f"tz={shown(name)} is no time zone{_near(name[:100])}: give an IANA name, such as 'Europe/Berlin' or 'UTC'"
    )


def _near(name: str) -> str:
    """Zones that the name may mean: spelt otherwise, a city alone, or mistyped."""
    import difflib  # only when somebody has mistyped

    known = {known.lower(): known for known in sorted(available_timezones()) if not _LOCAL.fullmatch(known)}
    wanted = re.sub(r"[\s-]+", "_", name.strip().lower())
    near = [known[wanted]] if wanted in known else []
    near += [known[key] for key in sorted(known) if key.rpartition("/")[2] == wanted.rpartition("/")[2]]
    near += [known[key] for key in difflib.get_close_matches(wanted, known, n=2, cutoff=0.75)]
    best = list(dict.fromkeys(near))[:3]
    return f" (did you mean {' or '.join(map(repr, best))}?)" if best else ""


def offset_s(where: tzinfo, instant_s: int) -> int:
    """How many seconds more than UTC the zone's clocks show at this instant."""
    return (datetime.fromtimestamp(instant_s, where).utcoffset() or timedelta()) // _SECOND


def changes(where: tzinfo, after_s: int, upto_s: int) -> Iterator[Change]:
    """The changes of a zone's clocks since 1970, later than one instant and not later than another, in order."""
    if where is UTC:
        return
    for block in range(max(after_s // _BLOCK_S, 0), upto_s // _BLOCK_S + 1):
        for change in _changes_of(where, block):
            if after_s < change.at_s <= upto_s:
                yield change


@lru_cache(maxsize=4096)
def _changes_of(where: tzinfo, block: int) -> tuple[Change, ...]:
    found, at = [], block * _BLOCK_S
    before = offset_s(where, at)
    for until in range(at + LOOK_S, at + _BLOCK_S + 1, LOOK_S):
        after = offset_s(where, until)
        if after != before:
            found.append(Change(_between(where, until - LOOK_S, until, before), before, after))
            before = after
    return tuple(found)


def _between(where: tzinfo, early: int, late: int, before: int) -> int:
    while late - early > 1:
        middle = (early + late) // 2
        if offset_s(where, middle) == before:
            early = middle
        else:
            late = middle
    return late
