"""What may be said about a job besides its arguments: one vocabulary, checked where it is said.

The same names serve `TaskQ(defaults=Options(…))`, `@app.task(…)` and
`task.using(…)`; `merge` lays them over one another, the strongest last. A name
nobody knows is answered with the nearest known one, and one that a later
version will know is refused as "not yet": nothing is ever ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

from taskq.errors import did_you_mean, shown
from taskq.retry import DEFAULT_MAX_ATTEMPTS, Backoff, BackoffFunction
from taskq.settings import checked_name
from taskq.units import Duration, duration_ms, duration_text, instant_ms

DEFAULT_QUEUE = "default"
LOWEST_PRIORITY, HIGHEST_PRIORITY = -512, 511
MOST_ATTEMPTS = 1_000_000
MOST_TAGS, LONGEST_TAG = 32, 128
MOST_META_BYTES = 8192

KILL_AFTER_MS = 10_000
"""How long after its timeout a job that doesn't heed it is stopped by force, unless `hard_timeout` says."""


class Vocabulary(TypedDict, total=False):
    """The options as type checkers see them; `Options` says what each means."""

    queue: str | None
    priority: int | None
    delay: Duration | None
    at: datetime | None
    expires: Duration | datetime | None
    max_attempts: int | None
    backoff: Backoff | BackoffFunction | None
    timeout: Duration | None
    hard_timeout: Duration | None
    tags: Iterable[str] | None
    meta: Mapping[str, str] | None
    id: str | None
    keep: Duration | None
    keep_result: Duration | None
    on_lease_lost: Literal["retry", "fail"] | None


class TaskVocabulary(Vocabulary, total=False):
    """What `task()` takes: the options, and what belongs to the task itself."""

    name: str | None
    executor: Literal["async", "thread"] | None


@dataclass(frozen=True, init=False)
class Options:
    """Options of a job, checked and in our units. What isn't given (or None) leaves the word to weaker layers.

    Args:
        queue: where the job waits; 1 to 64 of `a-z 0-9 . _ -`. Default "default".
        priority: -512 to 511, higher first. Default 0.
        delay: how long the job waits at least (0: not at all); not together with `at`.
        at: when it may start, an aware datetime.
        expires: cancelled if it hasn't started by then: a duration from now, or an aware datetime.
        max_attempts: how many times it is run at most, from 1. Default 3.
        backoff: the wait between attempts, a `Backoff` or a callable(attempt, error) → seconds.
        timeout: how long an attempt may take; 0 means none, the default.
        hard_timeout: when an attempt that doesn't heed its timeout is stopped by force, from its start;
            default `timeout` + 10 s, 0 means never.
        tags: up to 32 texts, shown with the job and readable in it; a stronger layer's replace a weaker one's.
        meta: text to text, up to 8 KiB, readable in the job; a stronger layer's pairs are added.
        id: an own id, 1 to 64 of `A-Z a-z 0-9 . _ -`, for which a second enqueue adds nothing.
        keep: how long the job is kept after its end (0: not at all).
        keep_result: how long its result is kept after its end.
        on_lease_lost: "retry" (the default) or "fail": what becomes of a job whose worker was lost.

    Raises:
        TypeError: an option nobody knows.
        NotImplementedError: an option of a later version.
        ValueError: a value that breaks its rule; the message names the option and the rule.
    """

    # Only what was said is set on an object; the class answers None for the rest, so that layers merge as dicts.
    queue: str | None = None
    priority: int | None = None
    delay_ms: int | None = None
    at_ms: int | None = None
    expires: str | None = None  # "+<ms from now>" or "<ms since 1970>", as the scripts read it
    max_attempts: int | None = None
    backoff: Backoff | None = None
    timeout_ms: int | None = None
    hard_timeout_ms: int | None = None
    tags: tuple[str, ...] | None = None
    meta: Mapping[str, str] | None = None
    id: str | None = None
    keep_ms: int | None = None
    keep_result_ms: int | None = None
    on_lease_lost: Literal["retry", "fail"] | None = None

    def __init__(self, **given: Unpack[Vocabulary]) -> None:
        for name, value in given.items():
            if name not in _OPTIONS:
                raise _unknown(name, _OPTIONS, _LATER)
            if value is not None:
                field, read = _OPTIONS[name]
                object.__setattr__(self, field, read(value))
        if self.delay_ms is not None and self.at_ms is not None:
            raise ValueError("give delay= or at=, not both: each says when the job may start")
        _check_times(self)

    @property
    def due(self) -> str:
        """When the job may start, as the scripts read it: "" (now), "+<ms from now>" or "<ms since 1970>"."""
        if self.at_ms is not None:
            return str(self.at_ms)
        return f"+{self.delay_ms}" if self.delay_ms else ""

    @property
    def kill_after_ms(self) -> int:
        """When an attempt is stopped by force, from its start; 0 means never."""
        if self.hard_timeout_ms is not None:
            return self.hard_timeout_ms
        return self.timeout_ms + KILL_AFTER_MS if self.timeout_ms else 0


