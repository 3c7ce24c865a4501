"""What `queue purge` and `job clear` act on: which queues, which states, how many jobs, told before and after."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from taskq import commands, keys
from taskq.app import TaskQ
from taskq.cli import output
from taskq.cli.refusal import WrongUsage, checked_values, refuse
from taskq.connection import run
from taskq.errors import did_you_mean, shown
from taskq.settings import checked_name

Scope = dict[str, dict[str, int]]
"""Queue → state → how many jobs of it."""

_PAGE = commands.ENTERED_MAX


def state_list(text: str | None, allowed: Sequence[str], participle: str) -> tuple[str, ...]:
    """`--state a,b`, checked; all that are allowed if it isn't given."""
    if text is None:
        return tuple(allowed)
    states = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
    for each in states:
        if each not in allowed:
            hint = did_you_mean(each, allowed)
            raise WrongUsage(f"jobs in state {shown(each)} can't be {participle}{hint}: only {', '.join(allowed)}")
    if not states:
        raise WrongUsage(f"--state names no state: give {', '.join(allowed)}")
    return states


def known_queues(place: TaskQ, names: Sequence[str] | None) -> list[str]:
    """The names, each once; None means every queue of the namespace.

    One that was never used is refused: it is a slip that would otherwise look like success.
    """
    with checked_values(queue="QUEUE"):
        asked = list(dict.fromkeys(checked_name(name, name="queue") for name in names or ()))
    there = [str(each["queue"]) for each in place.inspector.queues()]
    if names is None:
        return there
    for name in asked:
        if name not in there:
            refuse(f"there is no queue {shown(name)}{did_you_mean(name, there)}: nothing was ever enqueued in it")
    return asked


def counted(place: TaskQ, queues: Sequence[str], states: Sequence[str]) -> Scope:
    """How many jobs there are."""
    found: Scope = {}
    for name in queues:
        counts = place.inspector.counts(name)
        found[name] = {state: getattr(counts, state) for state in states}
    return found


def size(scope: Scope) -> int:
    """How many jobs that is in all."""
    return sum(sum(states.values()) for states in scope.values())


def longest_ended(place: TaskQ, scope: Scope, some: Scope, limit: int) -> tuple[Scope, int | None]:
    """Of `some`, which ended before the rest of the scope, the `limit` jobs that ended first, whichever queue and state
    they are in; and an instant (ms) before which they all ended.
    """
    if size(some) <= limit:
        return some, None
    lists = [
        _oldest(place, queue, state, scope[queue][state], min(count, limit))
        for queue, states in some.items()
        for state, count in states.items()
    ]
    first = list(islice(heapq.merge(*lists), limit))
    before_ms = max((int(ended_ms) for ended_ms, _, _ in first), default=-1) + 1
    return _parts(some, Counter((queue, state) for _, queue, state in first)), before_ms


def without_last(place: TaskQ, scope: Scope, offset: int) -> tuple[Scope, int | None]:
    """The scope without the `offset` jobs that ended last, whichever queue and state they are in; and the instant (ms)
    before which it ended. Of jobs that ended in the same millisecond all are kept, or none.

    What ends, or is deleted by others, while it is read moves the instant back only: more is kept then.
    """
    if not offset:
        return scope, None
    lists = [_latest(place, queue, state) for queue, states in scope.items() for state in states]
    kept: Counter[tuple[str, str]] = Counter()
    cut_ms: float | None = None
    for ended_ms, queue, state in heapq.merge(*lists, reverse=True):
        if cut_ms is not None and ended_ms < cut_ms and kept.total() >= offset:
            break
        kept[queue, state] += 1
        cut_ms = ended_ms if cut_ms is None else min(cut_ms, ended_ms)
    left = Counter({(queue, state): count for queue, states in scope.items() for state, count in states.items()})
    return _parts(scope, left - kept), int(cut_ms or 0)


def _parts(scope: Scope, chosen: Counter[tuple[str, str]]) -> Scope:
    return {queue: {state: chosen[queue, state] for state in states} for queue, states in scope.items()}


def _latest(place: TaskQ, queue: str, state: str) -> Iterator[tuple[float, str, str]]:
    """When each job ended (ms), latest first."""
    offset = 0
    while page := _ended(place, queue, state, offset, _PAGE):
        yield from ((ended_ms, queue, state) for ended_ms in page)
        offset += len(page)


def _oldest(place: TaskQ, queue: str, state: str, there: int, most: int) -> Iterator[tuple[float, str, str]]:
    """When each of the first jobs ended (ms), oldest first, out of as many as are there."""
    last = there - most
    while there > last:
        some = min(_PAGE, there - last)
        there -= some
        yield from ((ended_ms, queue, state) for ended_ms in reversed(_ended(place, queue, state, there, some)))


def _ended(place: TaskQ, queue: str, state: str, offset: int, limit: int) -> list[float]:
    q = keys.queue(place.settings.namespace, queue)
    return run(place.client.server, commands.entered(q, state, offset=offset, limit=limit))


def delete(place: TaskQ, scope: Scope, *, older_ms: int = 0, before_ms: int | None = None) -> Iterator[tuple[str, int]]:
    """Deletes ended jobs for good, of each state at most as many as the scope has, the longest ended first. Yields how
    many jobs of which queue it were, step by step.
    """
    for queue, states in scope.items():
        q = keys.queue(place.settings.namespace, queue)
        for state, most in states.items():
            for at in range(0, most, commands.BATCH_MAX):
                some = min(commands.BATCH_MAX, most - at)
                step = commands.clear(q, states=[state], older_than_ms=older_ms, before_ms=before_ms, limit=some)
                count = run(place.client.server, step)
                yield queue, count
                if count < some:
                    break


def announce(namespace: str, scope: Scope, verb: str, which: str = "") -> int:
    """Say what will be done, and where, before anything is; gives how many jobs that is at most."""
    for name, states in scope.items():
        here = [f"{count} {state}" for state, count in states.items() if count]
        if here or len(scope) == 1:
            output.note(f"{verb} in {namespace}/{name}: {', '.join(here) or 'nothing'}{which if here else ''}")
    total = size(scope)
    if not total:
        named = dict.fromkeys(state for states in scope.values() for state in states)
        output.put(f"nothing to {verb}: no job is {' or '.join(named)}" if named else f"nothing to {verb}")
    return total


def tell(done: Mapping[str, int], participle: str) -> None:
    """How many jobs it was in the end, queue by queue: by then there may be more or fewer than were announced."""
    for name, count in done.items():
        if count or len(done) == 1:
            output.put(f"{name}: {count} {participle}")
    if len(done) > 1:
        output.put(f"in all: {sum(done.values())} {participle}")
