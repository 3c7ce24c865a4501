"""How many slots a queue should have, and a node workers: pure policy, fed with what is counted every five seconds.

A queue needs (rate of arrival + backlog / time to drain it) × mean run time. What it has follows up at once, and down
only after it was too much for half a minute, to the most that was needed meanwhile: a need that swings is followed by
its crests. The backlog alone decides nothing: long jobs that nobody waits for need no slots.

A node needs workers for the slots that its queues need of it, and for the cores that its workers use: who computes is
full long before its slots are. Their number follows by the same rule.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass

EVERY_S = 5.0
DRAIN_S = 30.0
_SMOOTH = 0.4  # weight of the newest measurement
_UP, _DOWN = 1.1, 0.8  # what is needed, against what there is
_PATIENCE = 6  # decisions in a row
_FIRST_S = 1.0  # a job's run time while none has ended
_FULL = 0.8  # how much of a core a worker should use at most


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of a queue at a time (s): jobs that wait for a worker and that run; how many ever arrived and
    completed, and the run time of the latter together.
    """

    at_s: float
    waiting: int
    running: int
    arrived: int
    completed: int
    run_ms: int


class Load:
    """What one queue asks of its workers.

    Attributes:
        rate: jobs that arrive in a second.
        mean_s: how long one runs.
        waiting: jobs that wait.
    """

    def __init__(self) -> None:
        self.rate = 0.0
        self.mean_s = _FIRST_S
        self.waiting = 0
        self._last: Reading | None = None
        self._measured = False
        self._unended_s = 0.0

    def take(self, now: Reading) -> None:
        """Take in a reading. The first gives the backlog only; totals that shrank (a purge, say) begin anew."""
        last, self._last, self.waiting = self._last, now, now.waiting
        if last is None or now.at_s <= last.at_s:
            return
        passed_s = now.at_s - last.at_s
        arrived, completed = now.arrived - last.arrived, now.completed - last.completed
        if arrived < 0 or completed < 0:
            return
        self.rate += _SMOOTH * (arrived / passed_s - self.rate)
        if completed:
            mean_s = max(0, now.run_ms - last.run_ms) / 1000 / completed
            self.mean_s = self.mean_s + _SMOOTH * (mean_s - self.mean_s) if self._measured else mean_s
            self._measured, self._unended_s = True, 0.0
        elif now.running:  # none ends: they take at least as long as we have looked on
            self._unended_s += passed_s
            self.mean_s = max(self.mean_s, self._unended_s)

    @property
    def need(self) -> float:
        """Slots that would keep up with what arrives, and drain what waits in DRAIN_S."""
        return (self.rate + self.waiting / DRAIN_S) * self.mean_s


class Steady:
    """What one queue is given, or a node of workers: its need, without flapping. `slots`: so far."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._low: deque[int] = deque(maxlen=_PATIENCE)

    def follow(self, need: float, low: int, high: int) -> int:
        """The slots to have now, between `low` and `high`."""
        wanted = min(high, max(low, math.ceil(need - 1e-9)))
        self.slots = min(high, self.slots)
        if wanted >= self.slots * _UP or self.slots < low or (wanted == high > self.slots):
            self._low.clear()
            self.slots = wanted
        elif wanted <= self.slots * _DOWN:
            self._low.append(wanted)
            if len(self._low) == _PATIENCE:
                self.slots = max(self._low)
                self._low.clear()
        else:
            self._low.clear()
        return self.slots


@dataclass(frozen=True, slots=True)
class Site:
    """A node to give slots to: queue → from how many to how many, and how many it has in all."""

    ranges: Mapping[str, tuple[int, int]]
    total: int


def share(wanted: Mapping[str, int], least: Mapping[str, int], total: int) -> dict[str, int]:
    """Divide `total` slots: everybody's least first, then the rest by what more is wanted."""
    given = {name: min(least[name], wanted[name]) for name in wanted}
    more = {name: wanted[name] - given[name] for name in wanted}
    left = max(0, total - sum(given.values()))
    return {name: given[name] + extra for name, extra in divide(left, more).items()}


def divide(amount: int, room: Mapping[str, int]) -> dict[str, int]:
    """Divide an amount in proportion to the room there is, never above it; the largest remainders are rounded up."""
    whole = sum(room.values())
    if amount >= whole:
        return dict(room)
    exact = {name: amount * each / whole for name, each in room.items()}
    given = {name: int(each) for name, each in exact.items()}
    rest = sorted(room, key=lambda name: (given[name] - exact[name], name))
    for name in rest[: amount - sum(given.values())]:
        given[name] += 1
    return given


def balance(wanted: Mapping[str, int], sites: Mapping[str, Site]) -> dict[str, dict[str, int]]:
    """Node → queue → slots. Each node has its least; the rest goes where there is room, in proportion to it.

    When all nodes together have less than is wanted, each queue gives way in proportion to what it wants above its
    least. So none starves, and none grows at another's cost below that.
    """
    given = {node: {queue: low for queue, (low, _) in site.ranges.items()} for node, site in sites.items()}
    least = dict.fromkeys(wanted, 0)
    for slots in given.values():
        for queue, n in slots.items():
            least[queue] = least.get(queue, 0) + n
    total = sum(site.total for site in sites.values())
    aims = share({queue: max(n, least[queue]) for queue, n in wanted.items()}, least, total)
    for queue in sorted(aims, key=lambda name: (len([1 for site in sites.values() if name in site.ranges]), name)):
        missing = aims[queue] - least[queue]
        room = {
            node: max(0, min(site.ranges[queue][1] - given[node][queue], site.total - sum(given[node].values())))
            for node, site in sites.items()
            if queue in site.ranges
        }
        for node, more in divide(max(0, missing), room).items():
            given[node][queue] += more
    return given


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers of a node that scales their number: from how many to how many, how many there shall be so far, how
    many slots each has, how many cores they use, and the queues they serve whose slots have no range.
    """

    least: int
    most: int
    now: int
    each: int
    cores: float
    queues: Collection[str]


def hands(
    needs: Mapping[str, float], crews: Mapping[str, Crew], given: Mapping[str, Mapping[str, int]]
) -> dict[str, float]:
    """Node → the workers it needs. `needs`: queue → slots; `given`: node → queue → slots, of queues with a range."""
    taken = {node: sum(given.get(node, {}).values()) for node in crews}
    rooms = {node: max(0, crew.most * crew.each - taken[node]) for node, crew in crews.items()}
    sites = {node: Site(dict.fromkeys(crew.queues, (0, rooms[node])), rooms[node]) for node, crew in crews.items()}
    plain = {queue for crew in crews.values() for queue in crew.queues}
    parts = balance({queue: math.ceil(needs[queue] - 1e-9) for queue in plain}, sites)
    return {
        node: max((taken[node] + sum(parts[node].values())) / crew.each, crew.cores / _FULL)
        for node, crew in crews.items()
    }