def merge(*layers: Options) -> Options:
    """One layer over another, weakest first: defaults, the task's options, `using`'s.

    Each option has the strongest layer's value. `delay` and `at` are one question and so replace each
    other, `meta` adds up, and a stronger `timeout` takes a weaker `hard_timeout` with it.

    Raises:
        ValueError: values that don't fit together, such as a `hard_timeout` below the `timeout`.
    """
    values: dict[str, Any] = {}
    for layer in layers:
        said = dict(vars(layer))
        if "delay_ms" in said or "at_ms" in said:
            values.pop("delay_ms", None)
            values.pop("at_ms", None)
        if "timeout_ms" in said:
            values.pop("hard_timeout_ms", None)
        if "meta" in said and "meta" in values:
            said["meta"] = {**values["meta"], **said["meta"]}
        values |= said
    merged = Options()
    vars(merged).update(values)
    _check_times(merged)
    return merged


def stored_fields(merged: Options, using: Options) -> dict[str, str | int]:
    """The record fields that these options put into a job, without defaults.

    Args:
        merged: all layers, as `merge` gives them.
        using: the call's own layer: only its backoff and timeouts travel with the job, those of the
            task stay in the worker's code and change with it.

    Raises:
        ValueError: a callable backoff in `using`, which can't be stored.
    """
    stored: dict[str, str | int | None] = {
        "max_attempts": merged.max_attempts if merged.max_attempts != DEFAULT_MAX_ATTEMPTS else None,
        "tags": json.dumps(merged.tags, ensure_ascii=False) if merged.tags else None,
        "meta": json.dumps(dict(merged.meta), ensure_ascii=False) if merged.meta else None,
        "keep": merged.keep_ms,
        "keep_result": merged.keep_result_ms,
        "on_lease_lost": "fail" if merged.on_lease_lost == "fail" else None,
        "backoff": using.backoff.spec() if using.backoff else None,
        "timeout": using.timeout_ms,
        "hard_timeout": using.hard_timeout_ms,
    }
    return {name: value for name, value in stored.items() if value is not None}


def told(options: Options) -> dict[str, Any]:
    """What a producer that knows a task by its name alone must hear of its options, as JSON holds it.

    The queue is told apart; backoff and timeouts stay in the workers' code; an instant (`at`, or `expires` as one)
    belongs to a call, not to a task, and is left out.
    """
    said = vars(options)
    words = {name: said[name] for name in _AS_THEY_ARE if name in said}
    if "meta" in words:
        words["meta"] = dict(words["meta"])
    words |= {name: duration_text(said[f"{name}_ms"]) for name in _DURATIONS if f"{name}_ms" in said}
    if options.expires and options.expires[0] == "+":
        words["expires"] = duration_text(int(options.expires))
    return words


def heard(words: object) -> Options:
    """The reverse of `told`. What this version doesn't know, or can't read, is left out."""
    layers: list[Options] = []
    for name, value in words.items() if isinstance(words, dict) else ():
        try:
            layers.append(Options(**{name: value}))
        except (TypeError, ValueError, NotImplementedError):
            continue
    return merge(*layers)


