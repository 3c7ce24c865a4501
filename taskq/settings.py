"""What an application is configured with, and where each value came from.

`resolve` is the one door for what users write: it reads each value by the
precedence flag > argument > environment > default, checks it, and remembers the
source. Passwords appear in no message and no repr.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

from taskq.address import Address, mask_url, parse_url
from taskq.asked import spelled
from taskq.errors import did_you_mean, nearest, shown
from taskq.units import Duration, Size, duration_ms, duration_text, size_bytes

__all__ = ["DEFAULT_URL", "Address", "Retention", "Settings", "checked_name", "mask_url", "parse_url", "resolve"]

DEFAULT_URL = "redis://localhost:6379/0"

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_MODULES = re.compile(r"[A-Za-z_*][\w*]*(\.[A-Za-z_*][\w*]*)*")


def checked_name(value: object, *, name: str) -> str:
    """A namespace's or queue's name as it may stand in a key.

    Raises:
        ValueError: other than 1 to 64 of `a-z 0-9 . _ -`, or one that starts with a sign.
    """
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    rule = "use 1 to 64 of a-z, 0-9, '.', '_' and '-', a letter or digit first"
    raise ValueError(f"{name}={shown(value)} is no name: {rule}")


@dataclass(frozen=True, slots=True, init=False)
class Retention:
    """How long ended jobs are kept, and how many of them in each queue. What is beyond goes within minutes.

    Args:
        completed: duration from the job's end, default 24 h.
        failed: as `completed`, default 14 days.
        cancelled: as `completed`, default 14 days.
        max_completed: how many completed jobs a queue keeps, default 10,000.
        max_failed: as `max_completed`, default 100,000.

    Raises:
        ValueError: a bad duration, or a number that isn't an integer from 0 on.
    """

    completed_ms: int
    failed_ms: int
    cancelled_ms: int
    max_completed: int
    max_failed: int

    @spelled
    def __init__(
        self,
        completed: Duration = "24h",
        failed: Duration = "14d",
        cancelled: Duration = "14d",
        max_completed: int = 10_000,
        max_failed: int = 100_000,
    ) -> None:
        put = object.__setattr__  # the way into a frozen object whose arguments aren't its fields
        put(self, "completed_ms", duration_ms(completed, name="Retention.completed"))
        put(self, "failed_ms", duration_ms(failed, name="Retention.failed"))
        put(self, "cancelled_ms", duration_ms(cancelled, name="Retention.cancelled"))
        put(self, "max_completed", _count(max_completed, "Retention.max_completed"))
        put(self, "max_failed", _count(max_failed, "Retention.max_failed"))

    def to_dict(self) -> dict[str, int]:
        """The fields as plain numbers: what the hello message and `meta` carry."""
        return asdict(self)

    @classmethod
    def from_dict(cls, said: Mapping[str, int]) -> Retention:
        """The reverse of `to_dict`; a field that isn't said has its default."""
        retention = cls()
        for each in fields(cls):
            if each.name in said:
                object.__setattr__(retention, each.name, _count(said[each.name], each.name))
        return retention


@dataclass(frozen=True, slots=True)
class Settings:
    """One application's settings, checked. Made by `resolve`; durations in ms, sizes in bytes."""

    url: str = field(default=DEFAULT_URL, repr=False)  # may hold a password
    namespace: str = "taskq"
    include: tuple[str, ...] = ()
    lease_ms: int = 8000
    deadline_ms: int = 5000
    max_payload: int = 1_048_576
    unknown_grace_ms: int = 3_600_000
    wait_replicas: int = 0
    retention: Retention = field(default_factory=Retention)
    app: str | None = None
    # field name → "flag --url", "argument", "environment TASKQ_URL" or "default"
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def with_flags(self, flags: Mapping[str, object]) -> Settings:
        """These settings with command-line flags on top (`{"url": …}`; None is "not given")."""
        given = {key: value for key, value in flags.items() if value is not None}
        _refuse_unknown(given)
        values = {_READ[key].field: _READ[key].read(value, f"--{_dashed(key)}") for key, value in given.items()}
        sources = {_READ[key].field: f"flag --{_dashed(key)}" for key in given}
        return replace(self, **values, sources={**self.sources, **sources})

    def explain(self) -> list[Explained]:
        """Each value as text and where it comes from, in the order of the constructor."""
        return [
            Explained(key, _shown(getattr(self, each.field), each.field), self.sources.get(each.field, "default"))
            for key, each in _READ.items()
        ]

    def to_json(self) -> dict[str, Any]:
        """Each value as JSON has it, by the constructor's names: durations in seconds, sizes in bytes, no password."""
        return {key: _plain(getattr(self, each.field), each.field) for key, each in _READ.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the worker's hello to its node. Holds the password: never log it."""
        said = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "sources"}
        return said | {"include": list(self.include), "retention": self.retention.to_dict()}

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Settings:
        """The reverse of `to_dict`; what isn't known is ignored, what isn't said has its default."""
        known = {each.name for each in fields(cls)} - {"sources"}
        values = {name: value for name, value in said.items() if name in known}
        if "include" in values:
            values["include"] = tuple(values["include"])
        if "retention" in values:
            values["retention"] = Retention.from_dict(values["retention"])
        return cls(**values)


