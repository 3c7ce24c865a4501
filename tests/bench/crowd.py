"""The drain under other circumstances: a longer way to the server, thousands of idle clients, two workers.

Each beside the plain drain of the same run. On a machine of two cores the worker, the server and a proxy have to share
them, so the second worker shows what is left and no more.
"""

from __future__ import annotations

import resource
import socket
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import redis

from tests.bench.drain import Drained, drain
from tests.bench.process import environment
from tests.bench.row import Row

ADDED_MS = 1.0
IDLE = 10_000
JOBS = 20_000
TURNS = 3


def far(url: str) -> list[Row]:
    """Through the same proxy, with and without delay: what is compared is the way alone."""
    with _delayed(url, ADDED_MS) as slow, _delayed(url, 0) as quick:
        late, plain = _in_turns(
            lambda: drain(url, jobs=JOBS, through=slow), lambda: drain(url, jobs=JOBS, through=quick)
        )
    return [Row(f"drain, {ADDED_MS:g} ms further away", late.rate, "jobs/s", plain.rate, "same proxy, 0 ms", "≥ 0.70")]


def crowd(url: str) -> list[Row]:
    """Beside clients that are connected and silent."""

    def crowded() -> Drained:
        with _idle(url):
            return drain(url, jobs=JOBS)

    among, plain = _in_turns(crowded, lambda: drain(url, jobs=JOBS))
    return [Row(f"drain beside {IDLE:,} idle clients", among.rate, "jobs/s", plain.rate, "none", "≥ 0.95")]


def two(url: str) -> list[Row]:
    """Two worker processes beside one, and what each makes of the server."""
    both, one = _in_turns(lambda: drain(url, jobs=JOBS, workers=2), lambda: drain(url, jobs=JOBS))
    return [
        Row("drain, two worker processes", both.rate, "jobs/s", one.rate, "one", ""),
        Row("Redis' CPU, two worker processes", 100 * both.redis_share, "%", 100 * one.redis_share, "% one", "≥ 90 %"),
    ]


def _in_turns(one: Callable[[], Drained], other: Callable[[], Drained]) -> tuple[Drained, Drained]:
    """The medians of both, measured in turns, so that what else the machine does strikes both."""
    pairs = [(one(), other()) for _ in range(TURNS)]
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    return _median(first), _median(second)


def _median(runs: list[Drained]) -> Drained:
    return Drained(*(statistics.median(column) for column in zip(*runs, strict=True)))


@contextmanager
def _delayed(url: str, added_ms: float) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.bench.delay", str(urlsplit(url).port), str(added_ms)]
    proxy = subprocess.Popen(command, env=environment(url), stdout=subprocess.PIPE, text=True)
    try:
        assert proxy.stdout is not None
        yield f"redis://127.0.0.1:{int(proxy.stdout.readline())}/0"
    finally:
        proxy.kill()
        proxy.wait()


@contextmanager
def _idle(url: str) -> Iterator[None]:
    """So many connections, each of which has spoken once."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with redis.Redis.from_url(url) as client:
        client.config_set("maxclients", IDLE + 500)
        lines = [socket.create_connection(("127.0.0.1", urlsplit(url).port or 6379)) for _ in range(IDLE)]
        try:
            for line in lines:
                line.sendall(b"PING\r\n")
            for line in lines:
                assert line.recv(7) == b"+PONG\r\n"
            yield
        finally:
            for line in lines:
                line.close()
