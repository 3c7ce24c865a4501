"""Every change of every zone's clocks, against a walk through the minutes that shares no code with what it judges.

The walk looks at each minute of UTC around a change, asks zoneinfo what the clocks show, and
applies the table in `taskq/calendar/times.py` by plain predicates. CI takes the odd zones and two
years, and every zone for one; the run marked `long` takes every zone from 2020 to 2030.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from croniter import croniter
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from taskq.calendar import Rule, cron, next_after, next_times

MINUTE = timedelta(minutes=1)
BEFORE, AFTER = timedelta(hours=11), timedelta(hours=8)
ZONES = sorted(available_timezones() - {"localtime"})  # that one is another zone on each machine, and refused
ODD = [
    "Australia/Lord_Howe",  # half an hour
    "Antarctica/Troll",  # two hours
    "Pacific/Chatham",  # 45 minutes beside everybody else
    "Africa/Casablanca",  # by the moon
    "Asia/Gaza",
    "Africa/Cairo",
    "Asia/Beirut",  # at midnight, as the next four
    "America/Havana",
    "America/Asuncion",
    "America/Santiago",
    "Asia/Tehran",
    "America/New_York",
    "Europe/Berlin",
    "Europe/Dublin",  # winter time is the negative one
]
LATER = [
    ("America/Sao_Paulo", 2018, 2019),
    ("Pacific/Apia", 2011, 2011),  # a day that wasn't
    ("Asia/Pyongyang", 2015, 2018),
    ("America/Caracas", 2007, 2007),
    ("America/St_Johns", 2011, 2011),  # a minute after midnight
    ("Asia/Kathmandu", 1985, 1986),  # a quarter of an hour
]

# expression → the wall-clock minutes it means, whether it names every hour, whether it fires often (times.py).
Fits = Callable[[datetime], bool]
TABLE: dict[str, tuple[Fits, bool, bool]] = {
    "30 2 * * *": (lambda w: (w.hour, w.minute) == (2, 30), False, False),
    "0 0 * * *": (lambda w: (w.hour, w.minute) == (0, 0), False, False),
    "15 0-3,23 * * *": (lambda w: w.hour in {0, 1, 2, 3, 23} and w.minute == 15, False, False),
    "0 */2 * * *": (lambda w: w.hour % 2 == 0 and w.minute == 0, False, False),
    "0 0 * * 0": (lambda w: (w.isoweekday(), w.hour, w.minute) == (7, 0, 0), False, False),
    "*/20 0-2,23 * * *": (lambda w: w.hour in {0, 1, 2, 23} and w.minute % 20 == 0, False, True),
    "30 * * * *": (lambda w: w.minute == 30, True, True),
    "*/7 * * * *": (lambda w: w.minute % 7 == 0, True, True),
}
RULES = list(TABLE)


def changes(zone: ZoneInfo, first: int, last: int) -> Iterator[datetime]:
    """An instant at most six hours after each change of the clocks in these years."""
    moment, end = datetime(first, 1, 1, tzinfo=UTC), datetime(last + 1, 1, 1, tzinfo=UTC)
    before = moment.astimezone(zone).utcoffset()
    while moment < end:
        moment += timedelta(hours=6)
        if (now := moment.astimezone(zone).utcoffset()) != before:
            before = now
            yield moment


def walked(zone: ZoneInfo, start: datetime, end: datetime) -> dict[str, list[int]]:
    """What fires from start to end, found by walking through the minutes."""
    fired: dict[str, list[int]] = {expression: [] for expression in RULES}
    seen: set[datetime] = set()
    shown = (start - MINUTE).astimezone(zone).replace(tzinfo=None)
    old_clock, gap_end = shown, shown  # what clocks would show had they not been set forward; where the gap ended
    moment = start
    while moment < end:
        wall = moment.astimezone(zone).replace(tzinfo=None)
        jumped: list[datetime] = []
        old_clock += MINUTE
        if wall > shown + MINUTE:
            old_clock, gap_end = shown + MINUTE, wall
            jumped = [old_clock + step * MINUTE for step in range((wall - old_clock) // MINUTE)]
        for expression, (fits, every_hour, often) in TABLE.items():
            fires = fits(wall) and (often or wall not in seen)
            if every_hour:
                fires = fires or (old_clock < gap_end and fits(old_clock))
            else:
                fires = fires or any(fits(missing) for missing in jumped)
            if fires:
                fired[expression].append(round(moment.timestamp() * 1000))
        seen.add(wall)
        shown, moment = wall, moment + MINUTE
    return fired


def judge(name: str, first: int, last: int) -> int:
    zone, count = ZoneInfo(name), 0
    for about in changes(zone, first, last):
        count += 1
        start, end = about - BEFORE, about + AFTER
        from_ms, to_ms = (round(moment.timestamp() * 1000) for moment in (start, end))
        for expression, wanted in walked(zone, start, end).items():
            rule = cron(expression, tz=name)
            found, at = [], next_after(rule, from_ms - 1)
            while at is not None and at < to_ms:
                found.append(at)
                at = next_after(rule, at)
            assert found == wanted, f"{expression} in {name} near {about}"
    return count


@pytest.mark.parametrize("name", ODD)
def test_odd_zones(name):
    assert judge(name, 2022, 2023) > 0


@pytest.mark.parametrize("name, first, last", LATER)
def test_changes_of_other_years(name, first, last):
    assert judge(name, first, last) > 0


@pytest.mark.long
@pytest.mark.timeout(0)
def test_all_zones_2020_to_2030():
    """Zones whose clocks show the same all the time are judged once."""
    judged: set[tuple[object, ...]] = set()
    for name in ZONES:
        zone = ZoneInfo(name)
        moments = [datetime(2020, 1, 1, tzinfo=UTC), *changes(zone, 2020, 2030)]
        alike = tuple((moment, moment.astimezone(zone).utcoffset()) for moment in moments)
        if alike not in judged:
            judged.add(alike)
            judge(name, 2020, 2030)
    assert len(judged) > 80


def progress(rule: Rule, after_ms: int, n: int) -> None:
    times = next_times(rule, n, after_ms=after_ms)
    assert len(times) == n
    assert all(earlier < later for earlier, later in pairwise((after_ms, *times)))
    for earlier, later in pairwise((after_ms, *times)):  # nothing depends on where between two times one asks from
        assert next_after(rule, (earlier + later) // 2) == later


def test_all_zones_go_on_through_a_year():
    for number, name in enumerate(ZONES):
        expression = ("30 * * * *", "0 */2 * * *", "*/7 * * * * *", "30 2 * * *", "0 0 * * 0")[number % 5]
        rule = cron(expression, tz=name)
        for about in changes_by_month(ZoneInfo(name), 2026):
            progress(rule, round(about.timestamp() * 1000), 7)


def changes_by_month(zone: ZoneInfo, year: int) -> Iterator[datetime]:
    """The instants a little before the changes; found by days, a year of every zone would take too long by hours."""
    day = datetime(year, 1, 1, tzinfo=UTC)
    for ahead in range(365):
        here = day + timedelta(days=ahead)
        if here.astimezone(zone).utcoffset() != (here + timedelta(days=1)).astimezone(zone).utcoffset():
            yield here
    yield day


def one_a_day(name: str, first: int, last: int) -> None:
    """A daily rule fires on each local date once: between two firings at most 49 hours, whatever clocks do."""
    rule, zone = cron("30 2 * * *", tz=name), ZoneInfo(name)
    start = round(datetime(first, 1, 1, tzinfo=zone).timestamp() * 1000)
    days = (datetime(last + 1, 1, 1, tzinfo=UTC) - datetime(first, 1, 1, tzinfo=UTC)).days
    times = next_times(rule, days, after_ms=start)
    dates = [datetime.fromtimestamp(time / 1000, zone).toordinal() for time in times]
    assert dates == list(range(dates[0], dates[0] + days))
    assert max(later - earlier for earlier, later in pairwise(times)) <= 49 * 3_600_000


@pytest.mark.parametrize("name", ODD[:7])
def test_one_a_day(name):
    one_a_day(name, 2022, 2023)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_one_a_day_in_all_zones_2020_to_2030():
    for name in ZONES:
        one_a_day(name, 2020, 2030)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_two_changes_are_never_within_two_looks():
    """`zone.LOOK_S` rests on it."""
    for name in ZONES:
        found = list(changes(ZoneInfo(name), 1970, 2037))
        assert all(later - earlier > timedelta(days=6) for earlier, later in pairwise(found)), name


# --- the walk between times, without zones, against croniter's


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high).map(str)
    ranges = st.tuples(st.integers(low, high), st.integers(low, high)).filter(lambda ends: ends[0] != ends[1])
    spans = ranges.map(lambda ends: f"{min(ends)}-{max(ends)}")
    steps = st.tuples(spans | st.just("*"), st.integers(1, min(9, high - low + 1))).map(
        lambda parts: f"{parts[0]}/{parts[1]}"
    )
    return st.just("*") | st.lists(number | spans | steps, min_size=1, max_size=3).map(",".join)


@given(
    fields=st.tuples(
        field(0, 59), field(0, 59), field(0, 23), field(1, 28) | st.sampled_from(["l", "31", "30,l"]), field(1, 12),
        field(0, 6) | st.sampled_from(["mon-fri", "l3", "2#2", "sun"]),
    ),
    six=st.booleans(),
    after_s=st.integers(946_684_800, 4_000_000_000),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_the_same_times_as_croniter(fields, six, after_s):
    second, *others = fields
    if others[2] != "*" and {"#", "l"} & set(others[4]):
        others[2] = "*"  # croniter asks for both there; for us, as for cron, a day fits either
    assume(others[2:4] not in (["31", month] for month in ("2", "4", "6", "9", "11")))  # never fires
    rule = cron(" ".join([second, *others] if six else others))
    theirs = croniter(
        " ".join([*others, second] if six else others), datetime.fromtimestamp(after_s, UTC).replace(tzinfo=None)
    )
    for time in next_times(rule, 4, after_ms=after_s * 1000):
        assert time / 1000 == theirs.get_next(float)