class Explained(NamedTuple):
    """One line of `taskq config`."""

    name: str
    value: str
    source: str


def resolve(
    *,
    url: str | None = None,
    namespace: str | None = None,
    include: Iterable[str] | None = None,
    lease: Duration | None = None,
    deadline: Duration | None = None,
    max_payload: Size | None = None,
    unknown_grace: Duration | None = None,
    wait_replicas: int | None = None,
    retention: Retention | None = None,
    app: str | None = None,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The settings by the precedence flag > argument > environment > default.

    Args:
        url: which Redis, default `redis://localhost:6379/0` (`TASKQ_URL`); see `parse_url`.
        namespace: the first part of every key, default "taskq" (`TASKQ_NAMESPACE`).
        include: modules that workers import, "shop.*.tasks" among them.
        lease: how long a worker that falls silent keeps its jobs, 4 s to 1 h, default 8 s (`TASKQ_LEASE`).
        deadline: the longest a client's call takes, default 5 s (`TASKQ_DEADLINE`).
        max_payload: a job's largest payload, default 1 MiB, at most 512 MiB (`TASKQ_MAX_PAYLOAD`).
        unknown_grace: how long a job waits for a worker that knows its task, default 1 h (`TASKQ_UNKNOWN_GRACE`).
        wait_replicas: replicas that must have a write before enqueue returns, default 0 (`TASKQ_WAIT_REPLICAS`).
        retention: how long and how many ended jobs are kept.
        app: `module[:attribute]` of the application (`TASKQ_APP`).
        flags: the command line's values under these names; they beat all others.
        environ: the environment; `os.environ` unless given.

    Raises:
        ValueError: a value breaks its rule; the message names the argument, flag or variable.
    """
    arguments: dict[str, object] = {
        "url": url,
        "namespace": namespace,
        "include": include,
        "lease": lease,
        "deadline": deadline,
        "max_payload": max_payload,
        "unknown_grace": unknown_grace,
        "wait_replicas": wait_replicas,
        "retention": retention,
        "app": app,
    }
    surroundings = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key, each in _READ.items():
        variable = f"TASKQ_{key.upper()}"
        if flags and flags.get(key) is not None:
            continue  # a flag beats even a value that is wrong
        if arguments[key] is not None:
            values[each.field] = each.read(arguments[key], key)
            sources[each.field] = "argument"
        # An empty variable is an unset one: compose files and shells can't easily unset.
        elif each.scalar and surroundings.get(variable):
            values[each.field] = each.read(surroundings[variable], variable)
            sources[each.field] = f"environment {variable}"
        else:
            sources[each.field] = "default"
    return Settings(**values, sources=sources).with_flags(flags or {})


def unread_variables(environ: Mapping[str, str]) -> list[str]:
    """What to say of each `TASKQ_…` variable that nothing reads: most likely a slip."""
    said = []
    for name in sorted(environ):
        key = name.removeprefix("TASKQ_").lower()
        each = _READ.get(key)
        if not name.startswith("TASKQ_") or name in _READ_ELSEWHERE or (each is not None and each.scalar):
            continue
        hint = f": give it in code, as TaskQ({key}=…)" if each is not None else ""
        if near := nearest(key, [known for known, each in _READ.items() if each.scalar]) if each is None else None:
            hint = f" (did you mean TASKQ_{near.upper()}?)"
        said.append(f"{name} is set, and no setting is read from it{hint}")
    return said


# --- how each value is read ---------------------------------------------------


class _Reader(NamedTuple):
    field: str
    read: Callable[[Any, str], Any]
    scalar: bool = True  # has an environment variable


def _url(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is no URL: give text such as {DEFAULT_URL!r}")  # noqa: TRY004
    try:
        parse_url(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return value.strip()


def _include(value: Iterable[object], name: str) -> tuple[str, ...]:
    # A lone text is taken as one module: read letter by letter it would only puzzle.
    if not isinstance(value, Iterable):
        raise ValueError(f"{name}={shown(value)} is no list: give such as ['shop.mail']")  # noqa: TRY004
    modules: list[str] = []
    for module in (value,) if isinstance(value, str) else value:
        if not isinstance(module, str) or not _MODULES.fullmatch(module):
            rule = "which is no module: give such as 'shop.mail' or 'shop.*.tasks'"
            raise ValueError(f"{name} holds {shown(module)}, {rule}")
        modules.append(module)
    return tuple(modules)


def _duration(least_ms: int, most_ms: int | None = None) -> Callable[[Duration, str], int]:
    def read(value: Duration, name: str) -> int:
        ms = duration_ms(value, name=name)
        if ms < least_ms or (most_ms is not None and ms > most_ms):
            most = f" and at most {duration_text(most_ms)}" if most_ms is not None else ""
            raise ValueError(f"{name}={shown(value)} is out of range: give at least {duration_text(least_ms)}{most}")
        return ms

    return read


def _payload(value: Size, name: str) -> int:
    count = size_bytes(value, name=name)
    if count > 512 * 2**20:
        raise ValueError(f"{name}={shown(value)} is out of range: Redis holds at most 512MiB in one value")
    return count


def _count(value: object, name: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15:
        return value
    if isinstance(value, str) and re.fullmatch("[0-9]{1,15}", value.strip()):
        return int(value)
    raise ValueError(f"{name}={shown(value)} is no count: give an integer from 0 on")


def _retention(value: object, name: str) -> Retention:
    if not isinstance(value, Retention):
        raise ValueError(f"{name}={shown(value)} is no Retention: give such as Retention(completed='24h')")  # noqa: TRY004
    return value


def _app(value: object, name: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[\w.]+(:[\w.]+)?", value):
        raise ValueError(f"{name}={shown(value)} names no application: give module[:attribute], such as 'shop.app:app'")
    return value


# The shortest lease is twice the time between renewals; a longer one than an hour would only hide dead workers.
_READ: dict[str, _Reader] = {
    "url": _Reader("url", _url),
    "namespace": _Reader("namespace", lambda value, name: checked_name(value, name=name)),
    "include": _Reader("include", _include, scalar=False),
    "retention": _Reader("retention", _retention, scalar=False),
    "lease": _Reader("lease_ms", _duration(4000, 3_600_000)),
    "deadline": _Reader("deadline_ms", _duration(1, 3_600_000)),
    "max_payload": _Reader("max_payload", _payload),
    "unknown_grace": _Reader("unknown_grace_ms", _duration(0)),
    "wait_replicas": _Reader("wait_replicas", _count),
    "app": _Reader("app", _app),
}


_READ_ELSEWHERE = ("TASKQ_SERVER_BINARY",)


def _refuse_unknown(given: Mapping[str, object]) -> None:
    for key in given:
        if key not in _READ:
            raise ValueError(f"there is no setting {shown(key)}{did_you_mean(key, _READ)}")


def _dashed(key: str) -> str:
    return key.replace("_", "-")


def _shown(value: object, field_name: str) -> str:
    if isinstance(value, Retention):
        durations = {each: duration_text(ms) for each, ms in value.to_dict().items() if each.endswith("_ms")}
        shown = {each.removesuffix("_ms"): text for each, text in durations.items()}
        counts = {"max_completed": value.max_completed, "max_failed": value.max_failed}
        return ", ".join(f"{each} {text}" for each, text in {**shown, **counts}.items())
    if field_name.endswith("_ms") and isinstance(value, int):
        return duration_text(value)
    if field_name == "url":
        return mask_url(str(value))
    if isinstance(value, tuple):
        return ", ".join(value)
    return "" if value is None else str(value)


def _plain(value: object, field_name: str) -> Any:
    if isinstance(value, Retention):
        return {name.removesuffix("_ms"): _plain(each, name) for name, each in value.to_dict().items()}
    if field_name.endswith("_ms") and isinstance(value, int):
        return value // 1000 if value % 1000 == 0 else value / 1000
    if field_name == "url":
        return mask_url(str(value))
    return list(value) if isinstance(value, tuple) else value
