"""One queue whose jobs have keys, its clock, and what those who use it know: workers, numbers that were said, tokens of
reservations, unique keys.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from taskq import commands
from taskq.commands import Command
from taskq.keys import QueueKeys
from tests.lua.keyspace import Dump, Keyspace
from tests.simulation.turns.lanes import gates_of
from tests.simulation.turns.owners import Owners
from tests.simulation.turns.said import Said

T0 = 1_800_000_000_000
LEASE_MS = 8_000
TARGETED = ("async;target=web", "async;label.x=1;target=web")
NARROW = ("async;label.x=1", *TARGETED)
FREE = {"async": 3, "thread": 1}
TASKS = ("t", "t", "u", "v")
GROUPS = ("-", "-", "acme", "beta", "gamma")
#: Gate name → what it may be limited to.
LIMITS = {
    "one": ("c=1",),
    "few": ("c=2", "c=3", "c=1"),
    "rate": ("r=3/1000/1", "r=3/1000/2"),
    "both": ("c=2 r=10/1000/2",),
    "tenant": ("c=1", "c=2"),
}
# TTLs are of the server's time, not of ours: what has one lives as long as a history.
_LINGER = """
for i = 1, #KEYS do
  if redis.call('PTTL', KEYS[i]) > 0 then redis.call('PEXPIRE', KEYS[i], 3600000) end
end
"""
_RATES = ("rate", "both", "few", "queue", "*t", "*u")


@dataclass
class Worker:
    """One worker, as it sees itself: what it runs, and what it was offered until when."""

    id: str
    narrow: tuple[str, ...] = ()
    request: int = 0
    table: dict[str, int] = field(default_factory=dict)
    offers: dict[str, tuple[int, int]] = field(default_factory=dict)

    def held(self) -> dict[str, int]:
        return {id: epoch for id, (epoch, _) in self.offers.items()} | self.table


class World:
    """One history.

    Args:
        run: calls a command.
        client: looks at the keyspace.
        q: the queue.
        draw: where all chance comes from.

    Attributes:
        before: what stood there before this step, where the step is watched.
        starts: gate → when jobs began, and how much of its rate each took.
        held_when_lowered: how many held a slot of a gate when its numbers last changed: so many may go on.
        tokens: of each reservation its key, until when it can be bound, and once bound its content and job.
    """

    def __init__(self, run: Callable[[Command[Any]], Any], client: Any, q: QueueKeys, draw: random.Random) -> None:
        client.flushall()
        self.run, self.client, self.q, self.draw = run, client, q, draw
        self.now, self.names = T0, 0
        self.keyspace = Keyspace(client, q)
        self.workers: list[Worker] = []
        code = {name: draw.choice(texts) for name, texts in LIMITS.items()}
        client.hset(q.fixed("limits"), mapping=code)
        self.said = Said(code)
        self.is_paused = False
        self.before: Dump | None = None
        self._seen: Dump | None = None
        self.starts: dict[str, deque[tuple[int, int]]] = {}
        self.held_when_lowered: dict[str, int] = {}
        self.tokens: dict[str, dict[str, Any]] = {}
        self.owners = Owners(self.record)
        self.calls: Counter[str] = Counter()

    def do(self, operation: str, *args: Any, **options: Any) -> Any:
        self.calls[operation] += 1
        self._seen = None
        try:
            return self.run(getattr(commands, operation)(self.q, *args, now=self.now, **options))
        finally:
            names = [self.q.rate(name) for name in _RATES] + [self.q.unique(key) for key in self.owners.by_key]
            for token in self.unbound():
                names += (self.q.reservation(token), self.q.reserved(self.tokens[token]["key"]))
            self.client.eval(_LINGER, len(names), *names)

    def look(self) -> Dump:
        """All that stands there."""
        if self._seen is None:
            self._seen = self.keyspace.dump()
        return self._seen

    def wake_up(self, classes: list[str]) -> None:
        """A worker takes the markers of these classes, and so is the one who must set them again."""
        self._seen = None
        for klass in classes:
            self.client.zpopmin(self.q.wake(klass))

    def record(self, id: str) -> dict[str, str] | None:
        found = self.client.hgetall(self.q.job(id))
        return {name.decode(): value.decode("latin1") for name, value in found.items()} or None

    def name(self) -> str:
        self.names += 1
        return f"default:{self.names}"

    def some_ids(self, number: int) -> list[str]:
        return [f"default:{self.draw.randint(1, self.names)}" for _ in range(number)] if self.names else []

    def took(self, keys: str) -> None:
        """A job with these keys was handed out."""
        for gate, cost in ({"queue": 1} | gates_of(keys)).items():
            self.starts.setdefault(gate, deque()).append((self.now, cost))

    def unbound(self) -> dict[str, dict[str, Any]]:
        """The reservations that can still be bound."""
        return {
            token: each
            for token, each in self.tokens.items()
            if each["till"] > self.now and "job" not in each and "released" not in each
        }
