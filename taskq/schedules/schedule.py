"""`Schedule`: a schedule as it stood when it was read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from taskq import codec
from taskq.calendar import Rule, next_after, read_rule
from taskq.commands import StoredSchedule
from taskq.errors import InvalidPayload
from taskq.schedules.run import Run, in_ms, instant, run_of
from taskq.schedules.template import unpack
from taskq.units import duration_text, rfc3339

UNSEEN_MS = 150_000
"""After so long without a worker that declares it, a schedule of the code fires no more; as in lua/lib/schedule.lua."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Recurring work. Instants are in UTC.

    Attributes:
        name: which.
        expression: what its rule says of times: "0 9 * * 1-5", "@every 1m30s"; "?" if this version can't read it.
        rule: all of its rule; None if this version can't read it.
        task, queue: what its jobs run, and where.
        origin: `code` or `api`: declared by workers' code, or put by hand.
        state: `active`, `paused`, `over` (no time is left), or `unseen`: no worker's code declares it any more, so it
            doesn't fire, and goes after a day.
        next: its next nominal time; None if it won't fire.
        last: the last one that fired; None if none did.
        fired: how many of its rule's times have fired.
        created_at, declared_at: when there was first one of its name, and when this one was first said.
        runs: its last firings, the newest first; empty in a list.
        template: the packed job; empty in a list.
    """

    name: str
    expression: str
    rule: Rule | None
    task: str
    queue: str
    origin: Literal["code", "api"]
    state: Literal["active", "paused", "over", "unseen"]
    next: datetime | None
    last: datetime | None
    fired: int
    created_at: datetime | None
    declared_at: datetime | None
    runs: tuple[Run, ...] = ()
    template: bytes = b""

    @property
    def paused(self) -> bool:
        """Whether it was told to fire no more for now."""
        return self.state == "paused"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        rule = self.rule
        args, kwargs = _arguments(self.template)
        return {
            "name": self.name,
            "expression": self.expression,
            "tz": rule.tz if rule and rule.cron else None,
            "task": self.task,
            "queue": self.queue,
            "args": args,
            "kwargs": kwargs,
            "origin": self.origin,
            "state": self.state,
            "next": _json(self.next),
            "last": _json(self.last),
            "fired": self.fired,
            "missed": rule.missed if rule else None,
            "overlap": rule.overlap if rule else None,
            "jitter": rule.jitter_ms / 1000 if rule else None,
            "start": rfc3339(rule.start_ms) if rule and rule.start_ms is not None else None,
            "end": rfc3339(rule.end_ms) if rule and rule.end_ms is not None else None,
            "max_runs": rule.max_runs if rule else None,
            "created_at": _json(self.created_at),
            "declared_at": _json(self.declared_at),
            "runs": [run.to_dict() for run in self.runs],
        }


def schedule_of(stored: StoredSchedule, now_ms: int) -> Schedule:
    """A schedule from what stands in Redis. What is damaged counts as not there."""
    fields = stored.fields
    try:
        rule = read_rule(fields.get("rule", b""))
    except ValueError:
        rule = None
    origin: Literal["code", "api"] = "api" if fields.get("origin") == b"api" else "code"
    state: Literal["active", "paused", "over", "unseen"] = "active"
    if fields.get("over"):
        state = "over"
    elif fields.get("paused"):
        state = "paused"
    elif origin == "code" and now_ms - (_number(fields.get("seen")) or 0) > UNSEEN_MS:
        state = "unseen"
    next_ms = _number(fields.get("next"))
    if next_ms is None and rule is not None:  # nobody has led since it was declared
        next_ms = next_after(rule, max(_number(fields.get("after")) or 0, now_ms))
    return Schedule(
        stored.name,
        rule.expression if rule else "?",
        rule,
        fields.get("task", b"").decode(errors="replace"),
        fields.get("queue", b"").decode(errors="replace"),
        origin,
        state,
        _instant(next_ms) if state == "active" else None,
        _instant(_number(fields.get("last"))),
        _number(fields.get("runs")) or 0,
        _instant(_number(fields.get("created_at"))),
        _instant(_number(fields.get("declared_at"))),
        tuple(run for each in stored.runs if (run := run_of(stored.name, each)) is not None),
        fields.get("template", b""),
    )


def in_words(schedule: Schedule) -> str:
    """Its rule as people read it: the expression and what differs from the defaults."""
    rule = schedule.rule
    if rule is None:
        return schedule.expression
    said = [schedule.expression]
    if rule.cron and rule.tz != "UTC":
        said.append(rule.tz)
    if rule.jitter_ms:
        said.append(f"jitter {duration_text(rule.jitter_ms)}")
    return ", ".join(said)


def _arguments(template: bytes) -> tuple[Any, Any]:
    try:
        payload = unpack(template).fields.get("payload", b"")
        return codec.call_to_json(payload) if isinstance(payload, bytes) else (None, None)
    except (ValueError, InvalidPayload):
        return None, None


def _number(raw: bytes | None) -> int | None:
    return int(raw) if raw and re.fullmatch(rb"[0-9]{1,15}", raw) else None


def _instant(ms: int | None) -> datetime | None:
    try:
        return None if ms is None else instant(ms)
    except OverflowError:
        return None


def _json(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(in_ms(moment))
