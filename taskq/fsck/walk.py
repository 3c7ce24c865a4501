"""The walk over a queue: every record, everything that stands anywhere, every lane and key, in bounded slices.

It does no I/O: it yields commands and is sent their answers, so that a command line, a node and a test can lead it.
While it goes on the queue lives: each fact was true at its moment, and mending checks again by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from taskq import keys
from taskq.commands import fsck as commands
from taskq.commands.command import Command
from taskq.commands.fsck import Gate, JobFacts, Lane, LaneFacts, Row, unpacked
from taskq.errors import BadRecord
from taskq.fsck import judge
from taskq.fsck.judge import Breach
from taskq.fsck.report import TOLD_MAX, Report
from taskq.keys import ClusterKeys, QueueKeys
from taskq.record.fields import read

ROWS = 100
_SETS = (*judge.STANDS_IN.values(), "prune", "expiring")

T = TypeVar("T")
Step = Generator[Command[Any], Any, T]


def walk(q: QueueKeys, *, repair: bool, lease_ms: int) -> Step[Report]:
    """Looks at everything of one queue; with `repair` sets it right. Its markers are looked at by `markers`.

    Args:
        q: the queue.
        repair: whether to mend what is wrong.
        lease_ms: the lease that a running job gets which has none.
    """
    walker = Walker(q, repair=repair, lease_ms=lease_ms)
    cursor = "0"
    while True:
        cursor, some = yield commands.scan(q, f"{q.prefix}*", cursor=cursor)
        yield from walker.feed(some)
        if cursor == "0":
            return (yield from walker.finish())


def walk_all(c: ClusterKeys, names: Iterable[str], *, repair: bool, lease_ms: int) -> Step[list[Report]]:
    """As `walk`, for many queues in one scan: those named, and all that hold keys on the server of the registry, which
    without a cluster is every queue.
    """
    found: dict[str, Walker] = {}

    def walker(name: str) -> Walker:
        if name not in found:
            found[name] = Walker(keys.queue(c.namespace, name), repair=repair, lease_ms=lease_ms)
        return found[name]

    for name in names:
        walker(name)
    prefix = re.compile(re.escape(f"{c.namespace}:{{".encode()) + rb"([a-z0-9][a-z0-9._-]{0,63})\}:")
    cursor = "0"
    while True:
        cursor, some = yield commands.scan(c, f"{c.namespace}:{{*", cursor=cursor)
        by_queue: dict[str, list[bytes]] = {}
        for key in some:
            if match := prefix.match(key):
                by_queue.setdefault(match[1].decode(), []).append(key)
        for name, of_queue in by_queue.items():
            yield from walker(name).feed(of_queue)
        if cursor == "0":
            break
    reports: list[Report] = []
    for name in sorted(found):
        reports.append((yield from found[name].finish()))  # noqa: PERF401 (a comprehension can't yield)
    return reports


def markers(q: QueueKeys) -> Step[list[LaneFacts]]:
    """The lanes with work of classes for which no marker stands now."""
    lanes: list[Lane] = []
    for klass in ("async", "thread"):
        _, rows = yield commands.members(q, f"levels:{klass}")
        lanes += [Lane(klass, unpacked(row.id)) for row in rows]
    facts: list[LaneFacts] = []
    for some in _slices(lanes):
        facts += yield commands.survey_lanes(q, some)
    return [each for each in facts if judge.needs_marker(each)]


class Walker:
    """Takes in the keys of one queue and looks at each.

    Args:
        q: the queue.
        repair: whether to mend what is wrong.
        lease_ms: the lease that a running job gets which has none.
    """

    def __init__(self, q: QueueKeys, *, repair: bool, lease_ms: int) -> None:
        self.report = Report(q.name)
        self._q = q
        self._repair = repair
        self._lease_ms = lease_ms
        self._prefix = q.prefix.encode()
        self._record = self._prefix + b"job:"
        self._names: set[str] = set()

    def feed(self, some: Sequence[bytes]) -> Step[None]:
        """Looks at the records among some keys, and remembers the others."""
        ids = [key.removeprefix(self._record) for key in some if key.startswith(self._record)]
        self.report.jobs += len(ids)
        self._names.update(unpacked(key.removeprefix(self._prefix)) for key in some if not key.startswith(self._record))
        yield from self._look_at_jobs([Row(id) for id in ids])

    def finish(self) -> Step[Report]:
        """Looks at the rest: what stands in structures, keys as such, and what leads to lanes."""
        names = sorted(self._names)
        self.report.keys = len(names)
        yield from self._look_at_keys(names)
        held_in = [each for each in names if each.startswith(("front:", "body:", "slots:")) and each != "slots:+"]
        for name in [*_SETS, *held_in]:
            yield from self._each_slice(name, self._look_at_jobs)
        yield from self._look_at_lanes(names)
        yield from self._look_at_gates(names)
        for some in _slices([*names, *_SETS]):
            aside = sorted({name if name.startswith("aside:") else f"aside:{name}" for name in some})
            facts: list[tuple[str, int]] = yield commands.survey_keys(self._q, aside)
            self.report.aside += [name for name, (kind, _) in zip(aside, facts, strict=True) if kind != "none"]
        self.report.aside = sorted(set(self.report.aside))[:TOLD_MAX]
        return self.report

    def _look_at_jobs(self, rows: Sequence[Row]) -> Step[None]:
        for some in _slices(rows):
            facts: list[JobFacts] = yield commands.survey_jobs(self._q, some)
            self._note_unreadable(facts)
            wrong = [each for each in facts if any(judge.of_job(each))]
            after = wrong
            if wrong and self._repair:
                broken = [each.row for each in wrong]
                yield commands.mend_jobs(self._q, broken, lease_ms=self._lease_ms)
                after = yield commands.survey_jobs(self._q, broken)
            self.report.tell(_all(judge.of_job, wrong), _all(judge.of_job, after))

    def _note_unreadable(self, facts: Iterable[JobFacts]) -> None:
        for each in facts:
            try:
                if each.kind == "hash":
                    read(unpacked(each.row.id), each.fields)
            except BadRecord as error:
                self.report.note_unreadable(str(error))

    def _look_at_keys(self, names: Iterable[str]) -> Step[None]:
        wanted = {name: judge.wanted_key(name) for name in names}
        self.report.foreign = [name for name, each in wanted.items() if each is None][:TOLD_MAX]
        for some in _slices([each for each in wanted.values() if each is not None]):
            facts = yield commands.survey_keys(self._q, [each.name for each in some])
            before = after = _of_keys(some, facts)
            if before and self._repair:
                yield commands.mend_keys(self._q, some)
                facts = yield commands.survey_keys(self._q, [each.name for each in some])
                after = _of_keys(some, facts)
            self.report.tell(before, after)

    def _look_at_lanes(self, names: Iterable[str]) -> Step[None]:
        lanes: set[Lane] = set()
        for name in names:
            kind, _, rest = name.partition(":")
            if kind in {"front", "body", "groups"}:
                lanes.add(_lane(rest))
            elif kind == "lanes":
                level, _, group = rest.rpartition(":")
                lanes.add(_lane(level if group == "-" else f"{rest}:"))
            elif kind == "parked":
                parked: list[Row] = []
                yield from self._each_slice(name, _gather(parked))
                lanes |= {_lane(unpacked(row.id)) for row in parked}
            elif kind == "levels":
                found: list[Row] = []
                yield from self._each_slice(name, _gather(found))
                lanes |= {Lane(rest, unpacked(row.id)) for row in found}
        of = _Survey(commands.survey_lanes, commands.mend_lanes, judge.of_lane, lambda fact: fact.lane)
        yield from self._compare(sorted(lanes), of)

    def _look_at_gates(self, names: Iterable[str]) -> Step[None]:
        gates = {Gate("+")}
        for name in names:
            kind, _, rest = name.partition(":")
            if kind == "parked":
                id, _, klass = rest.rpartition(":")
                gates.add(Gate(id, klass))
            elif kind == "parks":
                classes: list[Row] = []
                yield from self._each_slice(name, _gather(classes))
                gates |= {Gate(rest, unpacked(row.id)) for row in classes}
        of = _Survey(commands.survey_gates, commands.mend_gates, judge.of_gate, lambda fact: fact.gate)
        yield from self._compare(sorted(gates), of)

    def _compare(self, rows: Sequence[Any], of: _Survey) -> Step[None]:
        """Slice by slice: what is wrong there, and what still is once it was mended."""
        for some in _slices(rows):
            facts: list[Any] = yield of.survey(self._q, some)
            wrong = [each for each in facts if any(of.judge(each))]
            after = wrong
            if wrong and self._repair:
                broken = [of.row(each) for each in wrong]
                yield of.mend(self._q, broken)
                after = yield of.survey(self._q, broken)
            self.report.tell(_all(of.judge, wrong), _all(of.judge, after))

    def _each_slice(self, name: str, look: Callable[[Sequence[Row]], Step[None]]) -> Step[None]:
        cursor = ""
        while True:
            cursor, rows = yield commands.members(self._q, name, cursor=cursor)
            yield from look(rows)
            if not cursor:
                return


class _Survey(NamedTuple):
    """How one kind of thing is looked at and mended: by rows, of which facts are told, each judged by itself."""

    survey: Callable[[QueueKeys, Sequence[Any]], Command[Any]]
    mend: Callable[[QueueKeys, Sequence[Any]], Command[Any]]
    judge: Callable[[Any], Iterator[Breach]]
    row: Callable[[Any], Any]


def _gather(into: list[Row]) -> Callable[[Sequence[Row]], Step[None]]:
    def look(rows: Sequence[Row]) -> Step[None]:
        into.extend(rows)
        yield from ()

    return look


def _of_keys(wanted: Sequence[commands.Wanted], facts: Sequence[tuple[str, int]]) -> list[Breach]:
    return [breach for each, fact in zip(wanted, facts, strict=True) for breach in judge.of_key(each, *fact)]


def _all(judged: Callable[[Any], Iterator[Breach]], facts: Iterable[Any]) -> list[Breach]:
    return [breach for each in facts for breach in judged(each)]


def _slices(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    return (rows[at : at + ROWS] for at in range(0, len(rows), ROWS))


def _lane(name: str) -> Lane:
    words = name.split(":", 2)
    if len(words) == 3:
        return Lane(*words)
    klass, _, priority = name.rpartition(":")
    return Lane(klass, priority)
