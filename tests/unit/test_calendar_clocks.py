"""Daylight saving, by example: the rules of `times` on nights that other schedulers got wrong."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from taskq.calendar import cron, every, next_after, next_times

HOUR = 3_600_000


def ms(text: str, zone: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def local(time: int, zone: str) -> str:
    return f"{datetime.fromtimestamp(time / 1000, ZoneInfo(zone)):%m-%d %H:%M %z}"


def fires(expression: str, zone: str, after: str, n: int) -> list[str]:
    return [local(time, zone) for time in next_times(cron(expression, tz=zone), n, after_ms=ms(after, zone))]


def hours_between(expression: str, zone: str, after: str, n: int) -> list[float]:
    times = next_times(cron(expression, tz=zone), n, after_ms=ms(after, zone))
    return [(later - earlier) / HOUR for earlier, later in pairwise(times)]


# --- clocks set forward


@pytest.mark.parametrize(
    "expression, zone, after, times",
    [
        # A fixed time in the gap: at the first instant after it, and the next day as ever.
        ("0 2 * * *", "America/New_York", "2026-03-07T12:00", ["03-08 03:00 -0400", "03-09 02:00 -0400"]),
        ("30 2 * * *", "America/New_York", "2026-03-07T12:00", ["03-08 03:00 -0400", "03-09 02:30 -0400"]),
        ("0 */2 * * *", "Europe/Berlin", "2026-03-29T00:00", ["03-29 03:00 +0200", "03-29 04:00 +0200"]),
        # Two times in the gap, or one there and one at its end, are one firing.
        ("0,30 2 * * *", "Europe/Berlin", "2026-03-29T00:00", ["03-29 03:00 +0200", "03-30 02:00 +0200"]),
        ("0 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00", ["03-29 03:00 +0200", "03-30 02:00 +0200"]),
        ("* 2 * * *", "Europe/Berlin", "2026-03-29T00:00", ["03-29 03:00 +0200", "03-30 02:00 +0200"]),
        # Midnight doesn't exist.
        ("0 0 * * 0", "America/Santiago", "2026-09-05T12:00", ["09-06 01:00 -0300", "09-13 00:00 -0300"]),
        ("0 0 * * *", "America/Havana", "2026-03-07T12:00", ["03-08 01:00 -0400", "03-09 00:00 -0400"]),
        ("0 0 * * *", "Asia/Beirut", "2026-03-28T12:00", ["03-29 01:00 +0300", "03-30 00:00 +0300"]),
        ("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00", ["04-24 01:00 +0300", "04-25 00:00 +0300"]),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00", ["11-04 01:00 -0200", "11-05 00:00 -0200"]),
        ("@daily", "America/Asuncion", "2022-10-01T12:00", ["10-02 01:00 -0300", "10-03 00:00 -0300"]),
        # Half an hour, two hours, a whole day.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", ["10-04 02:30 +1100", "10-05 02:15 +1100"]),
        ("30 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", ["10-04 02:30 +1100", "10-05 02:30 +1100"]),
        ("30 1,2 * * *", "Antarctica/Troll", "2026-03-29T00:00", ["03-29 03:00 +0200", "03-30 01:30 +0200"]),
        (
            "0 9 * * *",
            "Pacific/Apia",
            "2011-12-29T08:00",
            ["12-29 09:00 -1000", "12-31 00:00 +1400", "12-31 09:00 +1400"],
        ),
        # Ramadan: winter time ends, and is back a month later.
        ("30 2 * * *", "Africa/Casablanca", "2026-03-21T12:00", ["03-22 03:00 +0100", "03-23 02:30 +0100"]),
    ],
)
def test_a_time_in_the_gap_fires_once_at_its_end(expression, zone, after, times):
    assert fires(expression, zone, after, len(times)) == times


@pytest.mark.parametrize("expression", ["0 * * * *", "30 * * * *", "59 * * * *", "15 30 * * * *"])
@pytest.mark.parametrize(
    "zone, after",
    [
        ("America/Los_Angeles", "2026-03-07T20:00"),
        ("America/Los_Angeles", "2026-10-31T20:00"),
        ("Antarctica/Troll", "2026-03-28T20:00"),
        ("Antarctica/Troll", "2026-10-24T20:00"),
        ("Africa/Cairo", "2026-04-23T20:00"),
        ("Pacific/Apia", "2011-12-29T20:00"),
    ],
)
def test_hourly_is_hourly_through_every_change_of_whole_hours(expression, zone, after):
    assert set(hours_between(expression, zone, after, 40)) == {1.0}


def test_hourly_through_a_change_of_half_an_hour():
    """On Lord Howe the day isn't made of whole hours; nothing is lost, and an hour passes between all but two."""
    assert fires("0 * * * *", "Australia/Lord_Howe", "2026-10-04T00:30", 4) == [
        "10-04 01:00 +1030",
        "10-04 02:30 +1100",  # 2:00 by the clock of before
        "10-04 03:00 +1100",
        "10-04 04:00 +1100",
    ]


