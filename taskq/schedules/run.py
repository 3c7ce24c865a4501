"""`Run`: one firing of a schedule, as observers get it and `taskq schedule show` lists it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from taskq.commands import StoredRun
from taskq.units import rfc3339

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Run:
    """One firing of a schedule.

    Attributes:
        schedule: its name.
        nominal: the time of the rule, in UTC; of a run asked for by hand when that was.
        fired_at: when it was fired, by the server's clock.
        job: the id of its job; None if there is none.
        error: why there is no job: it was skipped, or refused; None otherwise.
        term: of the leader that fired it; 0 if it was asked for by hand.
        manual: whether it was asked for by hand.
        state: `sent` (on its way to its queue), `queued` (it waits for the last run's job), `fired`, `skipped` or
            `refused`.
    """

    schedule: str
    nominal: datetime
    fired_at: datetime
    job: str | None
    error: str | None
    term: int
    manual: bool = False
    state: Literal["sent", "queued", "fired", "skipped", "refused"] = "fired"

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Run:
        """The reverse of `to_dict`. KeyError, ValueError or TypeError for anything else."""
        known = {name: told[name] for name in _NAMES}
        return cls(
            nominal=datetime.fromisoformat(told["nominal"]), fired_at=datetime.fromisoformat(told["fired_at"]), **known
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "schedule": self.schedule,
            "nominal": rfc3339(in_ms(self.nominal)),
            "fired_at": rfc3339(in_ms(self.fired_at)),
            "job": self.job,
            "error": self.error,
            "term": self.term,
            "manual": self.manual,
            "state": self.state,
        }


_NAMES = ("schedule", "job", "error", "term", "manual", "state")


def run_of(schedule: str, stored: StoredRun) -> Run | None:
    """A run as it was written; None for one that can't be."""
    state, job, error = _outcome(stored.word, stored.rest)
    try:
        return Run(
            schedule,
            instant(stored.nominal_ms),
            instant(stored.fired_at_ms),
            job,
            error,
            stored.term,
            stored.kind == "manual",
            state,
        )
    except OverflowError:
        return None


def _outcome(
    word: str, rest: str
) -> tuple[Literal["sent", "queued", "fired", "skipped", "refused"], str | None, str | None]:
    match word:
        case "fired" | "existing":
            return "fired", rest or None, None
        case "skipped" | "refused":
            return ("skipped" if word == "skipped" else "refused"), None, rest
        case "queued":
            return "queued", None, None
        case _:
            return "sent", None, None


def instant(ms: int) -> datetime:
    """An instant of the server's clock. OverflowError outside the years 1 to 9999."""
    return _EPOCH + timedelta(milliseconds=ms)


def in_ms(moment: datetime) -> int:
    """The reverse of `instant`."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)
