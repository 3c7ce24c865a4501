"""What of the options travels: into a job's record, and to producers that know a task by its name alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from taskq.needs import number
from taskq.options.by import heard_by, told_by
from taskq.options.layer import Options, merge
from taskq.options.limits import heard_limit, heard_lock
from taskq.options.once import heard_once
from taskq.retry import DEFAULT_MAX_ATTEMPTS
from taskq.units import duration_text


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
        "on_target_lost": "fail" if merged.on_target_lost == "fail" and merged.target else None,
        "lock_wait": merged.lock.wait_ms if merged.lock else None,
        "backoff": using.backoff.spec() if using.backoff else None,
        "timeout": using.timeout_ms,
        "hard_timeout": using.hard_timeout_ms,
    }
    return {name: value for name, value in stored.items() if value is not None}


def told(options: Options, parameters: Sequence[str] = ()) -> dict[str, Any]:
    """What a producer that knows a task by its name alone must hear of its options, as JSON holds it.

    The queue is told apart; backoff and timeouts stay in the workers' code; an instant (`at`, or `expires` as one)
    belongs to a call, not to a task, and is left out.

    Args:
        options: the task's.
        parameters: of its function, in order, those that may be given by place. A call may bring options that name one.
    """
    said = vars(options)
    words = {name: said[name] for name in _AS_THEY_ARE if name in said}
    if "meta" in words:
        words["meta"] = dict(words["meta"])
    if "labels" in said:
        words["labels"] = dict(said["labels"])
    if "takes" in said:
        words["resources"] = {name: number(each) for name, each in said["takes"].items()}
    words |= {name: duration_text(said[f"{name}_ms"]) for name in _DURATIONS if f"{name}_ms" in said}
    if options.expires and options.expires[0] == "+":
        words["expires"] = duration_text(int(options.expires))
    if options.is_keyed:
        words |= {name: said[name].told() for name in ("lock", "unique", "debounce", "throttle") if name in said}
        if options.fair is not None:
            words["fair"] = told_by(options.fair)
        if options.limits:
            words["limits"] = [limit.told() for limit in options.limits]
    if parameters:
        words[ORDER] = list(parameters)
    return words


def heard(words: object) -> Options:
    """The reverse of `told`. What this version doesn't know, or can't read, is left out."""
    layers: list[Options] = []
    for name, value in words.items() if isinstance(words, dict) else ():
        try:
            layers.append(Options(**{name: _HEARD[name](value) if name in _HEARD else value}))
        except (TypeError, ValueError, KeyError, AttributeError, NotImplementedError):
            continue
    return merge(*layers)


_HEARD: dict[str, Callable[[Any], Any]] = {
    "fair": lambda told: heard_by(told, "fair"),
    "limits": lambda told: [heard_limit(each) for each in told],
    "lock": heard_lock,
    "unique": lambda told: heard_once("unique", told),
    "debounce": lambda told: heard_once("debounce", told),
    "throttle": lambda told: heard_once("throttle", told),
}
ORDER = "order"
"""Under this word stand the parameters of a task by place, so that a value can be found that was given so."""

_AS_THEY_ARE = ("priority", "max_attempts", "tags", "meta", "on_lease_lost", "target", "strict", "on_target_lost")
_DURATIONS = ("delay", "keep", "keep_result")
