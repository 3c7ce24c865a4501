"""From a rule to instants: its next time, and what becomes of it when the clocks change.

An interval counts elapsed time and knows no clocks. A cron rule's times are read on its
zone's clocks. When these are set forward, some times of that day don't exist (the gap);
when they are set back, some come twice (the overlap):

| rule | a time in the gap | a time in the overlap |
|---|---|---|
| certain hours, once an hour (`30 2 * * *`) | fires once, at the first instant after it | fires the first time |
| certain hours, more often (`*/15 2 * * *`) | the same; several in one gap fire once | fires both times |
| every hour (`30 * * * *`, `*/5 * * * *`) | fires as if the clocks were set later | fires both times |

So a fixed time happens once on its day, and what recurs within the hours goes by elapsed
time: hourly stays hourly. What is given is always later than what was asked from.
"""

from __future__ import annotations

from hashlib import blake2b

from taskq.calendar import pattern, zone
from taskq.calendar.rule import LAST_MS, Rule


def next_after(rule: Rule, instant_ms: int) -> int | None:
    """The rule's first nominal time later than this instant; None if there is none.

    Knows `start` and `end`; how often the rule has fired, and so `max_runs`, only the caller knows.
    """
    after_ms = max(instant_ms, -1, -1 if rule.start_ms is None else rule.start_ms - 1)
    last_ms = LAST_MS if rule.end_ms is None else rule.end_ms
    if after_ms >= last_ms:
        return None
    if rule.every_ms:
        origin_ms = rule.start_ms or 0
        found_ms: int | None = origin_ms + ((after_ms - origin_ms) // rule.every_ms + 1) * rule.every_ms
    else:
        found_s = _next_cron(rule, after_ms // 1000, last_ms // 1000)
        found_ms = None if found_s is None else found_s * 1000
    return None if found_ms is None or found_ms > last_ms else found_ms


def next_times(rule: Rule, n: int, *, after_ms: int) -> tuple[int, ...]:
    """The next `n` nominal times later than an instant; fewer if the rule ends (by `end` or `max_runs`)."""
    found: list[int] = []
    wanted = n if rule.max_runs is None else min(n, rule.max_runs)
    at_ms: int | None = after_ms
    while len(found) < wanted and at_ms is not None and (at_ms := next_after(rule, at_ms)) is not None:
        found.append(at_ms)
    return tuple(found)


def fires_at(rule: Rule, name: str, nominal_ms: int) -> int:
    """When the schedule of this name fires for a nominal time: that time, or up to `jitter` later.

    The wait is drawn from name and time, so every process computes the same one. It ends before the next
    nominal time, so firings keep their order whatever the jitter.
    """
    if not rule.jitter_ms:
        return nominal_ms
    following_ms = next_after(rule, nominal_ms)
    most_ms = rule.jitter_ms if following_ms is None else min(rule.jitter_ms, following_ms - nominal_ms - 1)
    lot = blake2b(f"{nominal_ms} {name}".encode(errors="surrogatepass"), digest_size=8).digest()
    return nominal_ms + int.from_bytes(lot, "big") % (most_ms + 1)


def _next_cron(rule: Rule, after_s: int, last_s: int) -> int | None:
    """Walks from one change of the clocks to the next; between two of them wall clock and UTC differ by a constant."""
    times, where = pattern.read(rule.cron), zone.zone(rule.tz)
    at_s = after_s + 1
    change = next(iter(zone.changes(where, at_s - zone.LOOK_S, at_s)), None)  # of an earlier one nothing is left
    offset_s = zone.offset_s(where, at_s)
    while True:
        found_s = _from(times, at_s, offset_s, change)
        until_s = last_s if found_s is None else min(found_s, last_s)
        change = next(zone.changes(where, at_s, until_s), None)
        if change is None:
            return found_s
        at_s, offset_s = change.at_s, change.after_s


def _from(times: pattern.Pattern, at_s: int, offset_s: int, change: zone.Change | None) -> int | None:
    """The first time from `at_s` on, if the clocks never change again after `change`."""
    wall_s = at_s + offset_s
    if change is None or change.before_s == change.after_s:
        found_s = times.at_or_after(wall_s)
        return None if found_s is None else found_s - offset_s
    old_s, new_s = change.at_s + change.before_s, change.at_s + change.after_s  # what the clocks showed, and show
    if not times.often:
        wall_s = max(wall_s, old_s)  # in the overlap: what they have shown before is over
    found_s = times.at_or_after(wall_s)
    if found_s is None:
        return None
    found_s -= offset_s
    if old_s < new_s and (times.every_hour or at_s == change.at_s):
        in_gap_s = times.at_or_after(at_s + change.before_s)
        if in_gap_s is not None and in_gap_s < new_s:
            found_s = min(found_s, in_gap_s - change.before_s if times.every_hour else at_s)
    return found_s