# --- clocks set back


@pytest.mark.parametrize(
    "expression, zone, after, times",
    [
        ("30 1 * * *", "America/New_York", "2026-10-31T12:00", ["11-01 01:30 -0400", "11-02 01:30 -0500"]),
        ("0 12 * * *", "America/New_York", "2026-10-31T11:00", ["10-31 12:00 -0400", "11-01 12:00 -0500"]),
        ("0 */2 * * *", "Europe/Berlin", "2026-10-25T01:00", ["10-25 02:00 +0200", "10-25 04:00 +0100"]),
        ("30 23 * * *", "America/Santiago", "2026-04-04T12:00", ["04-04 23:30 -0300", "04-05 23:30 -0400"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00", ["04-05 01:45 +1100", "04-06 01:45 +1030"]),
        ("30 1 * * *", "Antarctica/Troll", "2026-10-24T12:00", ["10-25 01:30 +0200", "10-26 01:30 +0000"]),
        ("0 0 * * *", "America/Havana", "2026-10-31T12:00", ["11-01 00:00 -0400", "11-02 00:00 -0500"]),
        # Several times in an hour: by elapsed time, both hours.
        (
            "*/30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00",
            ["11-01 01:00 -0400", "11-01 01:30 -0400", "11-01 01:00 -0500", "11-01 01:30 -0500", "11-02 01:00 -0500"],
        ),
    ],
)
def test_in_the_overlap_a_fixed_time_fires_the_first_time(expression, zone, after, times):
    assert fires(expression, zone, after, len(times)) == times


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Antarctica/Troll"])
def test_asked_from_inside_the_overlap(zone):
    """Between 2:10 the first time and 2:10 the second, whoever asks gets the same answer as who asked before."""
    rule = cron("30 2 * * *", tz=zone)
    first = ms("2026-10-25T02:30", zone)
    assert next_after(rule, first - 20 * 60_000) == first
    for minutes in range(0, 240, 7):
        assert next_after(rule, first + minutes * 60_000) == ms("2026-10-26T02:30", zone)


def test_every_five_minutes_is_every_five_minutes_of_elapsed_time():
    for after in ("2026-03-28T22:00", "2026-10-24T22:00"):
        assert set(hours_between("*/5 * * * *", "Europe/Berlin", after, 100)) == {5 / 60}


def test_an_hourly_rule_fires_25_and_23_times_on_the_days_of_the_change():
    for day, count in ((date(2026, 11, 1), 25), (date(2026, 3, 8), 23), (date(2026, 6, 1), 24)):
        times = next_times(
            cron("0 * * * *", tz="America/Los_Angeles"), 26, after_ms=ms(f"{day}T00:00", "America/Los_Angeles") - 1
        )
        days = [datetime.fromtimestamp(time / 1000, ZoneInfo("America/Los_Angeles")).date() for time in times]
        assert days.count(day) == count


# --- other traps


def test_the_next_day_isnt_24_hours_later():
    assert fires("0 0 * * 0-4", "US/Central", "2021-03-12T01:00", 3) == [
        "03-14 00:00 -0600",
        "03-15 00:00 -0500",
        "03-16 00:00 -0500",
    ]
    assert fires("0 12 * * 0", "Europe/Berlin", "2022-03-20T11:00", 3) == [
        "03-20 12:00 +0100",
        "03-27 12:00 +0200",
        "04-03 12:00 +0200",
    ]


def test_rare_dates_across_many_changes_of_the_clocks():
    assert fires("30 2 29 2 *", "Europe/Berlin", "2026-01-01T00:00", 2) == ["02-29 02:30 +0100", "02-29 02:30 +0100"]
    assert (
        local(next_times(cron("0 9 1 7 *", tz="Europe/Berlin"), 5, after_ms=0)[-1], "Europe/Berlin")[:11]
        == "07-01 09:00"
    )


def test_an_interval_knows_no_clocks():
    times = next_times(every("1h"), 200, after_ms=ms("2026-03-25T00:00", "Europe/Berlin"))
    assert {later - earlier for earlier, later in pairwise(times)} == {HOUR}


@pytest.mark.parametrize("zone", ["UTC", "Etc/GMT+12", "Pacific/Kiritimati", "Asia/Kathmandu", "Europe/Dublin"])
def test_zones_far_from_greenwich_and_with_odd_minutes(zone):
    times = next_times(cron("0 9 * * *", tz=zone), 400, after_ms=ms("2026-01-01T00:00", zone))
    said = [datetime.fromtimestamp(time / 1000, ZoneInfo(zone)) for time in times]
    assert {(moment.hour, moment.minute) for moment in said} == {(9, 0)}
    assert [moment.toordinal() for moment in said] == list(range(said[0].toordinal(), said[0].toordinal() + 400))
    assert said[0].astimezone(UTC) == datetime(2026, 1, 1, 9, tzinfo=ZoneInfo(zone))
