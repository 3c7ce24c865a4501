"""The floor of tests/cluster/test_whose_turn.py: nodes of several kinds that serve queues of every shard, and what the
ledger says of the jobs that ran: how many at once, how many within a second, where.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from click.testing import CliRunner

from taskq.cli.main import cli
from tests.chaos.conserve import Snapshot
from tests.cluster.rig import Rig
from tests.cluster.shards import Shards
from tests.fleet import Node
from tests.ledger import most_at_once
from tests.waiting import wait_until

#: What stands only while somebody holds a slot, waits for one, has reserved one, or owns a key.
HELD = ("slots:", "parked:", "parks:", "reserved:", "unique:", "rate:")
ONCE = ("gates", "reservations")


class Floor:
    """Nodes on three shards.

    Attributes:
        shop: the app, its ledger, its jobs. `queues`: one a shard.
        east: two workers of zone east that have 2 gpus each. `west`: one worker with 1 gpu.
        lost: the id of a node that was killed before any test began.
        doomed: what ran on that node when it died, by queue.
    """

    def __init__(self, shop: Rig, shards: Shards, names: Sequence[str]) -> None:
        self.shop, self.shards = shop, shards
        by_shard = {shards.of(shop.q(name).prefix).port: name for name in names}
        self.queues = sorted(by_shard.values())
        assert len(self.queues) == len(shards.all)
        self.east = self._begin("-w", "2", "--label", "zone=east", "--capacity", "gpu=4")
        self.west = self._begin("-w", "1", "--label", "zone=west", "--capacity", "gpu=1")
        third = self._begin("-w", "1", "--label", "zone=north", "--capacity", "gpu=1")
        for node in (self.east, self.west, third):
            node.until_ready()
        self.lost = self._id_of(third)
        self.doomed = {queue: self.add(queue, "doomed", 3, target=self.lost) for queue in self.queues}
        wait_until(lambda: all(shop.ledger.starts(job.id) for job in self.doomed.values()), what="jobs on the third")
        third.kill()

    def _begin(self, *flags: str) -> Node:
        return self.shop.fleet.begin("-q", ",".join(self.queues), "-c", "20", *flags, TASKQ_LEASE="4s")

    def _id_of(self, node: Node) -> str:
        def found() -> list[str]:
            return [each["id"] for each in self.shop.app.inspector.nodes() if each["pid"] == node.pid]

        return wait_until(found, what="the node in the registry")[0]

    # --- jobs

    def task(self, queue: str, **options: Any) -> Any:
        """The task `turn` with options; `who` makes the keys."""
        return self.shop.shop.turn.using(queue=queue, **options)

    def add(self, queue: str, who: str, seconds: float = 0, **options: Any) -> Any:
        """One job."""
        return self.shop.enqueue(self.shop.shop.turn, who, seconds, queue=queue, **options)

    def add_many(self, queue: str, who: Iterable[str], seconds: float = 0, **options: Any) -> list[Any]:
        """One job for each name."""
        task = self.task(queue, **options)
        return self.shop.enqueue_many(task.call(each, seconds) for each in who)

    def begun(self, jobs: Iterable[Any]) -> list[str]:
        """Which of the jobs have begun, in their order."""
        ids = {job.id for job in jobs}
        return [each.job for each in sorted(self.shop.ledger.starts(), key=lambda each: each.at) if each.job in ids]

    def most_at_once(self, jobs: Iterable[Any], pids: Iterable[int] | None = None) -> int:
        """How many of them ran at the same time at most, in those processes."""
        ids, wanted = {job.id for job in jobs}, None if pids is None else set(pids)
        entries = self.shop.ledger.entries()
        return most_at_once(each for each in entries if each.job in ids and (wanted is None or each.pid in wanted))

    def pids(self, jobs: Iterable[Any]) -> set[int]:
        """Where they ran."""
        ids = {job.id for job in jobs}
        return {each.pid for each in self.shop.ledger.starts() if each.job in ids}

    # --- queues that no node serves, so that each job stands where it was put: for those who claim themselves

    def elsewhere(self, word: str) -> list[str]:
        """Names that begin with a word, one a shard."""
        by_shard = {self.shards.of(self.shop.q(name).prefix).port: name for name in (f"{word}-{n}" for n in range(30))}
        assert len(by_shard) == len(self.shards.all)
        return sorted(by_shard.values())

    def one_by_one(self, queue: str) -> list[str]:
        """All that may run of a queue, in the order in which it is given out and done."""
        client, found = self.shop.app.client, []
        while claimed := client.claim(queue, worker="ext-one", limit=1):
            found.append(claimed[0].id)
            client.complete(claimed[0].token)
        return found

    def why(self, job: Any) -> dict[str, Any]:
        """What `taskq job why` writes of it."""
        words = ["--url", self.shards.url, "--namespace", self.shop.namespace, "job", "why", job.id, "--json"]
        result = CliRunner().invoke(cli, words)
        assert result.exit_code == 0, result.output
        told: dict[str, Any] = json.loads(result.stdout)
        return told

    def wait_ms(self, queue: str, ms: int) -> None:
        """Until so much has passed on the server that has a queue."""
        client = self.shards.of(self.shop.q(queue).prefix).client

        def now_ms() -> int:
            seconds, micros = client.time()
            return int(seconds * 1000 + micros // 1000)

        over = now_ms() + ms
        wait_until(lambda: now_ms() > over, what=f"{ms} ms of the server's time")

    # --- what is held

    def held(self, queue: str) -> dict[str, int]:
        """What stands in a queue for somebody who holds, waits, has reserved, or owns: its TTL in ms, by name."""
        seen = Snapshot(self.shards.of(self.shop.q(queue).prefix).client, self.shop.q(queue))
        return {name: ttl for name, ttl in seen.ttls.items() if name.startswith(HELD) or name in ONCE}