_AS_THEY_ARE = ("priority", "max_attempts", "tags", "meta", "on_lease_lost")
_DURATIONS = ("delay", "keep", "keep_result")


class Declaration(NamedTuple):
    """What `@app.task(…)` said: the task's own name and executor if given, and its jobs' options."""

    name: str | None
    executor: Literal["async", "thread"] | None
    options: Options


def declare(given: Mapping[str, Any]) -> Declaration:
    """The arguments of `task()`, checked.

    Raises:
        TypeError, NotImplementedError, ValueError: as `Options`; also for a bad name or executor.
    """
    for key in given:
        if key not in _OPTIONS and key not in _TASK_OWN:
            raise _unknown(key, (*_OPTIONS, *_TASK_OWN), (*_LATER, *_TASK_LATER))
    name, executor = given.get("name"), given.get("executor")
    if executor == "process":
        raise NotImplementedError('executor="process" isn\'t here yet: this version runs "async" and "thread"')
    if executor not in (None, "async", "thread"):
        raise ValueError(
            f'executor={shown(executor)} is none: give "async" or "thread"{did_you_mean(shown(executor), _KINDS)}'
        )
    if name is not None:
        checked_task_name(name)
    return Declaration(name, executor, Options(**{key: given[key] for key in given if key not in _TASK_OWN}))


def checked_task_name(name: object) -> str:
    """A task's name as it may be stored: 1 to 200 characters without spaces or control characters.

    Raises:
        ValueError: anything else.
    """
    if isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable() and " " not in name:
        return name
    rule = "use 1 to 200 characters without spaces, such as 'mail.send'"
    raise ValueError(f"name={shown(name)} is no task's name: {rule}")


# --- the rule of each option --------------------------------------------------


def _priority(value: object) -> int:
    return _integer(value, "priority", LOWEST_PRIORITY, HIGHEST_PRIORITY)


def _max_attempts(value: object) -> int:
    return _integer(value, "max_attempts", 1, MOST_ATTEMPTS)


