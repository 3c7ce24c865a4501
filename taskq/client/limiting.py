"""What a running program or an operator says of limits, tasks and fairness keys: one change in bounded steps. Pure.

As in `sweep`, steps are generators that yield commands and are sent their answers, so that both clients drive the same.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, TypeAlias

from taskq import commands, keys, lanes, limited, listing
from taskq.asked import checked_text
from taskq.commands import Command
from taskq.errors import shown
from taskq.keys import QueueKeys
from taskq.limited import WHOLE
from taskq.options import Rate
from taskq.options.limits import checked_limit_name
from taskq.units import Duration, duration_ms

Steps: TypeAlias = Generator[Command[Any], Any, Any]

NONE = "none"
"""A number that code declares and that is not to hold."""

RESET: Mapping[str, str] = {"c": "", "r": "", "until": ""}
_DONE = "0"
_CONCURRENCY_MAX = 1_000_000_000
_WEIGHT_MAX = 240


def entry_of(name: str | None = None, *, key: object = None, task: str | None = None) -> str:
    """What is spoken of: a limit, one key of it, with `key` alone a fairness key, a task, or with nothing the queue.

    Raises:
        ValueError: a name or key that can't be.
        TypeError: a task that is no text.
    """
    if task is not None:
        return "*" + lanes.encoded(checked_text(task, name="name", of="task"))
    if name is None:
        return WHOLE if key is None else "@" + _encoded(key)
    gate = lanes.gate(checked_limit_name(name))
    return gate if key is None else f"{gate}={_encoded(key)}"


def _encoded(key: object) -> str:
    try:
        return lanes.encoded(key)
    except ValueError as error:
        raise ValueError(f"key={shown(key)} names nothing: {error}") from None


def part_of(key: object, task: str | None) -> str:
    """A fairness key or a task, of which one is given. ValueError if both are."""
    if key is not None and task is not None:
        raise ValueError(f"key={shown(key)} and task={shown(task)} are two things: give one of them")
    return entry_of(key=key, task=task)


def asked(
    name: str | None,
    *,
    key: object,
    task: str | None,
    concurrency: int | None,
    rate: str | None,
    burst: int | None,
    reset: bool,
) -> tuple[str, Mapping[str, Any]]:
    """What a call of `limit` speaks of, and what it says. ValueError where it says nothing, or what can't be."""
    if task is not None and (name is not None or key is not None):
        raise ValueError(f"task={shown(task)} stands instead of a name and a key")
    if name is None and key is not None:
        raise ValueError(f"key={shown(key)} belongs to a limit: give its name too")
    entry = entry_of(name, key=key, task=task)
    words = words_of(concurrency=concurrency, rate=rate, burst=burst)
    if reset and words:
        raise ValueError("reset=True stands alone: give the new numbers in another call")
    if not reset and not words:
        raise ValueError("give concurrency= or rate=, or reset=True to take back what was said")
    if not reset:
        return entry, words
    return entry, {**RESET, **({"age": ""} if entry == WHOLE else {})}


def words_of(
    *, concurrency: int | None = None, rate: str | None = None, burst: int | None = None, age: Duration | None = None
) -> dict[str, str | int]:
    """Numbers as the queue holds them; only those that are given.

    Raises:
        ValueError: a number that can't be, or a burst without its rate.
    """
    words: dict[str, str | int] = {}
    if concurrency is not None:
        words["c"] = _whole(concurrency, "concurrency", 0, _CONCURRENCY_MAX)
    if rate is not None:
        words["r"] = Rate(rate, burst=burst).words.partition("=")[2]
    elif burst is not None:
        raise ValueError(f"burst={burst} belongs to a rate: give rate= too")
    if age is not None:
        words["age"] = duration_ms(age, name="age") or ""
    return words


def _whole(value: object, what: str, least: int, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ValueError(f"{what}={shown(value)} is out of range: give an integer from {least} to {most:,}")


def block_words(duration: Duration) -> dict[str, str]:
    """Shut for so long from now on; 0 opens again."""
    ms = duration_ms(duration, name="duration")
    return {"until": f"+{ms}" if ms else ""}


def change(q: QueueKeys, entry: str, words: Mapping[str, Any], task: str | None = None) -> Steps:
    """Says it, and leads claims to whatever waited for it. Returns whether that changed anything.

    Args:
        q: the queue.
        entry: what is spoken of.
        words: what is said.
        task: one of which somebody must have heard, in this queue or on a node: a mistyped name must not look like
            success. None: no matter.

    Raises:
        UnknownTask: nobody has; the nearest name is told.
    """
    first: commands.Changed = yield commands.limit(q, entry, words, task=task or "")
    if first.unknown and task is not None:
        cluster = keys.cluster(q.namespace)
        info = yield commands.task_info(cluster, task)
        nodes = yield commands.nodes(cluster)
        listing.task(task, info, listing.nodes(nodes))
        first = yield commands.limit(q, entry, words)
    cursor = first.cursor
    while cursor != _DONE:
        cursor = (yield commands.limit(q, entry, {}, cursor=cursor)).cursor
    return first.changed


def look(q: QueueKeys) -> Steps:
    """Everything that is said, by name, as JSON holds it."""
    found: dict[str, dict[str, Any]] = {}
    said: dict[str, Mapping[str, str]] = {}
    cursor = _DONE
    while True:
        some: commands.LimitRows = yield commands.limits(q, cursor=cursor)
        found |= {row.entry: limited.shown(row, some.now_ms) for row in some.rows}
        said |= {row.entry: row.said for row in some.rows}
        cursor = some.cursor
        if cursor == _DONE:
            break
    limited.inherit(found, said)
    if some.age_ms:
        whole = found.setdefault(WHOLE, limited.nothing())
        whole["age"] = some.age_ms / 1000
    return [found[entry] for entry in sorted(found, key=limited.order)]


def checked_weights(
    weights: Mapping[Any, int | None] | None, more: Mapping[Any, int | None] | None = None
) -> dict[Any, int | None]:
    """What was given as weights, together. ValueError if it is no mapping."""
    if weights is not None and not isinstance(weights, Mapping):
        raise ValueError(f"weights={shown(weights)} are none: give such as weights(acme=3)")
    return {**(weights or {}), **(more or {})}


def weigh(q: QueueKeys, weights: Mapping[Any, int | None]) -> Steps:
    """Sets weights, if any are given. Returns all, by key.

    Raises:
        ValueError: a weight that isn't from 1 to 240, or a key that names nothing.
    """
    for key, weight in weights.items():
        if weight is not None:
            _whole(weight, f"weight of {key}", 1, _WEIGHT_MAX)
    rest = [(_encoded(key), weight) for key, weight in weights.items()]
    for at in range(0, len(rest), commands.BATCH_MAX):
        yield commands.weigh(q, dict(rest[at : at + commands.BATCH_MAX]))
    found: dict[str, int] = {}
    cursor = _DONE
    while True:
        some: commands.Weights = yield commands.weigh(q, {}, cursor=cursor)
        found |= some.weights
        cursor = some.cursor
        if cursor == _DONE:
            return {lanes.decoded(key): weight for key, weight in sorted(found.items())}
