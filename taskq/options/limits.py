"""`Concurrency`, `Rate` and `Lock`: what holds a job up while others of the same name and value run, or just ran.

All hold within one queue, and are shared there by whoever names the same: a limit's
numbers go with the workers' word to the queue, a job carries names and values alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from taskq.asked import spelled
from taskq.errors import shown
from taskq.options.by import By, checked_by, heard_by, told_by
from taskq.units import LONGEST_MS, Duration, duration_ms, duration_text

MOST = 1_000_000_000
MOST_LIMITS = 8
_WORD = "queue"
_PERIODS = {"s": 1_000, "sec": 1_000, "min": 60_000, "h": 3_600_000, "hour": 3_600_000, "day": 86_400_000}
_RATE = re.compile(r"\s*([0-9]{1,9})\s*/\s*(\S.*?)\s*")


def checked_limit_name(name: object, of: str = "name") -> str:
    """The name of a limit or lock: 1 to 200 printable characters, and not "queue", which is the queue itself.

    Raises:
        ValueError: anything else.
    """
    if isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable() and name != _WORD:
        return name
    raise ValueError(f'{of}={shown(name)} is no such name: use 1 to 200 printable characters, but not "{_WORD}"')


def _count(value: object, what: str, most: int = MOST) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
        return value
    raise ValueError(f"{what}={shown(value)} is out of range: give an integer from 1 to {most:,}")


@dataclass(frozen=True, init=False)
class Concurrency:
    """At most `n` jobs run at once, of all that name this limit in one queue; for each value of `by` by itself.

    Args:
        n: how many, from 1.
        by: what is counted apart: a parameter's name, a tuple of names, or a callable over the call. Default: nothing.
        name: the limit's name; default the task's. Jobs of all tasks of a queue that name it share it.

    Raises:
        ValueError: what breaks its rule.
    """

    n: int
    by: By | None
    name: str | None

    @spelled
    def __init__(self, n: int, *, by: By | None = None, name: str | None = None) -> None:
        object.__setattr__(self, "n", _count(n, "n"))
        object.__setattr__(self, "by", None if by is None else checked_by(by))
        object.__setattr__(self, "name", None if name is None else checked_limit_name(name))

    @property
    def words(self) -> str:
        """Its numbers as the queue holds them."""
        return f"c={self.n}"

    def told(self) -> dict[str, Any]:
        """It as JSON holds it."""
        return _given(n=self.n, by=told_by(self.by), name=self.name)


@dataclass(frozen=True, init=False)
class Rate:
    """So many jobs start in a period, of all that name this limit in one queue; for each value of `by` by itself.

    Args:
        rate: "100/s", "100/min", "5000/h", "1/day", or any duration after the slash: "5/10s".
        by: as for `Concurrency`.
        name: as for `Concurrency`.
        burst: how many may start at once after a quiet time; default: what comes in a tenth of a second, at least 1
            and at least `cost`. As much must come back within 100 years.
        cost: how much of the rate one job takes, up to `burst`. Default 1.

    Raises:
        ValueError: what breaks its rule.
    """

    limit: int
    period_ms: int
    by: By | None
    name: str | None
    burst: int
    cost: int

    @spelled
    def __init__(
        self, rate: str, *, by: By | None = None, name: str | None = None, burst: int | None = None, cost: int = 1
    ) -> None:
        limit, period_ms = _rate(rate)
        cost = _count(cost, "cost")
        burst = max(1, limit * 100 // period_ms, cost) if burst is None else _count(burst, "burst")
        if cost > burst:
            raise ValueError(f"cost={cost} is more than burst={burst}: such a job could never start")
        if burst * period_ms > LONGEST_MS * limit:
            raise ValueError(f"rate={shown(rate)} takes more than 100 years to let through burst={burst}: give less")
        object.__setattr__(self, "limit", limit)
        object.__setattr__(self, "period_ms", period_ms)
        object.__setattr__(self, "by", None if by is None else checked_by(by))
        object.__setattr__(self, "name", None if name is None else checked_limit_name(name))
        object.__setattr__(self, "burst", burst)
        object.__setattr__(self, "cost", cost)

    @property
    def words(self) -> str:
        """Its numbers as the queue holds them."""
        return f"r={self.limit}/{self.period_ms}/{self.burst}"

    def told(self) -> dict[str, Any]:
        """It as JSON holds it."""
        rate = f"{self.limit}/{duration_text(self.period_ms)}"
        cost = self.cost if self.cost != 1 else None
        return _given(rate=rate, by=told_by(self.by), name=self.name, burst=self.burst, cost=cost)


def _rate(text: object) -> tuple[int, int]:
    found = _RATE.fullmatch(text) if isinstance(text, str) else None
    try:
        limit = int(found[1]) if found else 0
        period_ms = (_PERIODS.get(found[2]) or duration_ms(found[2], name="rate")) if found else 0
    except ValueError:
        limit = period_ms = 0
    if limit < 1 or period_ms < 1:
        raise ValueError(
            f'rate={shown(text)} is no rate: give such as "100/s", "100/min", "5000/h", "1/day" or "5/10s"'
        )
    return limit, period_ms


@dataclass(frozen=True, init=False)
class Lock:
    """While a job runs no other of the same name and value runs, in one queue; those that wait block nobody else.

    Args:
        name: what is locked, 1 to 200 printable characters.
        by: what is locked apart: as for `Concurrency`.
        wait: how long a job may wait for it, from when it is available; if the lock is still taken then, the job fails
            without an attempt. Default: as long as it takes.

    Raises:
        ValueError: what breaks its rule.
    """

    name: str
    by: By | None
    wait_ms: int | None

    @spelled
    def __init__(self, name: str, *, by: By | None = None, wait: Duration | None = None) -> None:
        object.__setattr__(self, "name", checked_limit_name(name))
        object.__setattr__(self, "by", None if by is None else checked_by(by))
        object.__setattr__(self, "wait_ms", None if wait is None else duration_ms(wait, name="wait"))

    def told(self) -> dict[str, Any]:
        """It as JSON holds it."""
        wait = None if self.wait_ms is None else duration_text(self.wait_ms)
        return _given(name=self.name, by=told_by(self.by), wait=wait)


Limit = Concurrency | Rate


def checked_limits(value: object) -> tuple[Limit, ...]:
    """The rule of `limits=`: one limit or several.

    Raises:
        ValueError: something else, or more than 8.
    """
    each = (value,) if isinstance(value, Concurrency | Rate) else value
    if isinstance(each, str | bytes) or not isinstance(each, Iterable):
        raise ValueError(  # noqa: TRY004 (refusals of options are ValueErrors throughout)
            f'limits={shown(value)} are none: give such as [Concurrency(2), Rate("100/min")]'
        )
    limits = tuple(each)
    for limit in limits:
        if not isinstance(limit, Concurrency | Rate):
            raise ValueError(f"limits holds {shown(limit)}: a limit is a Concurrency(…) or a Rate(…)")  # noqa: TRY004
    if len(limits) > MOST_LIMITS:
        raise ValueError(f"limits holds {len(limits)}: a job has at most {MOST_LIMITS}")
    return limits


def checked_lock(value: object) -> Lock:
    """The rule of `lock=`: a `Lock`, or the name of one.

    Raises:
        ValueError: something else.
    """
    if isinstance(value, Lock):
        return value
    if isinstance(value, str):
        return Lock(value)
    raise ValueError(f'lock={shown(value)} is none: give such as Lock("account", by="account_id"), or a name')


def heard_limit(told: Any) -> Limit:
    """The reverse of `told`."""
    words = {**told, "by": heard_by(told.get("by"))}
    return Rate(words.pop("rate"), **words) if "rate" in words else Concurrency(words.pop("n"), **words)


def heard_lock(told: Any) -> Lock:
    """The reverse of `told`."""
    words = {**told, "by": heard_by(told.get("by"))}
    return Lock(words.pop("name"), **words)


def _given(**words: Any) -> dict[str, Any]:
    return {name: value for name, value in words.items() if value is not None}
