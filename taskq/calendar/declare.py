"""What users write of a schedule, read into a `Rule`.

`cron("0 9 * * 1-5", tz="Europe/Berlin")`, `cron("@every 90s")`, `every("30s")`.
Whatever is wrong is a ValueError here, at declaration, and never a schedule that is silent later.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict, Unpack

from taskq.calendar.rule import Missed, Overlap, Rule
from taskq.calendar.times import next_after
from taskq.errors import did_you_mean, shown
from taskq.units import Duration, duration_ms, instant_ms

_EVERY = "@every"


class When(TypedDict, total=False):
    """What may be said of a rule besides its times, as type checkers see it.

    Attributes:
        start: nothing fires before it; an aware datetime or RFC 3339 text.
        end: nothing fires after it; as `start`.
        max_runs: after so many firings it is over. Default: never.
        jitter: each firing waits up to so long, but never past the next time; the same wait on every machine.
            Default: not at all.
        missed: after an outage "skip" what is late, fire the "latest" missed time (the default), or "all", bounded.
            Late by less than 15 s isn't missed: it fires.
        overlap: while the last run's job hasn't ended "allow" another (the default), "skip" it, or "queue-one".
    """

    start: datetime | str | None
    end: datetime | str | None
    max_runs: int | None
    jitter: Duration
    missed: Missed
    overlap: Overlap


WHEN = tuple(When.__annotations__)


def cron(expression: str, *, tz: str = "UTC", **when: Unpack[When]) -> Rule:
    """A rule of wall-clock times.

    Args:
        expression: 5 fields (minute, hour, day of the month, month, day of the week), 6 with the second first,
            a descriptor (`@yearly @annually @monthly @weekly @daily @midnight @hourly`), or `@every 90s`.
        tz: the IANA name of the time zone whose clocks are meant. What happens when they change says `times`.
        when: see `When`.

    Raises:
        TypeError: an argument nobody knows.
        ValueError: anything wrong with them, dates that never come (30 February), no time between start and end.
    """
    written: object = expression
    words = written.split() if isinstance(written, str) else []
    if not words:
        raise ValueError(f"{shown(expression)} is no cron expression: give text, such as '0 9 * * 1-5' or '@daily'")
    every_ms = 0
    if words[0].lower() == _EVERY:
        every_ms = _interval_ms(" ".join(words[1:]))
    return _rule("" if every_ms else _one_spelling(words), every_ms, tz, when)


def every(interval: Duration, **when: Unpack[When]) -> Rule:
    """A rule of elapsed time: at `start` and each `interval` after it, whatever clocks do.

    Without a start it counts from 1970-01-01T00:00Z: `every("15m")` fires at the quarters of an hour on
    every machine, and declaring it again, in a deploy, neither shifts it nor fires at once.

    Args:
        interval: at least 1 s.
        when: see `When`; `start` is the first time, `jitter` shorter than the interval.

    Raises:
        TypeError: an argument nobody knows.
        ValueError: anything wrong with them.
    """
    return _rule("", _interval_ms(interval), "UTC", when)


def _rule(cron: str, every_ms: int, tz: str, when: When) -> Rule:
    for name in when:
        if name not in WHEN:
            raise TypeError(f"a schedule has no {shown(name)}{did_you_mean(name, WHEN)}: it has {', '.join(WHEN)}")
    rule = Rule(
        cron,
        every_ms,
        tz,
        start_ms=_instant(when.get("start"), "start"),
        end_ms=_instant(when.get("end"), "end"),
        max_runs=when.get("max_runs"),
        jitter_ms=duration_ms(when.get("jitter", 0), name="jitter"),
        missed=when.get("missed", "latest"),
        overlap=when.get("overlap", "allow"),
    )
    if next_after(rule, -1) is None:
        raise ValueError(f"{rule.expression} never fires: none of its times lies between start and end")
    return rule


def _one_spelling(words: list[str]) -> str:
    """Names in capitals and descriptors in small letters, so that another spelling is no other rule."""
    text = " ".join(words)
    return text.lower() if text.startswith("@") else text.upper()


def _interval_ms(interval: Duration) -> int:
    every_ms = duration_ms(interval, name=_EVERY)
    if not every_ms:
        raise ValueError(f"{_EVERY} {shown(interval)} is too often: an interval is at least 1s")
    return every_ms


def _instant(value: datetime | str | None, name: str) -> int | None:
    return None if value is None else instant_ms(value, name=name)
