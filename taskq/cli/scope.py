"""What `queue purge` and `job clear` act on: which queues, which states, how many jobs, told before and after."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from taskq.app import TaskQ
from taskq.cli import output
from taskq.cli.refusal import WrongUsage, checked_values, refuse
from taskq.errors import did_you_mean, shown
from taskq.settings import checked_name
from taskq.state import State

Scope = dict[str, dict[str, int]]
"""Queue → state → how many jobs of it."""

_PAGE = 250


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


def longest_ended(place: TaskQ, scope: Scope, limit: int) -> Scope:
    """The part of the scope that ended first, whichever queue and state it is in: `limit` jobs."""
    if size(scope) <= limit:
        return scope
    lists = [_ends(place, queue, state, count) for queue, states in scope.items() for state, count in states.items()]
    chosen = Counter((queue, state) for _, queue, state in islice(heapq.merge(*lists), limit))
    return {queue: {state: chosen[queue, state] for state in states} for queue, states in scope.items()}


def without_last(place: TaskQ, scope: Scope, offset: int) -> Scope:
    """The scope without the `offset` jobs that ended last, whichever queue and state they are in."""
    if not offset:
        return scope
    lists = [_latest(place, queue, state, offset) for queue, states in scope.items() for state in states]
    kept = Counter((queue, state) for _, queue, state in islice(heapq.merge(*lists, reverse=True), offset))
    return {
        queue: {state: max(count - kept[queue, state], 0) for state, count in states.items()}
        for queue, states in scope.items()
    }


def _latest(place: TaskQ, queue: str, state: str, most: int) -> Iterator[tuple[str, str, str]]:
    """When each of the last jobs ended, latest first."""
    last = "~"  # after every instant
    for offset in range(0, most, _PAGE):
        page = place.inspector.jobs(state=State(state), queue=queue, limit=_PAGE, offset=offset)["data"]
        for job in page:
            last = min(last, job["finished_at"] or last)
            yield last, queue, state
        if len(page) < _PAGE:
            return


def _ends(place: TaskQ, queue: str, state: str, count: int) -> Iterator[tuple[str, str, str]]:
    """When each job ended, oldest first, as it is listed: RFC 3339 in UTC sorts as text."""
    last = ""
    while count > 0:
        some = min(_PAGE, count)
        count -= some
        page = place.inspector.jobs(state=State(state), queue=queue, limit=some, offset=count)["data"]
        for job in reversed(page):
            last = max(last, job["finished_at"] or "")  # a damaged record has none, and keeps its place
            yield last, queue, state


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
