"""Ports for servers in cluster mode: clients come to one, the other servers to that 10,000 above it, the cluster's bus.

Redis 6.2 can't be told of another (`cluster-port` came with 7.0), so no server is. Both lie below what the system gives
to whoever asks for any port.
"""

from __future__ import annotations

import random
import socket

BUS = 10_000
_RANGE = (20_000, 22_700)


def cluster_port() -> int:
    """A port that is free, as is its bus's."""
    chance = random.SystemRandom()  # tests are seeded, and run beside one another
    while True:
        port = chance.randint(*_RANGE)
        if _is_free(port) and _is_free(port + BUS):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as line:
        try:
            line.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
