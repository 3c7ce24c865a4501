"""Reading the fields of a record: each checked for what it should hold, and named if it holds something else.

The server may hand us anything under these names: written by an older or newer
version, by hand, or torn by a restore. BadRecord is the only error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from taskq.errors import BadRecord
from taskq.state import State
from taskq.units import rfc3339

T = TypeVar("T")

_NUMBER = re.compile(rb"-?[0-9]{1,15}")
YEAR_10000_MS = 253_402_300_800_000
_ERROR = b"error:"


class AttemptError(dict[str, Any]):
    """Why one attempt failed: `attempt type message traceback at worker`, as JSON has it. Each is an attribute too.

    Attributes:
        attempt: which, from 1.
        type: the error's class, by its bare name.
        message: what it said.
        traceback: None where there is none.
        at_ms: when, by the server's clock; None if not known.
        worker: who ran the attempt.
    """

    __slots__ = ("at_ms", "attempt", "message", "traceback", "type", "worker")

    def __init__(
        self, *, attempt: int, type: str, message: str, traceback: str | None, at_ms: int | None, worker: str | None
    ) -> None:
        at = time_json(at_ms)
        super().__init__(attempt=attempt, type=type, message=message, traceback=traceback, at=at, worker=worker)
        self.attempt = attempt
        self.type = type
        self.message = message
        self.traceback = traceback
        self.at_ms = at_ms
        self.worker = worker


def read(id: str, fields: Mapping[bytes, bytes]) -> dict[str, Any]:
    """The attributes of a JobRecord that a hash has; BadRecord where a field is damaged."""
    values: dict[str, Any] = {}
    errors: list[AttemptError] = []
    for name, raw in fields.items():
        known = _FIELDS.get(name)
        if known is not None and raw:
            values[known[0]] = _checked(id, name, raw, known[1])
        elif name.startswith(_ERROR):
            errors.append(_checked(id, name, raw, partial(_attempt_error, name)))
    if errors:
        values["errors"] = tuple(sorted(errors, key=lambda error: error.attempt))
    return values


def _checked(id: str, name: bytes, raw: bytes, parse: Callable[[bytes], T]) -> T:
    try:
        return parse(raw)
    except (ValueError, OverflowError, RecursionError) as error:
        what = str(error) if type(error) is _Unfit else "can't be read"
        raise BadRecord(f"job {id}: the field {name[:64].decode('utf-8', 'replace')} {what}: {raw[:40]!r}") from error


class _Unfit(ValueError):
    """What is wrong with a field, to follow its name."""


def _text(raw: bytes) -> str:
    return raw.decode("utf-8")


def _number(raw: bytes) -> int:
    if not _NUMBER.fullmatch(raw):
        raise _Unfit("is no number")
    return int(raw)


def _count(raw: bytes) -> int:
    number = _number(raw)
    if number < 0:
        raise _Unfit("is negative")
    return number


def _instant(raw: bytes) -> int:
    number = _count(raw)
    if number >= YEAR_10000_MS:
        raise _Unfit("is no time before the year 10000")
    return number


def _offer(raw: bytes) -> int | None:
    """The epoch of an offer; None once it was started: then the time of that stands there, behind a minus."""
    return None if raw[:1] == b"-" else _instant(raw)


def _state(raw: bytes) -> State:
    try:
        return State(_text(raw))
    except ValueError:
        raise _Unfit("is no state") from None


def _tags(raw: bytes) -> tuple[str, ...]:
    tags = json.loads(_text(raw))
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise _Unfit("is no JSON list of texts")
    return tuple(tags)


def _meta(raw: bytes) -> dict[str, str]:
    meta = json.loads(_text(raw))
    if not isinstance(meta, dict) or not all(isinstance(value, str) for value in meta.values()):
        raise _Unfit("is no JSON object of texts")
    return meta


def _attempt_error(name: bytes, raw: bytes) -> AttemptError:
    told = json.loads(_text(raw))
    if not isinstance(told, dict):
        raise _Unfit("is no JSON object")
    texts = {key: told.get(key) for key in ("type", "message", "traceback", "worker")}
    if not all(value is None or isinstance(value, str) for value in texts.values()):
        raise _Unfit("holds something else than text")
    at = told.get("at")
    return AttemptError(
        attempt=_count(name.removeprefix(_ERROR)),
        type=texts["type"] or "",
        message=texts["message"] or "",
        traceback=texts["traceback"],
        # Scripts write their own errors, with numbers as Lua prints them.
        at_ms=None if at is None else _instant(b"%d" % at if isinstance(at, int | float) else b"?"),
        worker=texts["worker"],
    )


_FIELDS: dict[bytes, tuple[str, Callable[[bytes], Any]]] = {
    b"task": ("task", _text),
    b"state": ("state", _state),
    b"priority": ("priority", _number),
    b"class": ("klass", _text),
    b"needs": ("needs_text", _text),
    b"on_target_lost": ("on_target_lost", _text),
    b"attempt": ("attempt", _count),
    b"max_attempts": ("max_attempts", _number),
    b"epoch": ("epoch", _instant),
    b"worker": ("worker", _text),
    b"created_at": ("created_at_ms", _instant),
    b"scheduled_at": ("scheduled_at_ms", _instant),
    b"started_at": ("started_at_ms", _instant),
    b"finished_at": ("finished_at_ms", _instant),
    b"expires_at": ("expires_at_ms", _instant),
    b"scheduled_for": ("scheduled_for_ms", _instant),
    b"schedule": ("schedule", _text),
    b"unknown_since": ("unknown_since_ms", _instant),
    b"unknown_reason": ("unknown_reason", _text),
    b"timeout": ("timeout_ms", _count),
    b"hard_timeout": ("hard_timeout_ms", _count),
    b"keep": ("keep_ms", _count),
    b"keep_result": ("keep_result_ms", _count),
    b"backoff": ("backoff", _text),
    b"tags": ("tags", _tags),
    b"meta": ("meta", _meta),
    b"on_lease_lost": ("on_lease_lost", _text),
    b"lane": ("lane", _text),
    b"once": ("once", _text),
    b"lock_wait": ("lock_wait_ms", _count),
    b"cancel": ("cancel", _text),
    b"poller": ("poller", _text),
    b"offered": ("offered_epoch", _offer),
    b"lease": ("lease_ms", _count),
    b"dropped": ("dropped", bool),
    b"omitted": ("omitted", bool),
    b"reason": ("reason", _text),
}


NAMES: tuple[bytes, ...] = tuple(_FIELDS)
"""Every field that is read here; all are small."""


def time_json(ms: int | None) -> str | None:
    """A time as JSON has it."""
    return None if ms is None else rfc3339(ms)


def seconds_json(ms: int | None) -> int | float | None:
    """A duration as JSON has it."""
    return None if ms is None else ms // 1000 if ms % 1000 == 0 else ms / 1000
