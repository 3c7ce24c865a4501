"""Schedules: declaring and putting them, steering them, showing them. What fires them is in `firing`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from taskq.commands.command import Command, build, pairs, text, texts
from taskq.keys import ClusterKeys


class Declared(NamedTuple):
    """A schedule as it is declared.

    Attributes:
        name: which.
        rule: `calendar.rule_text` of its rule.
        overlap: of that rule; the queue's script decides by it.
        queue: where its jobs go.
        task: what they run.
        template: a job of it, packed (`taskq.schedules.template`).
    """

    name: str
    rule: str
    overlap: str
    queue: str
    task: str
    template: bytes


class StoredRun(NamedTuple):
    """One firing as it is written.

    Attributes:
        nominal_ms: the time of the rule; of one asked for by hand when that was.
        kind: `due` or `manual`.
        fired_at_ms: when it was fired.
        term: of the leader that fired it; 0 if it was asked for by hand.
        word: `sent` (on its way), `fired`, `existing`, `skipped`, `queued` or `refused`.
        rest: the job's id; or why there is none.
    """

    nominal_ms: int
    kind: str
    fired_at_ms: int
    term: int
    word: str
    rest: str


class StoredSchedule(NamedTuple):
    """A schedule as it stands: its fields as they are, its last runs, the newest first."""

    name: str
    fields: dict[str, bytes]
    runs: tuple[StoredRun, ...]


class StoredSchedules(NamedTuple):
    """A page of them, how many there are, and the server's time."""

    total: int
    now_ms: int
    schedules: list[StoredSchedule]


def declare_schedules(
    c: ClusterKeys, declared: Sequence[Declared], *, declared_at: int | None = None, now: int | None = None
) -> Command[tuple[int, list[str]]]:
    """Takes in what a node's code declares. Answers when that was first said, and a word for each: `new`, `changed`,
    `same`, `older` (another version said it later) or `api` (put by hand, which beats code).

    Args:
        c: where schedules live.
        declared: at most 250.
        declared_at: what the first call for the same hello answered; None for that first one.
        now: the time in ms; None for the server's clock.
    """
    rest = [value for each in declared for value in each]
    named = {"now": now, "declared_at": declared_at}
    return build("declare_schedules", c, lambda reply: (int(reply[0]), texts(reply[1:])), named, rest)


def put_schedule(c: ClusterKeys, declared: Declared, *, now: int | None = None) -> Command[str]:
    """Puts a schedule by hand: `new`, `changed` or `same`."""
    return build("put_schedule", c, text, {"now": now}, declared)


def pause_schedule(c: ClusterKeys, name: str, *, now: int | None = None) -> Command[str]:
    """Lets it fire no more: `paused`, `already` or `missing`."""
    return build("pause_schedule", c, text, {"now": now, "name": name})


def resume_schedule(c: ClusterKeys, name: str, *, now: int | None = None) -> Command[str]:
    """Lets it fire again, from now on: `resumed`, `already` or `missing`."""
    return build("resume_schedule", c, text, {"now": now, "name": name})


def remove_schedule(c: ClusterKeys, name: str, *, now: int | None = None) -> Command[str]:
    """Removes it: `removed`, `missing`, or `declared` and nothing was done, because workers' code declares it."""
    return build("remove_schedule", c, text, {"now": now, "name": name})


def run_schedule(c: ClusterKeys, name: str, *, token: str, now: int | None = None) -> Command[tuple[str, int, str]]:
    """Fires it now, by hand. Answers a word (`ok`, `missing`, `stuck`), the nominal time, and the queue to relay.

    Args:
        c: where schedules live.
        name: which.
        token: names the call, so that it may be repeated.
        now: the time in ms; None for the server's clock.
    """

    def read(reply: Sequence[bytes]) -> tuple[str, int, str]:
        return text(reply[0]), int(reply[1] or 0), text(reply[2])

    return build("run_schedule", c, read, {"now": now, "name": name, "token": token})


def schedules(
    c: ClusterKeys, *, name: str = "", offset: int = 0, limit: int = 1000, runs: int = 0, now: int | None = None
) -> Command[StoredSchedules]:
    """Schedules, those that are looked at first before the others; or the one of a name, with its template.

    Args:
        c: where schedules live.
        name: only this one.
        offset: how many to skip.
        limit: at most so many, up to 1000.
        runs: how many of its last runs to give, up to 100.
        now: the time in ms; None for the server's clock.
    """

    def read(reply: Sequence[Any]) -> StoredSchedules:
        rows = [
            StoredSchedule(text(name), {text(k): v for k, v in pairs(flat).items()}, stored_runs(lines))
            for name, flat, lines in reply[2:]
        ]
        return StoredSchedules(int(reply[0]), int(reply[1]), rows)

    return build("schedules", c, read, {"now": now, "name": name, "offset": offset, "limit": limit, "runs": runs})


def stored_runs(lines: Sequence[bytes]) -> tuple[StoredRun, ...]:
    """Runs as they are written; what is none of ours is left out."""
    return tuple(run for line in lines if (run := stored_run(line)) is not None)


def stored_run(line: bytes) -> StoredRun | None:
    """One run, None for what isn't one."""
    words = text(line).split(" ", 5)
    try:
        nominal_ms, kind, fired_at_ms, term, word, rest = words
        return StoredRun(int(nominal_ms), kind, int(fired_at_ms), int(term), word, rest)
    except ValueError:
        return None
