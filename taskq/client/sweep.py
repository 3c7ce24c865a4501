"""Emptying queues, `purge` and `clear`: bounded steps that end, however fast others fill the queue meanwhile. Pure.

A sweep is a generator that yields commands and is sent their answers, so that both clients drive the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, TypeAlias

from taskq import commands, keys
from taskq.asked import checked_whole
from taskq.commands import Command
from taskq.errors import shown
from taskq.keys import QueueKeys
from taskq.settings import checked_name
from taskq.state import State
from taskq.units import Duration, duration_ms

Sweep: TypeAlias = Generator[Command[Any], Any, int]
"""Yields commands, is sent their answers, and returns how many jobs it were."""

CLEARABLE = (State.FAILED, State.CANCELLED, State.COMPLETED)
CLEARED = (State.FAILED, State.CANCELLED)
"""What `clear` deletes unless it is told otherwise: completed jobs leave by retention soon enough."""

_Step: TypeAlias = Callable[[str, int], Command[tuple[int, int]]]  # state, size → (how many it were, out of how many)


def purge(namespace: str, queue: str, states: Sequence[str]) -> Sweep:
    """Cancels the jobs that wait in these states.

    Raises:
        TypeError: at once, for what is no list of states.
        ValueError: at once, for a state in which no job waits.
    """
    known = commands.WAITING
    states = _checked_states(states, known, f"can't be purged: only {', '.join(known)} jobs wait")
    q = keys.queue(namespace, checked_name(queue, name="queue"))

    def step(state: str, size: int) -> Command[tuple[int, int]]:
        return commands.purge(q, states=[state], limit=size).then(lambda step: (step.cancelled, step.looked))

    return _sweep(q, states, step, None)


def clear(
    namespace: str, queue: str, states: Sequence[str], older_than: Duration = 0, limit: int | None = None
) -> Sweep:
    """Deletes the jobs that ended in these states, state after state, the longest ended of each first.

    Raises:
        TypeError: at once, for what is no list of states, or a limit that is no whole number.
        ValueError: at once, for a state in which no job has ended, or a bad duration or limit.
    """
    states = _checked_states(states, CLEARABLE, f"can't be cleared: only {', '.join(CLEARABLE)} jobs have ended")
    if limit is not None and checked_whole(limit, "limit") < 1:
        raise ValueError(f"limit={limit} is out of range: give how many jobs to delete at most, from 1")
    q = keys.queue(namespace, checked_name(queue, name="queue"))
    older_ms = duration_ms(older_than, name="older_than")

    def step(state: str, size: int) -> Command[tuple[int, int]]:
        return commands.clear(q, states=[state], older_than_ms=older_ms, limit=size).then(lambda count: (count, count))

    return _sweep(q, states, step, limit)


def _checked_states(states: object, known: Sequence[str], why: str) -> tuple[str, ...]:
    """A list of states, for which one alone may stand. `why`: what to say of one that isn't known."""
    if not isinstance(states, Iterable):
        raise TypeError(f"states={shown(states)} is no list of states: give such as ['{known[0]}']")
    given = (states,) if isinstance(states, str) else tuple(states)
    for state in given:
        if state not in known:
            raise ValueError(f"states={shown(state)} {why}")
    return given


def _sweep(q: QueueKeys, states: Sequence[str], step: _Step, limit: int | None) -> Sweep:
    """State after state what is there now, in slices; of what is added meanwhile at most the rest of a slice."""
    there = yield commands.backlog(q)
    done = 0
    for state in dict.fromkeys(states):
        left = there[state]
        while left > 0 and done != limit:
            size = commands.BATCH_MAX if limit is None else min(commands.BATCH_MAX, limit - done)
            count, looked = yield step(state, size)
            done += count
            left -= looked
            if looked < size:
                break
    return done
