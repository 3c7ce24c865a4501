"""What is said of limits, tasks and fairness keys while programs run, and how many turns each key gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from taskq.commands.command import Arg, Command, build, text, texts
from taskq.keys import QueueKeys

DONE = "0"
"""The cursor of a call after which nothing is left."""


class Changed(NamedTuple):
    """The answer of one step.

    Attributes:
        changed: whether what was said is new.
        cursor: from where to look on at what waits for it; "0" when all was.
        declared: whether code declares a limit of that name.
        unknown: nobody knows the task that was to be known: nothing was changed.
    """

    changed: bool
    cursor: str
    declared: bool
    unknown: bool = False


class LimitRow(NamedTuple):
    """One limit, task or fairness key.

    Attributes:
        entry: what it is: `<limit>`, `<limit>=<key>`, `*<task>`, `@<fairness key>` or `queue`; encoded.
        declared: the words of code.
        said: the words of an operator or a program.
        held: jobs that run under it.
        parked: lanes that wait for it.
        free: how many more jobs may start now; None where nothing holds them.
        next_ms: when it is to be looked at again; None if that is not known.
        reserved: slots that are held for jobs which haven't begun; only the whole queue has such.
    """

    entry: str
    declared: dict[str, str]
    said: dict[str, str]
    held: int
    parked: int
    free: int | None
    next_ms: int | None
    reserved: int = 0


class LimitRows(NamedTuple):
    """Some of all. `age_ms`: after how long a waiting lane gains a level; 0: it doesn't."""

    cursor: str
    now_ms: int
    age_ms: int
    rows: list[LimitRow]


class Weights(NamedTuple):
    """Some of all fairness keys that were given a weight."""

    cursor: str
    weights: dict[str, int]


def limit(
    q: QueueKeys, entry: str, words: Mapping[str, Arg], *, cursor: str = "", task: str = "", now: int | None = None
) -> Command[Changed]:
    """One step of changing what is said of a limit, a task, a fairness key or the whole queue. It takes effect now.

    Args:
        q: the queue.
        entry: as in `LimitRow`.
        words: `c` (how many at once, or none), `r` (`<limit>/<period ms>/<burst>`, or none), `until` (`+<ms from now>`
            or ms), `paused` (1), and of the queue `age` (ms); '' takes a word away.
        cursor: '' changes it; what a step answered looks on from there.
        task: one that must be known in the queue, by a worker's word or a job; '' for none.
        now: the time in ms; None for the server's clock.
    """
    rest: list[Arg] = []
    for pair in words.items():
        rest += pair

    def read(reply: Any) -> Changed:
        if reply[0] == b"unknown":
            return Changed(changed=False, cursor=DONE, declared=False, unknown=True)
        return Changed(bool(reply[0]), text(reply[1]), bool(reply[2]))

    return build("limit", q, read, {"now": now, "entry": entry, "cursor": cursor, "task": task}, rest)


def limits(q: QueueKeys, ids: Sequence[str] = (), *, cursor: str = DONE, now: int | None = None) -> Command[LimitRows]:
    """Some of what is said, as it holds now; or what is said of these entries, at most 250."""

    def read(reply: Any) -> LimitRows:
        return LimitRows(text(reply[0]), int(reply[1]), int(reply[2]), [_row(each) for each in reply[3:]])

    return build("limits", q, read, {"now": now, "cursor": cursor}, ids)


def weigh(
    q: QueueKeys, weights: Mapping[str, int | None], *, cursor: str = DONE, now: int | None = None
) -> Command[Weights]:
    """Sets weights of fairness keys (None takes one away), at most 250, and tells some of all."""
    rest: list[Arg] = []
    for key, weight in weights.items():
        rest += (key, "" if weight is None else weight)

    def read(reply: Any) -> Weights:
        told = texts(reply[1:])
        found = {key: int(weight) for key, weight in zip(told[::2], told[1::2], strict=True) if weight.isdigit()}
        return Weights(text(reply[0]), found)

    return build("weigh", q, read, {"now": now, "cursor": cursor}, rest)


def _row(reply: Any) -> LimitRow:
    free, next_ms = int(reply[5]), int(reply[6])
    return LimitRow(
        text(reply[0]),
        _words(reply[1]),
        _words(reply[2]),
        int(reply[3]),
        int(reply[4]),
        None if free < 0 else free,
        next_ms or None,
        int(reply[7]),
    )


def _words(reply: bytes) -> dict[str, str]:
    return {name: value for name, _, value in (each.partition("=") for each in text(reply).split())}
