"""Relaying firings to their queue, from the first that waits on: in order, each until its queue has answered. Pure.

A generator that yields commands and is sent their answers, so that nodes and clients, sync and async, drive the same
one. What it does may be done twice and by several at once: the queue knows what it has had.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, TypeAlias

from taskq import commands, keys
from taskq.commands import Command, Incoming, Outgoing, Relayed
from taskq.errors import LeadershipLost, ServerFull, TaskQError, Unavailable
from taskq.schedules.run import Run, run_of
from taskq.schedules.template import unpack

QUEUED_MS = 1000
"""How soon one that waits for the last run's job is tried again."""

LATER = (Unavailable, ServerFull, LeadershipLost)
"""What may end a relaying; what wasn't answered stays where it is."""

Relaying: TypeAlias = Generator[Command[Any], Any, list[Run]]
"""Yields commands, is sent their answers or thrown their errors, and returns the runs that were told."""


def relay(namespace: str, queue: str, *, term: int | None = None) -> Relaying:
    """Relays what waits for a queue.

    Args:
        namespace: whose.
        queue: where to.
        term: of the leader that relays; None for somebody who relays what he caused.

    Raises:
        Unavailable, ServerFull: one of both sides; what wasn't answered stays, and may be relayed again.
        LeadershipLost: a later leader has relayed there.
    """
    c = keys.cluster(namespace)
    after, runs = "", []
    while waiting := (yield commands.outbox(c, queue, after=after)):
        told = yield from _deliver(namespace, queue, waiting, term)
        stored = yield commands.relayed(c, queue, told, again_ms=QUEUED_MS)
        for each, run in zip(told, stored, strict=True):
            if run is not None and (made := run_of(each.schedule.decode(errors="replace"), run)) is not None:
                runs.append(made)
        after = waiting[-1].entry
    if not after:  # the queue stood among those that firings are on their way to for nothing, and would be met for ever
        yield commands.relayed(c, queue)
    return runs


def _deliver(
    namespace: str, queue: str, waiting: Sequence[Outgoing], term: int | None
) -> Generator[Command[Any], Any, list[Relayed]]:
    """What became of each of these."""
    told: dict[str, Relayed] = {}
    good: list[tuple[Outgoing, Incoming]] = []
    for each in waiting:
        try:
            good.append((each, _incoming(queue, each)))
        except (ValueError, KeyError) as error:
            why = str(error) if isinstance(error, ValueError) else "its message is damaged"
            told[each.entry] = _outcome(each, "refused", why)
    try:
        answers = yield from _receive(namespace, queue, [message for _, message in good], term)
        told |= {each.entry: _outcome(each, word, rest) for (each, _), (word, rest) in zip(good, answers, strict=True)}
    except LATER:
        raise
    except TaskQError:  # one that the server won't take must not hold up the others: each by itself
        for each, message in good:
            told[each.entry] = yield from _alone(namespace, queue, each, message, term)
    return [told[each.entry] for each in waiting]


def _receive(
    namespace: str, queue: str, messages: list[Incoming], term: int | None
) -> Generator[Command[Any], Any, list[tuple[str, str]]]:
    if not messages:
        return []
    answers = yield commands.receive(keys.queue(namespace, queue), messages, term=term)
    if answers is None:
        raise LeadershipLost
    found: list[tuple[str, str]] = answers
    return found


def _alone(
    namespace: str, queue: str, each: Outgoing, message: Incoming, term: int | None
) -> Generator[Command[Any], Any, Relayed]:
    try:
        ((word, rest),) = yield from _receive(namespace, queue, [message], term)
    except LATER:
        raise
    except TaskQError as error:
        return _outcome(each, "refused", " ".join(str(error).split())[:200])
    return _outcome(each, word, rest)


def _incoming(queue: str, each: Outgoing) -> Incoming:
    """A message as the queue takes it. ValueError or KeyError for one that can't be read."""
    fields = each.fields
    schedule, kind, overlap = (fields[name].decode() for name in ("schedule", "kind", "overlap"))
    nominal_ms, fired_at_ms = int(fields["nominal"]), int(fields["fired_at"])
    if min(nominal_ms, fired_at_ms) < 0 or max(nominal_ms, fired_at_ms) > 10**15:
        raise ValueError("its message names a time that can't be")
    job = unpack(fields["template"]).job(queue, schedule, kind, nominal_ms)
    return Incoming(schedule, kind, nominal_ms, fired_at_ms, overlap, job)


def _outcome(each: Outgoing, word: str, rest: str) -> Relayed:
    schedule, kind, nominal = (each.fields.get(name, b"") for name in ("schedule", "kind", "nominal"))
    return Relayed(each.entry, schedule, kind, nominal, word, rest)


def drive(steps: Relaying, do: Callable[[Command[Any]], Any]) -> list[Run]:
    """Sends what it yields, and gives the runs that were told. Raises as `relay`."""
    step = _Step(steps)
    while (command := step.go()) is not None:
        try:
            step.answer = do(command)
        except TaskQError as error:
            step.error = error
    return step.runs


async def adrive(steps: Relaying, do: Callable[[Command[Any]], Awaitable[Any]]) -> list[Run]:
    """As `drive`, awaited."""
    step = _Step(steps)
    while (command := step.go()) is not None:
        try:
            step.answer = await do(command)
        except TaskQError as error:
            step.error = error
    return step.runs


class _Step:
    """Where a relaying stands: what its last command was answered, or the error it raised."""

    def __init__(self, steps: Relaying) -> None:
        self.answer: Any = None
        self.error: TaskQError | None = None
        self.runs: list[Run] = []
        self._steps = steps

    def go(self) -> Command[Any] | None:
        """The next command; None when it is over."""
        error, self.error = self.error, None
        try:
            return self._steps.send(self.answer) if error is None else self._steps.throw(error)
        except StopIteration as end:
            self.runs = end.value
            return None
