"""Firing schedules: what is due, the firing itself, and its way to the queue, where it becomes a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from taskq.commands.command import Arg, Command, build, pairs, text, texts
from taskq.commands.enqueue import NewJob
from taskq.commands.schedules import StoredRun, stored_run
from taskq.keys import ClusterKeys, QueueKeys


class DueSchedule(NamedTuple):
    """A schedule that the leader is to look at.

    Attributes:
        name: which.
        rule: its rule's text.
        queue: where its jobs go.
        after_ms: up to when its times are settled.
        runs: how often it has fired, for `max_runs`.
        revision: as it was read: the proof of a firing.
    """

    name: str
    rule: str
    queue: str
    after_ms: int
    runs: int
    revision: int


class DueSchedules(NamedTuple):
    """What there is to do now.

    Attributes:
        word: `ok`, or `lost`: who asked leads no more, and the rest is empty.
        now_ms: the server's time.
        look_ms: when the next one's time comes, at most a second.
        queues: those for which firings wait to be relayed.
        schedules: those to look at.
    """

    word: str
    now_ms: int = 0
    look_ms: int = 0
    queues: tuple[str, ...] = ()
    schedules: tuple[DueSchedule, ...] = ()


class Outgoing(NamedTuple):
    """A firing on its way: `entry` is its place in the outbox, `fields` what it says."""

    entry: str
    fields: dict[str, bytes]


class Incoming(NamedTuple):
    """A firing as it arrives at its queue, with the job that it is to become."""

    schedule: str
    kind: str
    nominal_ms: int
    fired_at_ms: int
    overlap: str
    job: NewJob


class Relayed(NamedTuple):
    """What became of a firing: `word` and `rest` as `receive` answered them, the others as its message has them."""

    entry: str
    schedule: bytes
    kind: bytes
    nominal: bytes
    word: str
    rest: str


def due_schedules(
    c: ClusterKeys, *, node: str, term: int, limit: int = 100, now: int | None = None
) -> Command[DueSchedules]:
    """What the leader is to look at now.

    Args:
        c: where schedules live.
        node: the leader.
        term: its term.
        limit: at most so many schedules.
        now: the time in ms; None for the server's clock.
    """

    def read(reply: Sequence[Any]) -> DueSchedules:
        if len(reply) == 1:
            return DueSchedules(text(reply[0]))
        found = tuple(
            DueSchedule(text(name), text(rule), text(queue), int(after), int(runs), int(revision))
            for name, rule, queue, after, runs, revision in reply[4:]
        )
        return DueSchedules(text(reply[0]), int(reply[1]), int(reply[2]), tuple(texts(reply[3])), found)

    return build("due_schedules", c, read, {"now": now, "node": node, "term": term, "limit": limit})


def fire(
    c: ClusterKeys,
    *,
    node: str,
    term: int,
    name: str,
    revision: int,
    after: int,
    next: int | Literal["-"] | None,
    look: int,
    times: Sequence[int] = (),
    now: int | None = None,
) -> Command[str]:
    """Fires a schedule's times, or settles that none fires: `ok`, `lost` or `changed`.

    Args:
        c: where schedules live.
        node: the leader.
        term: its term.
        name: the schedule.
        revision: as it was read.
        after: up to when its times are settled by this, in ms.
        next: its next time in ms; None if there is none any more; "-" if this node can't tell.
        look: when to look at it again, in ms.
        times: the nominal times to fire in ms, oldest first.
        now: the time in ms; None for the server's clock.
    """
    named = {"now": now, "node": node, "term": term, "name": name, "revision": revision}
    return build("fire", c, text, {**named, "after": after, "next": next, "look": look}, times)


def outbox(
    c: ClusterKeys, queue: str, *, after: str = "", limit: int = 100, now: int | None = None
) -> Command[list[Outgoing]]:
    """Firings on their way to a queue, in their order; those behind the entry `after`."""

    def read(reply: Sequence[Any]) -> list[Outgoing]:
        return [Outgoing(text(entry), {text(k): v for k, v in pairs(flat).items()}) for entry, flat in reply]

    return build("outbox", c, read, {"now": now, "queue": queue, "after": after, "limit": limit})


def receive(
    q: QueueKeys, messages: Sequence[Incoming], *, term: int | None = None, now: int | None = None
) -> Command[list[tuple[str, str]] | None]:
    """Takes in firings: a word and the rest for each; None if a later leader has relayed here.

    Args:
        q: the queue.
        messages: at most 100, in order.
        term: of the leader that relays; None for somebody who relays what he caused.
        now: the time in ms; None for the server's clock.
    """
    rest: list[Arg] = []
    for each in messages:
        rest += (each.schedule, each.kind, each.nominal_ms, each.fired_at_ms, each.overlap)
        each.job._replace(token="").put_into(rest)

    def read(reply: Sequence[bytes]) -> list[tuple[str, str]] | None:
        told = texts(reply[1:])
        return None if reply[0] == b"lost" else list(zip(told[::2], told[1::2], strict=True))

    return build("receive", q, read, {"now": now, "term": term}, rest)


def relayed(
    c: ClusterKeys, queue: str, told: Sequence[Relayed] = (), *, again_ms: int = 0, now: int | None = None
) -> Command[list[StoredRun | None]]:
    """Notes what became of firings; the run of each as it stands then, None for one that is forgotten.

    Args:
        c: where schedules live.
        queue: where they went.
        told: at most 250. None: the queue couldn't be reached.
        again_ms: when to relay what is left.
        now: the time in ms; None for the server's clock.
    """
    rest = [value for each in told for value in each]
    named = {"now": now, "queue": queue, "again_ms": again_ms}
    return build("relayed", c, lambda reply: [stored_run(line) for line in reply], named, rest)
