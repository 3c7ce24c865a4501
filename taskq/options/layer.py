"""`Options`: one layer of what is said about a job, and how layers lie over one another.

Options are set where they are said and checked there; `merge` lays the layers
over one another, the strongest last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack

from taskq import needs
from taskq.errors import shown
from taskq.options import rules
from taskq.options.by import By, checked_by
from taskq.options.limits import Limit, Lock, checked_limits, checked_lock
from taskq.options.names import LATER, unknown
from taskq.options.once import Debounce, Once, Throttle, Unique, checked_debounce, checked_throttle
from taskq.retry import Backoff, BackoffFunction
from taskq.settings import checked_name
from taskq.units import Duration, duration_text, instant_ms

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
    fair: By | None
    limits: Limit | Iterable[Limit] | None
    lock: Lock | str | None
    unique: Unique | str | None
    debounce: Debounce | Duration | None
    throttle: Throttle | Duration | None
    labels: Mapping[str, str] | None
    resources: Mapping[str, int | float | str] | None
    target: str | None
    strict: bool | None
    on_target_lost: Literal["any", "fail"] | None


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
        fair: whose turn it is: jobs share the workers by this, each by its weight, however many one has waiting. A
            parameter's name, a tuple of names, or a callable over the call.
        limits: `Concurrency` and `Rate` limits, one or several; a job starts when all let it.
        lock: a `Lock`, or its name: no two jobs that hold the same run at once.
        unique: a `Unique`, or the key as a text: at most one living job has it.
        debounce: a `Debounce`, or a duration: the last of several calls wins, once it was quiet for so long. A duration
            alone makes all calls of the task one, whatever their arguments; `Debounce("5s", by="to")` tells them apart.
        throttle: a `Throttle`, or a duration: the first call wins, for so long; as `debounce`, with
            `Throttle("1m", by="to")`. Of these three one is possible.
        labels: what a worker must be labelled with (`taskq worker --label gpu=a100`), each equal.
        resources: amounts that must be free on a worker (`--capacity gpu=2,memory=32GiB`), all at once: numbers or
            sizes; a stronger layer's labels and resources replace a weaker one's.
        target: the id of a node or a host's name: no other may run the job.
        strict: refuse with Unschedulable what no live node matches, instead of letting it wait for one. Default False.
        on_target_lost: "any" (the default): any worker may run the job once its target is gone; "fail": it fails then.

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
    fair: By | None = None
    limits: tuple[Limit, ...] | None = None
    lock: Lock | None = None
    unique: Unique | None = None
    debounce: Debounce | None = None
    throttle: Throttle | None = None
    labels: Mapping[str, str] | None = None
    takes: Mapping[str, int] | None = None  # resource → thousandths
    target: str | None = None
    strict: bool | None = None
    on_target_lost: Literal["any", "fail"] | None = None

    def __init__(self, **given: Unpack[Vocabulary]) -> None:
        for name, value in given.items():
            if name not in OPTIONS:
                raise unknown(name, OPTIONS, LATER)
            if value is not None:
                field, read = OPTIONS[name]
                object.__setattr__(self, field, read(value))
        if self.delay_ms is not None and self.at_ms is not None:
            raise ValueError("give delay= or at=, not both: each says when the job may start")
        _check_times(self)
        _check_once(self)

    @property
    def due(self) -> str:
        """When the job may start, as the scripts read it: "" (now), "+<ms from now>" or "<ms since 1970>"."""
        if self.at_ms is not None:
            return str(self.at_ms)
        if self.debounce is not None:
            return f"+{self.debounce.wait_ms}"
        return f"+{self.delay_ms}" if self.delay_ms else ""

    @property
    def needs(self) -> str:
        """What its jobs need of a worker, as the scripts read it (`taskq.needs`); '' for nothing."""
        return needs.text_of(self.labels, self.takes, self.target)

    @property
    def once(self) -> Once | None:
        """When a second call makes no job of its own."""
        return self.unique or self.debounce or self.throttle

    @property
    def is_keyed(self) -> bool:
        """Whether anything is told of its jobs that depends on a call's arguments."""
        return not _KEYED.isdisjoint(vars(self))

    @property
    def kill_after_ms(self) -> int:
        """When an attempt is stopped by force, from its start; 0 means never."""
        if self.hard_timeout_ms is not None:
            return self.hard_timeout_ms
        return self.timeout_ms + KILL_AFTER_MS if self.timeout_ms else 0


def checked_layer(value: object, name: str) -> Options:
    """One layer, as it stands. ValueError for anything else."""
    if isinstance(value, Options):
        return value
    raise ValueError(f"{name}={shown(value)} are no Options: give such as Options(max_attempts=5)")


def merge(*layers: Options) -> Options:
    """One layer over another, weakest first: defaults, the task's options, `using`'s.

    Each option has the strongest layer's value. `delay` and `at` are one question and so replace each
    other, as do `unique`, `debounce` and `throttle`; `meta` adds up, and a stronger `timeout` takes a
    weaker `hard_timeout` with it.

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
        if not _ONCE.isdisjoint(said):
            for name in _ONCE:
                values.pop(name, None)
        if "meta" in said and "meta" in values:
            said["meta"] = {**values["meta"], **said["meta"]}
        values |= said
    merged = Options()
    vars(merged).update(values)
    _check_times(merged)
    _check_once(merged)
    return merged


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


def _check_once(options: Options) -> None:
    said = sorted(_ONCE & vars(options).keys())
    if len(said) > 1:
        both = " and ".join(f"{name}=" for name in said)
        raise ValueError(f"give one of {both}: each says when a second call makes no job of its own")
    if options.debounce is not None and (options.delay_ms is not None or options.at_ms is not None):
        raise ValueError("debounce= says itself when the job starts: leave delay= and at= out")


_ONCE = frozenset(("unique", "debounce", "throttle"))
_KEYED = frozenset(("fair", "limits", "lock", *_ONCE))

OPTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "queue": ("queue", lambda value: checked_name(value, name="queue")),
    "priority": ("priority", rules.priority),
    "delay": ("delay_ms", rules.lasting("delay")),
    "at": ("at_ms", instant_ms),
    "expires": ("expires", rules.expires),
    "max_attempts": ("max_attempts", rules.max_attempts),
    "backoff": ("backoff", Backoff.of),
    "timeout": ("timeout_ms", rules.lasting("timeout")),
    "hard_timeout": ("hard_timeout_ms", rules.lasting("hard_timeout")),
    "tags": ("tags", rules.tags),
    "meta": ("meta", rules.meta),
    "id": ("id", rules.own_id),
    "keep": ("keep_ms", rules.lasting("keep")),
    "keep_result": ("keep_result_ms", rules.lasting("keep_result")),
    "on_lease_lost": ("on_lease_lost", rules.on_lease_lost),
    "fair": ("fair", lambda value: checked_by(value, "fair")),
    "limits": ("limits", checked_limits),
    "lock": ("lock", checked_lock),
    "unique": ("unique", Unique.of),
    "debounce": ("debounce", checked_debounce),
    "throttle": ("throttle", checked_throttle),
    "labels": ("labels", needs.checked_labels),
    "resources": ("takes", needs.checked_resources),
    "target": ("target", needs.checked_target),
    "strict": ("strict", rules.strict),
    "on_target_lost": ("on_target_lost", rules.on_target_lost),
}
"""Each option: the attribute it sets, and its rule."""
