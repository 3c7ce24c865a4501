"""`Unique`, `Debounce` and `Throttle`: when a second call makes no job of its own. A key holds within one queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from taskq.asked import spelled
from taskq.errors import did_you_mean, shown
from taskq.options.by import By, checked_by, heard_by, told_by
from taskq.units import Duration, duration_ms, duration_text

_UNTIL = ("finished", "started")
_SCOPES = ("task", "queue")
_CONFLICTS = ("existing", "raise", "replace")


@dataclass(frozen=True, init=False)
class Unique:
    """One job at a time for each key: while it lives, another call makes none.

    Args:
        by: what the key is made of: a parameter's name, a tuple of names, or a callable over the call. Default: all
            arguments.
        until: how long the key is held: until its job has "finished" (the default), has "started", or has finished but
            at most for a duration.
        scope: among the jobs of the "task" (the default), or of all tasks of the "queue".
        on_conflict: what another call gets: the "existing" job, with `created=False` (the default); "raise": a
            DuplicateJob; "replace": the existing job, which has this call's arguments, options and time from now on,
            unless it has started.

    Raises:
        ValueError: what breaks its rule.
    """

    by: By | None
    until: Literal["finished", "started"] | int
    scope: Literal["task", "queue"]
    on_conflict: Literal["existing", "raise", "replace"]
    literal: str | None

    @spelled
    def __init__(
        self,
        *,
        by: By | None = None,
        until: Literal["finished", "started"] | Duration = "finished",
        scope: Literal["task", "queue"] = "task",
        on_conflict: Literal["existing", "raise", "replace"] = "existing",
    ) -> None:
        object.__setattr__(self, "by", None if by is None else checked_by(by))
        object.__setattr__(self, "until", _until(until))
        object.__setattr__(self, "scope", _one_of(scope, _SCOPES, "scope"))
        object.__setattr__(self, "on_conflict", _one_of(on_conflict, _CONFLICTS, "on_conflict"))
        object.__setattr__(self, "literal", None)

    @classmethod
    def of(cls, value: object) -> Unique:
        """The rule of `unique=`: one of these, or a text that is the key itself.

        Raises:
            ValueError: something else.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, str) or not value:
            raise ValueError(f'unique={shown(value)} is none: give such as Unique(by="user_id"), or the key as a text')
        made = cls()
        object.__setattr__(made, "literal", value)
        return made

    @property
    def how(self) -> str:
        """How long the key is held, as scripts read it."""
        return self.until if isinstance(self.until, str) else f"within/{self.until}"

    def told(self) -> Any:
        """It as JSON holds it."""
        if self.literal is not None:
            return self.literal
        until = self.until if isinstance(self.until, str) else duration_text(self.until)
        return {"by": told_by(self.by), "until": until, "scope": self.scope, "on_conflict": self.on_conflict}


@dataclass(frozen=True, init=False)
class Debounce:
    """The last call wins: a job starts once no further call has come for a while, and as that last one says.

    `Debounce("5s", by="to", max_wait="1m")`: of the calls with one `to`.

    Args:
        wait: how long it must have been quiet.
        max_wait: the longest that calls may put the job off, from the first. Default: for ever.
        by: what calls are told apart by: as for `Unique`. Default: nothing, all calls of the task are one.

    Raises:
        ValueError: what breaks its rule.
    """

    wait_ms: int
    max_wait_ms: int | None
    by: By | None

    @spelled
    def __init__(self, wait: Duration, *, max_wait: Duration | None = None, by: By | None = None) -> None:
        wait_ms = _above_zero(wait, "debounce")
        most = None if max_wait is None else duration_ms(max_wait, name="max_wait")
        if most is not None and most < wait_ms:
            raise ValueError(
                f"max_wait={shown(max_wait)} is shorter than the wait of each call, {duration_text(wait_ms)}"
            )
        object.__setattr__(self, "wait_ms", wait_ms)
        object.__setattr__(self, "max_wait_ms", most)
        object.__setattr__(self, "by", None if by is None else checked_by(by))

    @property
    def how(self) -> str:
        """As scripts read it."""
        return f"debounce/{self.wait_ms}/{'-' if self.max_wait_ms is None else self.max_wait_ms}"

    def told(self) -> Any:
        """It as JSON holds it."""
        most = None if self.max_wait_ms is None else duration_text(self.max_wait_ms)
        return {"wait": duration_text(self.wait_ms), "max_wait": most, "by": told_by(self.by)}


@dataclass(frozen=True, init=False)
class Throttle:
    """The first call wins: for a period no other makes a job, whatever became of the first one's.

    `Throttle("5s", by="to")`: of the calls with one `to`.

    Args:
        period: how long.
        by: what calls are told apart by: as for `Unique`. Default: nothing, all calls of the task are one.

    Raises:
        ValueError: what breaks its rule.
    """

    period_ms: int
    by: By | None

    @spelled
    def __init__(self, period: Duration, *, by: By | None = None) -> None:
        object.__setattr__(self, "period_ms", _above_zero(period, "throttle"))
        object.__setattr__(self, "by", None if by is None else checked_by(by))

    @property
    def how(self) -> str:
        """As scripts read it."""
        return f"throttle/{self.period_ms}"

    def told(self) -> Any:
        """It as JSON holds it."""
        return {"period": duration_text(self.period_ms), "by": told_by(self.by)}


Once: TypeAlias = Unique | Debounce | Throttle


def checked_debounce(value: Any) -> Debounce:
    """The rule of `debounce=`: one of these, or how long it must have been quiet. ValueError for anything else."""
    return value if isinstance(value, Debounce) else Debounce(value)


def checked_throttle(value: Any) -> Throttle:
    """The rule of `throttle=`: one of these, or the period. ValueError for anything else."""
    return value if isinstance(value, Throttle) else Throttle(value)


def heard_once(name: str, told: Any) -> Once:
    """The reverse of `told`, of the option of this name."""
    if isinstance(told, str):
        return Unique.of(told)
    words = {**told, "by": heard_by(told.get("by"))}
    if name == "unique":
        return Unique(**words)
    return Debounce(words.pop("wait"), **words) if name == "debounce" else Throttle(words.pop("period"), **words)


def _until(value: Any) -> str | int:
    if value in _UNTIL:
        return str(value)
    if isinstance(value, str) and not any(map(str.isdigit, value)):
        _one_of(value, _UNTIL, "until")
    return _above_zero(value, "until")


def _above_zero(value: Duration, name: str) -> int:
    ms = duration_ms(value, name=name)
    if ms == 0:
        raise ValueError(f"{name}=0 holds nothing: give a duration above zero")
    return ms


def _one_of(value: object, words: tuple[str, ...], name: str) -> str:
    if isinstance(value, str) and value in words:
        return value
    told = ", ".join(f'"{word}"' for word in words)
    raise ValueError(f"{name}={shown(value)} is none: give one of {told}{did_you_mean(shown(value), words)}")
