"""A queue under test: seed it, call one script with a given time, look at everything that changed.

`do` calls a command with this queue and this time; `changed` tells what differs since the last look, after checking
what holds for every call: each change of state was told in `events`, and totals and minutes of `stats` agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import redis

from taskq import commands, scripts
from taskq.commands import Claimed, Command, NewJob
from taskq.keys import QueueKeys
from tests.lua.keyspace import Dump, Keyspace, changes

#: The start of a minute: the 30,000,000th.
T0 = 1_800_000_000_000
LEASE_MS = 8_000

# Every redis.call of a script, counted by command, as a pair in front of its reply.
_COUNTED = """
local server, counts, order = redis, {{}}, {{}}
local function counting(call)
  return function(name, ...)
    if not counts[name] then
      counts[name] = 0
      order[#order + 1] = name
    end
    counts[name] = counts[name] + 1
    return call(name, ...)
  end
end
local redis = {{ call = counting(server.call), pcall = counting(server.pcall) }}
local function script()
{source}
end
local reply = script()
local answer = {{}}
for _, name in ipairs(order) do
  answer[#answer + 1] = name
  answer[#answer + 1] = counts[name]
end
return {{ reply, answer }}
"""


def new(
    name: str,
    *,
    task: str = "t",
    token: str = "",
    executor: str = "async",
    priority: int = 0,
    due: str = "",
    expires: str = "",
    lane: str = "",
    once: str = "",
    needs: str = "",
    **fields: str | int | bytes,
) -> NewJob:
    """A job of the queue `default`, named after what follows the colon of its id."""
    return NewJob(f"default:{name}", token, task, executor, priority, due, expires, fields, lane, once, needs)


class Room:
    """One queue, one clock."""

    def __init__(self, client: redis.Redis, q: QueueKeys) -> None:
        self.client = client
        self.q = q
        self.now = T0
        self.keyspace = Keyspace(client, q)
        self.seen: Dump = {}
        self.told: dict[str, list[str]] = {}
        self._requests: Counter[str] = Counter()

    def run(self, command: Command[Any]) -> Any:
        """Calls a command as it is."""
        return command.read(self.client.eval(command.script.source, len(command.keys), *command.keys, *command.args))

    def do(self, operation: Callable[..., Command[Any]], *args: Any, **options: Any) -> Any:
        """Calls an operation on this queue, now."""
        return self.run(operation(self.q, *args, now=self.now, **options))

    def raw(self, script: str, *args: str | int) -> Any:
        """Calls a script with arguments that no command would make."""
        loaded = scripts.load(script)
        return self.run(Command(loaded, self.q.listed(loaded.keys), list(args), lambda reply: reply))

    def count(self, command: Command[Any]) -> tuple[Any, Counter[str]]:
        """Calls a command, and counts what its script asks of the server."""
        source = _COUNTED.format(source=command.script.source)
        reply, counted = self.client.eval(source, len(command.keys), *command.keys, *command.args)
        return command.read(reply), Counter(
            {name.decode(): n for name, n in zip(counted[::2], counted[1::2], strict=True)}
        )

    # --- what tests do all the time

    def add(self, *names: str, **options: Any) -> None:
        """Enqueues jobs that differ in nothing but their name."""
        self.do(commands.enqueue, [new(name, **options) for name in names])

    def claim(
        self, worker: str = "n.1", limit: int = 100, free: Mapping[str, int] | None = None, **options: Any
    ) -> list[Claimed]:
        """The next claim of a worker; it must be answered with `ok`."""
        self._requests[worker] += 1
        claim = self.do(
            commands.claim,
            worker=worker,
            request=self._requests[worker],
            lease_ms=LEASE_MS,
            limit=limit,
            free=free or {"async": 100, "thread": 100},
            **options,
        )
        assert claim.word == "ok"
        jobs: list[Claimed] = claim.jobs
        return jobs

    def held(self, name: str = "a", worker: str = "n.1", **options: Any) -> int:
        """Adds one job and claims it; its epoch."""
        self.add(name, **options)
        (job,) = self.claim(worker)
        assert job.id == f"default:{name}"
        epoch: int = job.epoch
        return epoch

    def job(self, name: str = "a") -> dict[str, Any] | None:
        """A record, as the dump shows it."""
        return self.keyspace.dump().get(f"job:default:{name}")  # type: ignore[return-value]

    def watched(self) -> None:
        """Reaps until it isn't quiet any more, so that the next reap takes what has expired."""
        self.do(commands.reap, lease_ms=LEASE_MS)
        for _ in range(3 * LEASE_MS // 2000):
            self.now += 2000
            self.do(commands.reap, lease_ms=LEASE_MS)

    # --- looking

    def look(self) -> None:
        """From here on `changed` tells. Everybody is asleep: the markers were taken."""
        for marker in self.client.scan_iter(self.q.wake("*")):
            self.client.delete(marker)
        self.changed()

    def changed(self) -> dict[str, Any]:
        """What differs since the last look, without `stats` and `events`; those are checked against it."""
        before, after = self.seen, self.keyspace.dump()
        self.seen, self.told = after, self.keyspace.events()
        differ = changes(before, after)
        self._check_told(differ)
        self._check_stats(after)
        return {row: value for row, value in differ.items() if not row.startswith("stats")}

    def _check_told(self, differ: dict[str, Any]) -> None:
        for row, state in differ.items():
            name, _, field = row.rpartition(" ")
            if field == "state" and state is not None:
                assert name.removeprefix("job:") in self.told.get(state, ()), f"{name} -> {state} is not in events"

    @staticmethod
    def _check_stats(found: Dump) -> None:
        minutes: Counter[str] = Counter()
        for name, value in found.items():
            if name.startswith("stats:") and isinstance(value, dict):
                minutes.update({field: int(n) for field, n in value.items()})
        totals = found.get("stats", {})
        assert isinstance(totals, dict)
        assert {field: int(n) for field, n in totals.items() if n != "0"} == {k: n for k, n in minutes.items() if n}
