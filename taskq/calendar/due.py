"""Which of a schedule's times fire now, after a moment's delay or a week's outage.

What is late by less than `ON_TIME_MS` isn't missed: leaders change, servers restart, and
no time is lost or heaped up by it. Only when some time has waited longer does the rule's
`missed` speak. One call settles everything up to now; what it leaves out is given up.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from taskq.calendar.rule import Rule
from taskq.calendar.times import fires_at, next_after

ON_TIME_MS: Final = 15_000
"""How late a time may fire and still be on time: two leaders' terms and a little more."""

LIMIT: Final = 100
"""How many missed times `missed="all"` makes up for at most: the newest ones."""


class Due(NamedTuple):
    """The nominal times to fire now, oldest first, and the next one, which isn't due yet (None: it is over)."""

    times: tuple[int, ...]
    next_ms: int | None


def due(rule: Rule, after_ms: int, now_ms: int, limit: int = LIMIT, *, name: str = "", runs: int = 0) -> Due:
    """What fires now, if everything up to `after_ms` is settled.

    Args:
        rule: the rule.
        after_ms: the last nominal time that was settled, fired or not; for a schedule that is new or whose
            rule has changed, the time of that, so that it begins without a burst.
        now_ms: the server's time. If it lies before `after_ms`, because a clock was set back, nothing is due.
        limit: how many times are given at most; more are only due after an outage, and the newest are given.
        name: the schedule's name, which its jitter is drawn from.
        runs: how often it has fired, for `max_runs`.

    Within `ON_TIME_MS` all due times fire. If one has waited longer: "skip" fires the newest if that is on time,
    "latest" the newest, "all" the newest `limit`.
    """
    left = limit if rule.max_runs is None else min(limit, rule.max_runs - runs)
    if left <= 0:
        over = rule.max_runs is not None and runs >= rule.max_runs
        return Due((), None if over else next_after(rule, max(after_ms, now_ms)))
    last_ms, next_ms = _newest(rule, after_ms, now_ms, name)
    if last_ms is None:
        return Due((), next_ms)
    on_time_ms = now_ms - ON_TIME_MS
    first_ms = next_after(rule, after_ms)
    outage = first_ms is not None and fires_at(rule, name, first_ms) < on_time_ms
    if not outage or rule.missed == "all":
        times = _between(rule, after_ms, last_ms, left)
    elif rule.missed == "skip" and fires_at(rule, name, last_ms) < on_time_ms:
        times = ()
    else:
        times = (last_ms,)
    over = rule.max_runs is not None and runs + len(times) >= rule.max_runs
    return Due(times, None if over else next_ms)


def _newest(rule: Rule, after_ms: int, now_ms: int, name: str) -> tuple[int | None, int | None]:
    """The newest time that fires by now, and the one after it."""
    last_ms = _last(rule, after_ms, now_ms)
    if last_ms is None:
        return None, next_after(rule, after_ms)
    if fires_at(rule, name, last_ms) > now_ms:
        return _last(rule, after_ms, last_ms - 1), last_ms
    return last_ms, next_after(rule, last_ms)


def _between(rule: Rule, after_ms: int, last_ms: int, limit: int) -> tuple[int, ...]:
    """The newest `limit` times later than `after_ms`, up to `last_ms`, which is one."""
    found: list[int] = []
    at_ms = next_after(rule, after_ms)
    while at_ms is not None and at_ms <= last_ms and len(found) <= limit:
        found.append(at_ms)
        at_ms = next_after(rule, at_ms)
    if len(found) <= limit:
        return tuple(found)
    newest = [last_ms]  # too many to walk through them all: backwards, then
    while len(newest) < limit and (before_ms := _last(rule, after_ms, newest[-1] - 1)) is not None:
        newest.append(before_ms)
    return tuple(reversed(newest))


def _last(rule: Rule, after_ms: int, upto_ms: int) -> int | None:
    """The last time later than `after_ms` and not later than `upto_ms`, found by halving."""

    def later(than_ms: int) -> int | None:
        found_ms = next_after(rule, than_ms)
        return None if found_ms is None or found_ms > upto_ms else found_ms

    # Back from the end in growing steps: the last time is near it far more often than not.
    step_ms, low_ms, high_ms = 1000, upto_ms, upto_ms
    found_ms = None
    while found_ms is None:
        if low_ms <= after_ms:
            return None
        high_ms, low_ms = low_ms, max(after_ms, low_ms - step_ms)
        found_ms, step_ms = later(low_ms), step_ms * 2
    while (following_ms := later(found_ms)) is not None:  # a later one: it lies between found and high
        middle_ms = max(following_ms, (found_ms + high_ms) // 2)
        beyond_ms = later(middle_ms)
        if beyond_ms is None:
            found_ms, high_ms = following_ms, middle_ms
        else:
            found_ms = beyond_ms
    return found_ms
