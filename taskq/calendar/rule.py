"""A rule: when recurring work is due, and what becomes of times that were missed.

A plain value. Two rules are the same schedule if they are equal; `text` stores them.
What users write is read by `declare`; what a rule itself promises is checked here,
so that a rule read from Redis keeps it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from taskq.calendar import pattern, zone
from taskq.errors import did_you_mean, shown
from taskq.units import LONGEST_MS, duration_text

Missed: TypeAlias = Literal["skip", "latest", "all"]
"""What fires after an outage, in which a time was late by more than `due.ON_TIME_MS`: nothing that is late, the latest
time only, or all of them (bounded).
"""

Overlap: TypeAlias = Literal["allow", "skip", "queue-one"]
"""What fires while the last run's job hasn't ended: a job as ever, none, or one that waits for it."""

SHORTEST_MS: Final = 1000
"""The shortest interval. What is due more often wants a loop inside one job."""

LAST_MS: Final = 221_845_392_000_000
"""The last instant that can be due: the end of the year 8999."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When a schedule fires. Made by `cron` and `every`.

    Either `cron` (5 or 6 fields, or a descriptor) with its zone `tz`, or `every_ms`. `start_ms` and
    `end_ms`: the first and the last instant at which it may fire. `max_runs`: how often it fires at all.
    `jitter_ms`: how much later than its nominal time it fires at most.

    Raises:
        ValueError: a rule that can't be; the message says what a right one is.
    """

    cron: str = ""
    every_ms: int = 0
    tz: str = "UTC"
    start_ms: int | None = None
    end_ms: int | None = None
    max_runs: int | None = None
    jitter_ms: int = 0
    missed: Missed = "latest"
    overlap: Overlap = "allow"

    def __post_init__(self) -> None:
        if self.cron and self.every_ms:
            raise ValueError(f"{self.expression}: a rule has a cron expression or an interval, not both")
        if _text(self.cron, "cron"):
            pattern.read(self.cron)
            zone.zone(_text(self.tz, "tz"))
        else:
            _check_interval(self)
        for name, instant in (("start", self.start_ms), ("end", self.end_ms)):
            if instant is not None and not (_whole(instant) and 0 <= instant <= LAST_MS):
                raise ValueError(f"{name}: {shown(instant)} ms is no instant from 1970 to 8999")
        if self.start_ms is not None and self.end_ms is not None and self.end_ms < self.start_ms:
            raise ValueError(f"{self.expression}: end lies before start")
        if self.max_runs is not None and not (_whole(self.max_runs) and self.max_runs > 0):
            raise ValueError(f"max_runs={shown(self.max_runs)}: give a whole number from 1 on, or None for no end")
        if not _whole(self.jitter_ms) or not 0 <= self.jitter_ms <= LONGEST_MS:
            raise ValueError(f"jitter: {shown(self.jitter_ms)} ms is no duration")
        for name, value, known in (("missed", self.missed, Missed), ("overlap", self.overlap, Overlap)):
            if value not in get_args(known):
                raise ValueError(
                    f"{name}={shown(value)} is none{did_you_mean(str(value), get_args(known))}:"
                    f" it is one of {', '.join(get_args(known))}"
                )

    @property
    def expression(self) -> str:
        """What it says of times, as people write it: "0 9 * * 1-5", "@daily", "@every 1m30s"."""
        return self.cron or f"@every {duration_text(self.every_ms)}"


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name}={shown(value)} is no text")  # noqa: TRY004 (refusals are ValueErrors throughout)
    return value


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_interval(rule: Rule) -> None:
    if not _whole(rule.every_ms) or not 0 < rule.every_ms <= LONGEST_MS:
        raise ValueError(f"{shown(rule.every_ms)} ms is no interval")
    if rule.every_ms < SHORTEST_MS:
        raise ValueError(f"{rule.expression} is too often: an interval is at least {duration_text(SHORTEST_MS)}")
    if rule.tz != "UTC":
        raise ValueError(
            f"{rule.expression} has no time zone (tz={shown(rule.tz)}): an interval goes by elapsed time;"
            " for a time of the clock give a cron expression, such as '0 9 * * *'"
        )
    if _whole(rule.jitter_ms) and rule.jitter_ms >= rule.every_ms:
        raise ValueError(f"{rule.expression}: jitter={duration_text(rule.jitter_ms)} must be shorter than the interval")
