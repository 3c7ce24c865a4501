"""The history of who led, as the registry's server was told it (witness.py), and what it must be like: never two
leaders of one term, terms that only grow, and nothing accepted but from the one who led at that moment; by a queue,
nothing of a term before the highest that has written there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import redis

from taskq.keys import ClusterKeys
from tests.chaos.witness import Call, Witness

#: Which call begins a term or ends it, and which only a leader may send.
ELECTS = frozenset({"pulse", "resign"})
TERMED = frozenset({"fire", "due_schedules", "mark_dead", "order"})
#: Which of them go to queues, and so are seen if the registry's server has those too.
QUEUED = frozenset({"receive", "untarget", "withdraw"})


@dataclass
class Judgement:
    """What a history says.

    Attributes:
        terms: who led in each.
        fired: the nominal times that were fired, in order.
        accepted, refused: how many calls that only a leader may send were, and were not. `written`: how many of the
            accepted ones went to queues.
        wrong: what must not be there.
    """

    terms: dict[int, str] = field(default_factory=dict)
    fired: list[int] = field(default_factory=list)
    accepted: int = 0
    refused: int = 0
    written: int = 0
    wrong: list[str] = field(default_factory=list)


class History:
    """Watches the server that has the registry.

    Args:
        registry: a client of it.
        c: the registry's keys.
        schedule: whose firings are looked at.
    """

    def __init__(self, registry: redis.Redis, c: ClusterKeys, schedule: str) -> None:
        self._witness = Witness(registry, ELECTS | TERMED | QUEUED)
        self._leader, self._runs = c.fixed("leader"), c.runs(schedule)

    def close(self) -> None:
        """Watch no longer."""
        self._witness.close()

    def judged(self) -> Judgement:
        """What there is to say by now."""
        return judged(self._witness.calls(), leader=self._leader, runs=self._runs)


def judged(calls: Iterable[Call], *, leader: str, runs: str) -> Judgement:
    """Judges calls in the order in which the server did them.

    Args:
        calls: of `ELECTS`, `TERMED` and `QUEUED`.
        leader: the key of who leads.
        runs: the key of the schedule's firings.
    """
    found, node, term, until = Judgement(), "", 0, 0
    calls = list(calls)
    for call in calls:
        if call.script in TERMED and call.said["term"]:
            if not _accepted(call):
                found.refused += 1
                continue
            found.accepted += 1
            who = call.said.get("node") or call.said["by"], int(call.said["term"])
            if who != (node, term):
                found.wrong.append(f"{call.script} of {who} was accepted while {node!r} led in term {term}")
            for nominal, at in _firings(call, runs):
                if at >= until:
                    found.wrong.append(f"{who} fired {nominal} at {at}: its term had ended at {until}")
                found.fired.append(nominal)
        for record in _records(call, leader):
            until = int(record.get("until", until))
            said = record.get("node", node), int(record.get("term", term))
            if said != (node, term) and said[1] <= term:
                found.wrong.append(f"{said} began after {node!r} had led in term {term}")
            node, term = said
            found.terms[term] = node
    if found.fired != sorted(set(found.fired)):
        found.wrong.append(f"a time was fired twice, or out of order: {found.fired}")
    _judge_queues([call for call in calls if call.script in QUEUED and call.said["term"]], found)
    return found


def _judge_queues(calls: Iterable[Call], found: Judgement) -> None:
    highest: dict[str, int] = {}  # that has written, by where a queue remembers it
    for call in calls:
        meta = next((each[1] for each in call.did if each[0].upper() == "HGET" and each[2:] == ["term"]), "")
        if not meta or not _accepted(call):
            found.refused += 1
            continue
        term = int(call.said["term"])
        found.accepted += 1
        found.written += 1
        if term < highest.get(meta, 0):
            found.wrong.append(f"{call.script} of term {term} was accepted after one of {highest[meta]}")
        highest[meta] = max(term, highest.get(meta, 0))


def _accepted(call: Call) -> bool:
    """Whether it did more than to look who leads, or led: the refused ones stop there."""
    return bool(call.did) and call.did[-1][-1] not in {"since", "term"}


def _records(call: Call, leader: str) -> list[dict[str, str]]:
    """What it wrote of who leads."""
    writes = [each[2:] for each in call.did if each[0].upper() == "HSET" and each[1] == leader]
    return [dict(zip(each[::2], each[1::2], strict=True)) for each in writes]


def _firings(call: Call, runs: str) -> list[tuple[int, int]]:
    """The nominal times that it fired, and when."""
    found = [each[2].split(" ") for each in call.did if each[0].upper() == "LPUSH" and each[1] == runs]
    return [(int(each[0]), int(each[2])) for each in found]
