"""Who leads, by the record itself: what every call that a leader may send, or that makes one, must be answered.

Exact, call by call: whatever a node believes, its write is taken if and only if it leads at that moment by the server's
time. A queue, which may be on another shard, takes what a leader writes to it from no term before the highest that has
written there. Also what each queue has made of the firings that reached it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import redis

from taskq.commands import Command
from taskq.keys import ClusterKeys

#: How each of these says that who sends it doesn't lead.
LOST: dict[str, Callable[[Any], bool]] = {
    "fire": lambda reply: reply == b"lost",
    "order": lambda reply: reply == b"lost",
    "due_schedules": lambda reply: reply[0] == b"lost",
    "mark_dead": lambda reply: reply[0] == b"lost",
    "resign": lambda reply: reply == 0,
}
#: What a leader writes to queues.
QUEUED = frozenset({"receive", "untarget", "withdraw"})
_MARGIN_MS = 60_000


class Record(NamedTuple):
    """Who leads, or led last, as it stands in Redis."""

    node: str
    term: int
    until: int

    def leads(self, now: int) -> bool:
        """Whether it leads now. A time that lies too far ahead is of a clock that was set back."""
        return now < self.until <= now + _MARGIN_MS


class Terms:
    """Watches calls.

    Attributes:
        leaders: the node of each term there was.
        made: for each queue the jobs that firings became, in order, each once.
        refused: how many writes were.
    """

    def __init__(self, client: redis.Redis, c: ClusterKeys) -> None:
        self._client, self._c = client, c
        self.leaders: dict[int, str] = {}
        self.made: dict[str, list[str]] = {}
        self.refused = 0
        self._highest: dict[str, int] = {}

    def record(self) -> Record:
        """Who leads, or led last."""
        node, term, until = self._client.hmget(self._c.fixed("leader"), "node", "term", "until")
        return Record((node or b"").decode(), int(term or 0), int(until or 0))

    def judge(self, command: Command[Any], said: dict[str, Any], now: int, call: Callable[[], Any]) -> Any:
        """Do the call, and compare its answer with what the record said before."""
        before, name = self.record(), command.script.name
        reply = call()
        if name in LOST and said["term"] != "":
            who = str(said.get("node") or said["by"]), int(said["term"])
            holds = who == before[:2] and now < before.until
            assert LOST[name](reply) == (not holds), f"{name} of {who} at {now}, of which the record says {before}"
            self.refused += not holds
        elif name in QUEUED:
            self._written(command.keys[0], said["term"], now, reply)
            if name == "receive" and reply[0] != b"lost":
                self._received(command.keys[0], reply)
        elif name == "pulse":
            self._elected(before, self.record(), now)
        return reply

    def _elected(self, before: Record, after: Record, now: int) -> None:
        if after[:2] == before[:2]:
            return
        assert not before.leads(now), f"{after} at {now} beside {before}"
        assert after.term > max(self.leaders, default=0)
        self.leaders[after.term] = after.node

    def _written(self, prefix: str, term: int | str, now: int, reply: list[bytes]) -> None:
        highest = self._highest.get(prefix, 0)
        late = term != "" and int(term) < highest <= now + _MARGIN_MS
        assert (reply[0] == b"lost") == late, f"{term} after {highest}"
        self.refused += late
        if term != "" and not late:
            self._highest[prefix] = int(term)

    def _received(self, prefix: str, reply: list[bytes]) -> None:
        made = self.made.setdefault(prefix, [])
        for word, rest in zip(reply[1::2], reply[2::2], strict=True):
            if word == b"fired" and rest.decode() not in made:
                made.append(rest.decode())
