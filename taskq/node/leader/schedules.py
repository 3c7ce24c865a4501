"""The leader fires schedules: looks at what is due, fires it, and has it relayed to its queue.

What fires when is decided by `taskq.calendar`, from the server's time; that it fires once, by the scripts. This loop
only has to come back, on whichever node: whatever it left half done is found where it stands. While this node doesn't
lead, it asks nobody anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, NamedTuple

from taskq import commands
from taskq.calendar import due, fires_at, read_rule
from taskq.commands import Command, DueSchedule
from taskq.errors import ServerFull
from taskq.keys import ClusterKeys
from taskq.log import get_logger
from taskq.node.leader.lead import Leader
from taskq.node.queues import Queues

IDLE_S = 0.25  # a look at the own state, no call
FULL_S = 1.0
LIMIT = 100
PARK_MS = 60_000

log = get_logger(__name__)


class _Firing(NamedTuple):
    command: Command[str]
    queue: str
    look_ms: int
    fires: bool


class Schedules:
    """Fires schedules while this node leads.

    Args:
        queues: the way to Redis.
        c: where schedules live.
        node: this node.
        leader: whether it leads.
        relay: called with each queue for which firings wait.
    """

    def __init__(
        self, queues: Queues, c: ClusterKeys, node: str, leader: Leader, *, relay: Callable[[str], object]
    ) -> None:
        self._queues = queues
        self._c = c
        self._node = node
        self._leader = leader
        self._relay = relay
        self._unreadable: dict[str, int] = {}
        self._full = False

    async def step(self) -> float:
        """Fire what is due, once."""
        term = self._leader.term
        if term is None:
            return IDLE_S
        look = commands.due_schedules(self._c, node=self._node, term=term, limit=LIMIT)
        found = await self._queues.run(look)
        heard = time.monotonic()
        if found.word == "lost":
            return IDLE_S
        firings = [self._judged(each, term, found.now_ms) for each in found.schedules]
        if self._leader.term != term:  # it was long on its way
            return IDLE_S
        if not await self._fire(firings):
            return FULL_S
        for queue in dict.fromkeys([*(each.queue for each in firings if each.fires), *found.queues]):
            self._relay(queue)
        if len(found.schedules) == LIMIT:
            return 0.0
        look_ms = min([found.look_ms, *(each.look_ms - found.now_ms for each in firings)])
        return max(0.0, look_ms / 1000 - (time.monotonic() - heard))

    def _judged(self, each: DueSchedule, term: int, now_ms: int) -> _Firing:
        """What of a schedule fires now, as a command."""
        times: tuple[int, ...] = ()
        next_ms: int | Literal["-"] | None = "-"
        after_ms, look_ms = each.after_ms, now_ms + PARK_MS
        try:
            rule = read_rule(each.rule)
        except ValueError as error:
            self._complain(each, error)
        else:
            times, next_ms = due(rule, after_ms, now_ms, name=each.name, runs=each.runs)
            settled_ms = now_ms
            if next_ms is not None:
                look_ms = fires_at(rule, each.name, next_ms)
                settled_ms = min(now_ms, next_ms - 1)  # with a jitter it may lie before now, and fire later
            after_ms = max(after_ms, settled_ms)
        command = commands.fire(
            self._c,
            node=self._node,
            term=term,
            name=each.name,
            revision=each.revision,
            after=after_ms,
            next=next_ms,
            look=look_ms,
            times=times,
        )
        return _Firing(command, each.queue, look_ms, fires=bool(times))

    async def _fire(self, firings: list[_Firing]) -> bool:
        """Whether the server took them all; what it didn't take stays due."""
        if not firings:
            return True
        try:
            await self._queues.run_many([each.command for each in firings])
        except ServerFull as error:
            if not self._full:
                log.warning("schedules can't fire, and stay due", error=str(error))
            self._full = True
            return False
        self._full = False
        return True

    def _complain(self, each: DueSchedule, error: ValueError) -> None:
        if self._unreadable.get(each.name) != each.revision - 1:
            log.warning("this node can't read a schedule's rule", schedule=each.name, error=str(error))
        self._unreadable[each.name] = each.revision
