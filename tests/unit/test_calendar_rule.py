"""Rules of recurring work: what is taken, what is refused and how it says so, and their text."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from taskq.calendar import Rule, cron, every, next_after, next_times, read_rule, rule_text


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def said(rule: Rule, n: int, after: str) -> list[str]:
    return [
        f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}" for ms in next_times(rule, n, after_ms=at(after))
    ]


@pytest.mark.parametrize(
    "expression, times",
    [
        ("*/20 * * * *", ["2026-01-01T00:20:00", "2026-01-01T00:40:00", "2026-01-01T01:00:00"]),
        ("15 30 9 * * *", ["2026-01-01T09:30:15", "2026-01-02T09:30:15", "2026-01-03T09:30:15"]),
        ("*/25 * * * * *", ["2026-01-01T00:00:25", "2026-01-01T00:00:50", "2026-01-01T00:01:00"]),
        ("0 9 * * 1-5", ["2026-01-01T09:00:00", "2026-01-02T09:00:00", "2026-01-05T09:00:00"]),
        ("0 9 * * MON,wed", ["2026-01-05T09:00:00", "2026-01-07T09:00:00", "2026-01-12T09:00:00"]),
        ("0 0 * * 7", ["2026-01-04T00:00:00", "2026-01-11T00:00:00", "2026-01-18T00:00:00"]),
        ("0 22-1 * * *", ["2026-01-01T01:00:00", "2026-01-01T22:00:00", "2026-01-01T23:00:00"]),
        ("0 0 31 * *", ["2026-01-31T00:00:00", "2026-03-31T00:00:00", "2026-05-31T00:00:00"]),
        ("0 0 L * *", ["2026-01-31T00:00:00", "2026-02-28T00:00:00", "2026-03-31T00:00:00"]),
        ("0 0 * * L5", ["2026-01-30T00:00:00", "2026-02-27T00:00:00", "2026-03-27T00:00:00"]),
        ("0 0 * 12 L5", ["2026-12-25T00:00:00", "2027-12-31T00:00:00", "2028-12-29T00:00:00"]),
        ("0 0 * * 5-7", ["2026-01-02T00:00:00", "2026-01-03T00:00:00", "2026-01-04T00:00:00"]),
        ("0 0 * * 5#5", ["2026-01-30T00:00:00", "2026-05-29T00:00:00", "2026-07-31T00:00:00"]),
        ("0 0 * * 1#1,1#3", ["2026-01-05T00:00:00", "2026-01-19T00:00:00", "2026-02-02T00:00:00"]),
        ("0 0 ? * 6", ["2026-01-03T00:00:00", "2026-01-10T00:00:00", "2026-01-17T00:00:00"]),
        ("0 0 10 * 6", ["2026-01-03T00:00:00", "2026-01-10T00:00:00", "2026-01-17T00:00:00"]),
        ("0 0 2 * 1#1", ["2026-01-02T00:00:00", "2026-01-05T00:00:00", "2026-02-02T00:00:00"]),
        ("@yearly", ["2027-01-01T00:00:00", "2028-01-01T00:00:00", "2029-01-01T00:00:00"]),
        ("@annually", ["2027-01-01T00:00:00", "2028-01-01T00:00:00", "2029-01-01T00:00:00"]),
        ("@monthly", ["2026-02-01T00:00:00", "2026-03-01T00:00:00", "2026-04-01T00:00:00"]),
        ("@weekly", ["2026-01-04T00:00:00", "2026-01-11T00:00:00", "2026-01-18T00:00:00"]),
        ("@daily", ["2026-01-02T00:00:00", "2026-01-03T00:00:00", "2026-01-04T00:00:00"]),
        ("@Midnight", ["2026-01-02T00:00:00", "2026-01-03T00:00:00", "2026-01-04T00:00:00"]),
        ("@hourly", ["2026-01-01T01:00:00", "2026-01-01T02:00:00", "2026-01-01T03:00:00"]),
        ("@every 90s", ["2026-01-01T00:01:30", "2026-01-01T00:03:00", "2026-01-01T00:04:30"]),
    ],
)
def test_every_form_fires(expression, times):
    rule = cron(expression)
    assert said(rule, 3, "2026-01-01T00:00:00") == times
    assert said(read_rule(rule_text(rule)), 3, "2026-01-01T00:00:00") == times


def test_the_year_rolls_over_and_the_leap_day_comes_back():
    assert said(cron("59 59 23 31 12 *"), 2, "2025-12-31T23:59:58") == ["2025-12-31T23:59:59", "2026-12-31T23:59:59"]
    leap = cron("0 9 29 2 *")
    assert said(leap, 1, "2024-02-29T09:00:00") == ["2028-02-29T09:00:00"]
    assert said(leap, 1, "2096-02-29T09:00:00") == ["2104-02-29T09:00:00"]
    assert said(cron("0 0 * 2 1#5"), 2, "2073-01-01T00:00:00") == ["2112-02-29T00:00:00", "2140-02-29T00:00:00"]


def test_an_interval_counts_from_1970_or_from_its_start():
    assert said(every("15m"), 2, "2026-01-01T00:07:00") == ["2026-01-01T00:15:00", "2026-01-01T00:30:00"]
    anchored = every(timedelta(minutes=15), start="2026-01-01T00:07:00Z")
    assert said(anchored, 2, "2020-01-01T00:00:00") == ["2026-01-01T00:07:00", "2026-01-01T00:22:00"]
    assert said(anchored, 1, "2026-01-01T00:07:00") == ["2026-01-01T00:22:00"]
    assert cron("@every 15m") == every("15m") == every(900)
    assert said(every("1.5s"), 2, "2026-01-01T00:00:00") == ["2026-01-01T00:00:01", "2026-01-01T00:00:03"]


def test_start_and_end_are_the_first_and_the_last_instant():
    rule = cron("@daily", start="2026-01-01T00:00:00Z", end=datetime(2026, 1, 3, tzinfo=UTC))
    assert said(rule, 9, "2020-01-01T00:00:00") == ["2026-01-01T00:00:00", "2026-01-02T00:00:00", "2026-01-03T00:00:00"]
    assert next_after(rule, at("2026-01-03T00:00:00")) is None
    assert len(next_times(cron("@daily", max_runs=2), 9, after_ms=0)) == 2


def test_no_instant_is_too_strange_to_ask_from():
    for rule in (cron("* * * * *"), every("1s"), cron("@yearly", tz="Asia/Kathmandu")):
        assert next_after(rule, -(10**18)) is not None
        assert next_after(rule, 10**18) is None
        assert next_after(rule, at("9000-01-01T00:00:00")) is None
        assert next_after(rule, at("8998-12-01T00:00:00")) is not None


@pytest.mark.parametrize(
    "expression, message",
    [
        ("", "no cron expression"),
        (None, "no cron expression"),
        ("* * * *", r"'\* \* \* \*' has 4 fields: it has 5 .* or 6 with the second first"),
        ("* * * * * * 2030", "has 7 fields"),
        ("0 25 * * *", "'25' is no hour"),
        ("60 * * * *", "'60' is no minute"),
        ("60 * * * * *", "'60' is no second"),
        ("0 0 0 * *", "'0' is no day of the month"),
        ("0 0 * 13 *", "'13' is no month"),
        ("0 0 * * funday", "'funday' is no day of the week"),
        ("0 0 * * 1#6", "'1#6' is no day of the week"),
        ("-1 * * * *", "'-1' is no minute"),
        ("a/b * * * *", "'a/b' is no minute"),
        ("*/0 * * * *", r"'\*/0' is no minute"),
        ("*/90 * * * *", "a step beyond the field's end: give '@every"),
        ("59/15 * * * *", "a step beyond the field's end"),
        ("0 0 * DEC/3 *", "a step beyond the field's end"),
        ("5-5 * * * *", "give '5' for one"),
        ("R * * * *", "drawn by lot"),
        ("H(0-5) * * * *", "drawn by lot"),
        ("0 0 15W * *", "nearest weekday"),
        ("0 0 * * 1,2#1", "'1,2#1' is no day of the week"),
        ("0 0 30 2 *", r"'0 0 30 2 \*' never fires"),
        ("0 0 31 2,4,6,9,11 *", "never fires"),
        ("٥ * * * *", "ASCII"),
        ("0," * 600 + "0 * * * *", "too long"),
        ("@dayly", "did you mean '@daily'"),
        ("@every", "@every='' is no duration"),
        ("@every 0", "too often"),
        ("@every 0.5s", "@every 500ms is too often: an interval is at least 1s"),
        ("@every -5s", "negative"),
        ("@every day", "no duration"),
    ],
)
def test_a_wrong_expression_is_refused_by_name(expression, message):
    with pytest.raises(ValueError, match=message):
        cron(expression)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"tz": "Berlin"}, "did you mean 'Europe/Berlin'"),
        ({"tz": "europe/berlin"}, "did you mean 'Europe/Berlin'"),
        ({"tz": "Europe/Berln"}, "did you mean 'Europe/Berlin'"),
        ({"tz": "New York"}, "did you mean 'America/New_York'"),
        ({"tz": "Europe"}, "no time zone: give an IANA name"),
        ({"tz": ""}, "no time zone"),
        ({"tz": "../../etc/passwd"}, "no time zone"),
        ({"tz": "Europe/Berlin\0"}, "no time zone"),
        ({"tz": "x" * 5000}, "no time zone"),
        ({"tz": "localtime"}, "no time zone"),
        ({"tz": "right/UTC"}, "no time zone"),
        ({"tz": None}, "tz=None is no text"),
        ({"tz": ["UTC"]}, r"tz=\['UTC'\] is no text"),
        ({"max_runs": 0}, "max_runs=0"),
        ({"max_runs": True}, "max_runs=True"),
        ({"max_runs": 1.5}, "max_runs=1.5"),
        ({"jitter": "soon"}, "jitter='soon' is no duration"),
        ({"jitter": -1}, "jitter=-1 is negative"),
        ({"missed": "last"}, "missed='last' is none.*skip, latest, all"),
        ({"overlap": "queue_one"}, "did you mean 'queue-one'"),
        ({"overlap": []}, "overlap="),
        ({"start": datetime(2030, 1, 1)}, "start=.*has no time zone"),  # noqa: DTZ001 (that is the point)
        ({"end": "tomorrow"}, "end='tomorrow' is no instant"),
        ({"start": "2030-01-02T00:00:00Z", "end": "2030-01-01T00:00:00Z"}, "end lies before start"),
        ({"start": "2030-01-01T00:00:01Z", "end": "2030-01-01T23:00:00Z"}, "none of its times lies between"),
        ({"start": "9999-01-01T00:00:00Z"}, "from 1970 to 8999"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        cron("@daily", **options)


def test_an_interval_has_no_zone_and_a_jitter_below_it():
    with pytest.raises(ValueError, match=r"@every 1m has no time zone.*'0 9"):
        cron("@every 60s", tz="Europe/Berlin")
    with pytest.raises(ValueError, match="@every 30s: jitter=30s must be shorter"):
        every("30s", jitter="30s")
    with pytest.raises(ValueError, match="too often"):
        every(0.999)


# --- text


RULES = [
    cron("0 9 * * 1-5", tz="Europe/Berlin"),
    cron("0  0\t1 1 *"),
    cron("@daily", max_runs=3, jitter="30s", missed="all", overlap="queue-one"),
    every("30s", start="2026-01-01T00:00:00Z", end="2027-01-01T00:00:00Z", missed="skip", overlap="skip"),
    every("1s"),
]


def test_the_text_is_short_and_comes_back_as_the_same_rule():
    assert rule_text(RULES[0]) == '{"cron":"0 9 * * 1-5","tz":"Europe/Berlin"}'
    assert rule_text(RULES[1]) == '{"cron":"0 0 1 1 *"}'
    assert rule_text(RULES[4]) == '{"every_ms":1000}'
    for rule in RULES:
        assert read_rule(rule_text(rule)) == read_rule(rule_text(rule).encode()) == rule
    assert len({rule_text(rule) for rule in RULES}) == len(RULES)


def test_another_spelling_is_the_same_rule():
    assert cron(" 0 9  * jan Mon-fri\n") == cron("0 9 * JAN MON-FRI")
    assert cron("@Daily ") == cron("@daily")
    assert cron("@EVERY 90s") == every("1m30s")


def test_a_changed_rule_has_another_text():
    rule = {"cron": "@daily", "tz": "Asia/Tokyo", "start_ms": 1, "end_ms": 10**13, "max_runs": 2, "jitter_ms": 5}
    rule |= {"missed": "all", "overlap": "skip"}
    other = {"cron": "@hourly", "tz": "UTC", "start_ms": 2, "end_ms": 10**12, "max_runs": 3, "jitter_ms": 6}
    other |= {"missed": "skip", "overlap": "allow"}
    texts = {rule_text(Rule(**rule))} | {rule_text(Rule(**rule | {name: other[name]})) for name in rule}
    assert len(texts) == 1 + len(rule)


def test_a_later_versions_text_keeps_its_times():
    text = '{"cron":"@daily","missed":"newest","overlap":7,"holidays":["DE"],"tz":"Asia/Tokyo"}'
    assert read_rule(text) == cron("@daily", tz="Asia/Tokyo")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{",
        "{}",
        "[" * 4000,
        '{"tz":"UTC"}',
        '{"cron":"@daily","every_ms":1000}',
        '{"cron":"@daily","tz":["UTC"]}',
        '{"cron":"@daily","tz":"Mars/Olympus"}',
        '{"cron":["@daily"]}',
        '{"cron":"* *"}',
        '{"every_ms":"1000"}',
        '{"every_ms":1e3}',
        '{"every_ms":NaN}',
        '{"every_ms":true}',
        '{"every_ms":999}',
        '{"every_ms":-1000}',
        '{"every_ms":1000,"start_ms":-1}',
        '{"every_ms":1000,"end_ms":1e400}',
        '{"every_ms":1000,"jitter_ms":[]}',
        '{"every_ms":1000,"max_runs":0}',
        json.dumps({"every_ms": 1000, "new": "x" * 5000}),
        b"\xff\xfe",
    ],
)
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 (any text at all; which sentence doesn't matter)
        read_rule(text)