def _integer(value: object, name: str, least: int, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ValueError(f"{name}={shown(value)} is out of range: give an integer from {least} to {most}")


def _lasting(name: str) -> Callable[[Any], int]:
    return lambda value: duration_ms(value, name=name)


def _expires(value: Any) -> str:
    if isinstance(value, datetime):
        return str(instant_ms(value, name="expires"))
    ms = duration_ms(value, name="expires")
    if ms == 0:
        raise ValueError("expires=0 leaves no time to start: give a duration above zero or an aware datetime")
    return f"+{ms}"


def _tags(value: Iterable[object]) -> tuple[str, ...]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise ValueError(f'tags={shown(value)} is no list: give such as tags=["x"]')  # noqa: TRY004 (as meta)
    tags: dict[str, None] = {}
    for tag in value:
        if not isinstance(tag, str) or not 0 < len(tag) <= LONGEST_TAG or not _is_text(tag):
            raise ValueError(f"tags holds {shown(tag)}: a tag is text of 1 to {LONGEST_TAG} characters")
        tags[tag] = None
        if len(tags) > MOST_TAGS:
            raise ValueError(f"tags holds more than {MOST_TAGS} tags: that is what a job has at most")
    return tuple(tags)


def _meta(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError(  # noqa: TRY004 (refusals of options are ValueErrors throughout)
            f'meta={shown(value)} is no mapping: give such as meta={{"request_id": "7"}}'
        )
    for key, each in value.items():
        if not (isinstance(key, str) and isinstance(each, str) and _is_text(key + each)):
            pair = f"{shown(key, 40)}: {shown(each, 40)}"
            raise ValueError(f"meta holds {pair}: both must be text; write str(…), or use arguments")
    size = sum(len(key.encode()) + len(each.encode()) for key, each in value.items())
    if size > MOST_META_BYTES:
        raise ValueError(f"meta holds {size} bytes: a job has at most {MOST_META_BYTES}; use arguments for more")
    return dict(value)


def _id(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9._-]{1,64}", value):
        return value
    hint = " (without the queue, which is put before it)" if isinstance(value, str) and ":" in value else ""
    raise ValueError(f"id={shown(value)} is no id: use 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'{hint}")


def _on_lease_lost(value: object) -> str:
    if value in ("retry", "fail"):
        return str(value)
    raise ValueError(f'on_lease_lost={shown(value)} is none: give "retry" (the default) or "fail"')


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which no UTF-8 reader could ever show again
        return False
    return True


def _check_times(options: Options) -> None:
    timeout, hard = options.timeout_ms, options.hard_timeout_ms
    if timeout and hard and hard < timeout:
        raise ValueError(
            f"hard_timeout={duration_text(hard)} lies before timeout={duration_text(timeout)}:"
            " a job is asked to stop first and stopped by force later"
        )
    if options.expires and options.due and options.expires[0] == "+" and options.due[0] == "+":
        soon, late = int(options.expires), int(options.due)
    elif options.expires and options.at_ms is not None and options.expires[0] != "+":
        soon, late = int(options.expires), options.at_ms
    else:
        return  # nothing to compare without a clock
    if soon <= late:
        raise ValueError("the job would expire before it may start: give a later expires=, or a smaller delay= or at=")


_OPTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "queue": ("queue", lambda value: checked_name(value, name="queue")),
    "priority": ("priority", _priority),
    "delay": ("delay_ms", _lasting("delay")),
    "at": ("at_ms", instant_ms),
    "expires": ("expires", _expires),
    "max_attempts": ("max_attempts", _max_attempts),
    "backoff": ("backoff", Backoff.of),
    "timeout": ("timeout_ms", _lasting("timeout")),
    "hard_timeout": ("hard_timeout_ms", _lasting("hard_timeout")),
    "tags": ("tags", _tags),
    "meta": ("meta", _meta),
    "id": ("id", _id),
    "keep": ("keep_ms", _lasting("keep")),
    "keep_result": ("keep_result_ms", _lasting("keep_result")),
    "on_lease_lost": ("on_lease_lost", _on_lease_lost),
}
_LATER = (
    *("unique", "fair", "limits", "lock", "labels", "resources", "target", "strict"),
    *("after", "on_parent_failed", "on_target_lost", "debounce", "throttle"),
)
_KINDS = ("async", "thread")
_TASK_OWN = ("name", "executor")
_TASK_LATER = (
    *("aliases", "retry_on", "discard_on", "retry_until", "before_run", "after_run", "before_retry"),
    *("on_failure", "middleware", "memory_limit", "capture"),
)
# Other libraries' words for the same thing, which no likeness of letters would find.
_ELSEWHERE = {
    **dict.fromkeys(("retries", "max_retries", "tries"), "max_attempts"),
    **dict.fromkeys(("countdown", "defer_by", "delay_s"), "delay"),
    **dict.fromkeys(("eta", "run_at", "scheduled_at", "defer_until"), "at"),
    **dict.fromkeys(("ttl", "expire", "expires_at"), "expires"),
    **dict.fromkeys(("time_limit", "job_timeout", "soft_time_limit"), "timeout"),
    **dict.fromkeys(("job_id", "task_id", "_job_id"), "id"),
    **dict.fromkeys(("metadata", "headers"), "meta"),
    "result_ttl": "keep_result",
}


def _unknown(name: str, known: Iterable[str], later: Iterable[str]) -> Exception:
    if name in later:
        return NotImplementedError(f"{name}= isn't here yet: this version of taskq would ignore it, so it refuses it")
    if name in _TASK_OWN or name in _TASK_LATER:
        return TypeError(f"{name}= belongs to the task: give it to @app.task({name}=…)")
    elsewhere = _ELSEWHERE.get(name)
    hint = f" (did you mean {elsewhere!r}?)" if elsewhere else did_you_mean(name, (*known, *later))
    return TypeError(f"there is no option {shown(name)}{hint}")
