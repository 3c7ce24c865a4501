"""A primary, two replicas and three sentinels, and what becomes of them: killed, stopped, cut off, demoted.

Configured as docs/topologies.md says: `min-replicas-to-write` keeps a primary without replicas from taking writes.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import redis

from taskq.embedded import Embedded, find_binary
from taskq.tied import tied
from tests.cluster.shards import free_port
from tests.waiting import wait_until

MASTER = "main"
DOWN_AFTER_MS = 1_000
FAILOVER_TIMEOUT_MS = 5_000
_CONFIG = """
port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor {master} 127.0.0.1 {primary} 2
sentinel down-after-milliseconds {master} {down_after_ms}
sentinel failover-timeout {master} {failover_timeout_ms}
sentinel parallel-syncs {master} 2
"""


class Site:
    """The servers.

    Attributes:
        servers: the primary first, as it was at the start.
        sentinels: ports. `processes`: theirs.
    """

    def __init__(self, folder: Path, binary: str | None = None, *, least_replicas: int = 1) -> None:
        self._folder = folder
        self._binary = binary or find_binary()
        config = {
            "min-replicas-to-write": least_replicas,
            "min-replicas-max-lag": 10,
            "repl-diskless-sync-delay": 0,
            "repl-ping-replica-period": 1,
        }
        self.servers = [
            Embedded(dir=folder / f"server-{n}", port=0, binary=binary, appendonly=True, config=config)
            for n in range(3)
        ]
        self.clients: list[redis.Redis] = []
        self.sentinels: list[int] = []
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> Site:
        """Start all, and wait until the sentinels know the replicas and one another."""
        for server in self.servers:
            server.start()
            self.clients.append(redis.Redis.from_url(server.url))
        primary = self.servers[0].port
        assert primary is not None
        for client in self.clients[1:]:
            client.replicaof("127.0.0.1", primary)
        wait_until(lambda: self.clients[0].info("replication")["connected_slaves"] == 2, 20, what="two replicas")
        wait_until(lambda: all(self._in_sync(each) for each in self.clients[1:]), 20, what="replicas in sync")
        for number in range(3):
            self._start_sentinel(number, primary)
        wait_until(self._settled, 20, what="sentinels that know all")
        return self

    def _in_sync(self, client: redis.Redis) -> bool:
        found: str = client.info("replication")["master_link_status"]
        return found == "up"

    def _start_sentinel(self, number: int, primary: int) -> None:
        folder = self._folder / f"sentinel-{number}"
        folder.mkdir()
        port = free_port()
        (folder / "sentinel.conf").write_text(
            _CONFIG.format(
                port=port,
                folder=folder,
                master=MASTER,
                primary=primary,
                down_after_ms=DOWN_AFTER_MS,
                failover_timeout_ms=FAILOVER_TIMEOUT_MS,
            )
        )
        words = [self._binary, str(folder / "sentinel.conf"), "--sentinel"]
        with (folder / "sentinel.log").open("wb") as log:
            process = subprocess.Popen(tied(words, signal.SIGKILL), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.processes.append(process)
        self.sentinels.append(port)
        wait_until(lambda: self._answers(port), 10, what="a sentinel")

    def _answers(self, port: int) -> bool:
        try:
            return bool(self._ask(port, "MASTERS"))
        except redis.ConnectionError:
            return False

    def _settled(self) -> bool:
        records = [self._ask(port, "MASTER", MASTER) for port in self.sentinels]
        return all(
            record is not None and record[b"num-slaves"] == b"2" and record[b"num-other-sentinels"] == b"2"
            for record in (dict(zip(each[::2], each[1::2], strict=True)) for each in records)
        )

    def _ask(self, port: int, *words: str) -> Any:
        with redis.Redis(port=port, socket_timeout=2, protocol=2) as sentinel:
            return _raw(sentinel, "SENTINEL", *words)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"redis+sentinel://{','.join(f'127.0.0.1:{port}' for port in self.sentinels)}/{MASTER}/0"

    def primary(self) -> int:
        """Which server (by its number) the sentinels, all that answer, hold for the primary; -1 while they differ."""
        named = {int(self._ask(port, "GET-MASTER-ADDR-BY-NAME", MASTER)[1]) for port in self.sentinels}
        ports = [server.port for server in self.servers]
        return ports.index(named.pop()) if len(named) == 1 else -1

    def writable(self) -> int:
        """Which server says of itself that it is the primary, of those that answer and were not at the start."""
        for number, client in enumerate(self.clients[1:], 1):
            try:
                if client.execute_command("ROLE")[0] == b"master":
                    return number
            except (redis.ConnectionError, redis.TimeoutError):
                continue
        return 0

    def until_switched(self, timeout: float = 30) -> tuple[int, float]:
        """Wait until another server is the primary. Gives its number, and the monotonic time."""
        number = wait_until(self.writable, timeout, what="a new primary")
        return number, time.monotonic()

    def demoted(self) -> bool:
        """Whether the first primary says of itself that it is a replica. It hangs up on everybody as it becomes one."""
        try:
            return bool(self.clients[0].execute_command("ROLE")[0] == b"slave")
        except redis.ConnectionError:
            return False

    def fail_over(self) -> None:
        """The sentinels' own, while everything is up. The old primary stays one for some ten seconds (`demote`)."""
        self._ask(self.sentinels[0], "FAILOVER", MASTER)

    def demote(self) -> None:
        """What the sentinels do with the first primary in the end."""
        port = self.servers[self.writable()].port
        assert port is not None
        self.clients[0].replicaof("127.0.0.1", port)
        self.clients[0].execute_command("CLIENT", "KILL", "TYPE", "normal")
        wait_until(self.demoted, 10, what="a demotion")

    def signal(self, number: int, sign: int) -> None:
        """Signal one of the servers."""
        pid = self.servers[number].pid
        if pid is not None:
            os.kill(pid, sign)

    def until_whole(self, timeout: float = 40) -> None:
        """Wait until the primary has both its replicas again, and the sentinels are done."""

        def whole() -> bool:
            primary = self.primary()
            found = self.clients[primary].info("replication") if primary >= 0 else {}
            states = [each["state"] for name, each in found.items() if re.fullmatch(r"slave\d", name)]
            return states == ["online", "online"]

        wait_until(whole, timeout, what="two replicas in sync")

    def cut_replicas(self) -> None:
        """From now on the replicas have nothing new, and nothing is on its way to them."""
        for number in (1, 2):
            self.signal(number, signal.SIGSTOP)
        # Stopped ones can't come back, and what the primary had not sent yet is gone with the connections.
        wait_until(self._no_replica, 10, what="no replica")

    def _no_replica(self) -> bool:
        self.clients[0].execute_command("CLIENT", "KILL", "TYPE", "replica")
        return bool(self.clients[0].info("replication")["connected_slaves"] == 0)

    def mend_replicas(self) -> None:
        """The replicas go on."""
        for number in (1, 2):
            self.signal(number, signal.SIGCONT)

    def close(self) -> None:
        """End all."""
        for number in range(len(self.servers)):
            self.signal(number, signal.SIGCONT)
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes:
            process.wait(10)
        for client in self.clients:
            client.close()
        for server in self.servers:
            server.stop()


def _raw(client: redis.Redis, *words: str) -> Any:
    """A reply as it came: the library would make something of a sentinel's."""
    connection = client.connection_pool.get_connection()
    try:
        connection.send_command(*words)
        return connection.read_response()
    finally:
        client.connection_pool.release(connection)
