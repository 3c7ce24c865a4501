"""Three shards in cluster mode, as an operator would make them, and what operators do: kill, stop, move a slot.

No redis-cli: each step is a command on a plain connection. The shards keep append-only files, and go on alone
(`cluster-require-full-coverage no`), as docs/topologies.md tells operators to configure them.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from taskq.connection.cluster import SLOTS, slot_of
from taskq.embedded import Embedded
from tests.ports import cluster_port
from tests.waiting import wait_until

NODE_TIMEOUT_MS = 2_000
_KEYS_A_STEP = 20


class Shard:
    """One node of the cluster."""

    def __init__(self, folder: Path, binary: str | None) -> None:
        config = {
            "cluster-enabled": "yes",
            "cluster-node-timeout": NODE_TIMEOUT_MS,
            "cluster-require-full-coverage": "no",
            "appendfsync": "no",  # written before it is answered, so it is there after a kill, however slow the disk
        }
        self.server = Embedded(dir=folder, port=cluster_port(), binary=binary, config=config, appendonly=True)

    def start(self) -> None:
        """Start it; after `kill` it comes back with its data and its part in the cluster."""
        self.server.start()
        self.client = redis.Redis.from_url(self.server.url)
        self.id: str = self.client.execute_command("CLUSTER MYID").decode()

    def start_elsewhere(self) -> None:
        """Start it at another address, as after a move to another machine."""
        self.server.port = cluster_port()
        self.start()

    @property
    def port(self) -> int:
        assert self.server.port is not None
        return self.server.port

    def stop(self) -> None:
        """SIGSTOP: it swallows what is sent."""
        assert self.server.pid is not None
        os.kill(self.server.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        if self.server.pid is not None:
            os.kill(self.server.pid, signal.SIGCONT)

    def close(self) -> None:
        """End it."""
        self.go_on()
        self.client.close()
        self.server.stop()


class Shards:
    """The cluster."""

    def __init__(self, folder: Path, binary: str | None = None, count: int = 3) -> None:
        self._folder, self._binary = folder, binary
        self.all = [Shard(folder / f"shard-{n}", binary) for n in range(count)]
        self._homes: dict[int, Shard] = {}  # of slots that were moved

    def start(self) -> Shards:
        """Start the shards, share the slots out, and introduce them to one another."""
        for shard in self.all:
            shard.start()
        size = -(-SLOTS // len(self.all))
        for number, shard in enumerate(self.all):
            shard.client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
            shard.client.execute_command("CLUSTER ADDSLOTS", *range(number * size, min(SLOTS, (number + 1) * size)))
        for shard in self.all[1:]:
            shard.client.execute_command("CLUSTER MEET", "127.0.0.1", self.all[0].port)
        wait_until(self.agreed, 20, what="a cluster")
        return self

    def agreed(self) -> bool:
        """Whether every shard knows of every other, and of all slots."""
        return all(
            (info := shard.client.execute_command("CLUSTER INFO"))["cluster_state"] == "ok"
            and info["cluster_slots_assigned"] == str(SLOTS)
            and len(shard.client.execute_command("CLUSTER SLOTS")) >= len(self.all)
            for shard in self.all
        )

    def add(self) -> Shard:
        """Give the cluster one more shard, without slots, that knows the others and is known to them on return."""
        shard = self._introduced(f"shard-{len(self.all)}")
        self.all.append(shard)
        wait_until(lambda: all(self._knows(each, shard) for each in self.all), 20, what="a shard that all know")
        return shard

    def _knows(self, one: Shard, other: Shard) -> bool:
        """Whether it has met the other, and holds the cluster for whole."""
        state: str = one.client.execute_command("CLUSTER INFO")["cluster_state"]
        return state == "ok" and other.id.encode() in _raw(one.client, "CLUSTER", "NODES")

    def _introduced(self, name: str) -> Shard:
        """A new server that has met the first shard."""
        new = Shard(self._folder / name, self._binary)
        new.start()
        new.client.execute_command("CLUSTER MEET", "127.0.0.1", self.all[0].port)
        return new

    def add_replica(self, shard: Shard) -> Shard:
        """Give a shard a replica, in sync when this returns."""
        replica = self._introduced(f"replica-{len(self.all)}")
        wait_until(lambda: shard.id.encode() in _raw(replica.client, "CLUSTER", "NODES"), 10, what="an introduction")
        wait_until(lambda: _accepts(replica.client, "CLUSTER REPLICATE", shard.id), 10, what="a replica")
        wait_until(lambda: replica.client.info("replication").get("master_link_status") == "up", 20, what="in sync")
        self.all.append(replica)
        return replica

    @property
    def url(self) -> str:
        """Where clients find it: every shard as a seed."""
        return "redis+cluster://" + ",".join(f"127.0.0.1:{shard.port}" for shard in self.all)

    def of(self, key: str) -> Shard:
        """Who serves a key, by the word of the first shard that answers."""
        for shard in self.all:
            try:
                rows = shard.client.execute_command("CLUSTER SLOTS")
            except (redis.ConnectionError, redis.TimeoutError):
                continue
            port = next(row[2][1] for row in rows if row[0] <= slot_of(key) <= row[1])
            return next(each for each in self.all if each.port == port)
        raise AssertionError("no shard answers")

    def other_than(self, shard: Shard) -> Shard:
        """Another shard."""
        return next(each for each in self.all if each is not shard)

    # --- moving a slot, key by key

    def move(self, slot: int, to: Shard) -> int:
        """Move a slot to another shard, as redis-cli would. Gives how many keys went."""
        with self.moving(slot, to) as moved:
            return sum(moved)

    def put_back(self) -> None:
        """Have each slot where it was at the start. Those who come next count on a queue at every shard."""
        for slot, home in self._homes.items():
            if not self._serves(home, slot):
                self.move(slot, home)
        self._homes.clear()

    @contextmanager
    def moving(self, slot: int, to: Shard) -> Iterator[Iterator[int]]:
        """The move in steps: each step of what this gives moves some keys; leaving the block completes the move."""
        source = next(each for each in self.all if self._serves(each, slot))
        self._homes.setdefault(slot, source)
        to.client.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", source.id)
        source.client.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", to.id)
        steps = self._steps(slot, source, to)
        yield steps
        for _ in steps:
            pass
        for shard in (to, source, *self.all):
            shard.client.execute_command("CLUSTER SETSLOT", slot, "NODE", to.id)

    def _steps(self, slot: int, source: Shard, to: Shard) -> Iterator[int]:
        while keys := source.client.execute_command("CLUSTER GETKEYSINSLOT", slot, _KEYS_A_STEP):
            source.client.execute_command("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", *keys)
            yield len(keys)

    def _serves(self, shard: Shard, slot: int) -> bool:
        rows: list[Any] = shard.client.execute_command("CLUSTER SLOTS")
        return any(row[0] <= slot <= row[1] and row[2][1] == shard.port for row in rows)

    def close(self) -> None:
        """End all."""
        for shard in self.all:
            shard.close()


def _raw(client: redis.Redis, *words: str) -> bytes:
    """A reply that the library would make something of."""
    connection = client.connection_pool.get_connection()
    try:
        connection.send_command(*words)
        reply: bytes = connection.read_response()
        return reply
    finally:
        client.connection_pool.release(connection)


def _accepts(client: redis.Redis, *words: str) -> bool:
    try:
        client.execute_command(*words)
    except redis.ResponseError:
        return False
    return True


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port: int = line.getsockname()[1]
        return port
