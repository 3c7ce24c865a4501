"""How soon a job runs: on an idle worker beside a bare LPUSH → BLPOP, and when it was scheduled for a time."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import redis

from taskq import TaskQ
from tests.bench.process import environment, node, until
from tests.bench.row import Row

ROUNDS = 400
SCHEDULED = 200

_POPPER = """
import os, sys, time, redis
client = redis.Redis.from_url(os.environ["TASKQ_URL"], protocol=2, socket_timeout=30)
client.set("bench:ready", 1)
for _ in range(int(sys.argv[1])):
    sent = int(client.blpop("bench:list", 20)[1])
    client.rpush("bench:seen", time.monotonic_ns() - sent)
"""


def rows(url: str) -> list[Row]:
    """Median and 99th percentile of both, and the lateness of scheduled jobs."""
    bare = _bare(url)
    ours, late = _ours(url)
    return [
        Row("enqueue → running, p50", _at(ours, 50), "ms", _at(bare, 50), "ms LPUSH → BLPOP", "≤ 1.25"),
        Row("enqueue → running, p99", _at(ours, 99), "ms", _at(bare, 99), "ms LPUSH → BLPOP", "≤ 1.25"),
        Row("lateness of scheduled jobs, p99", _at(late, 99), "ms", None, "", "10 ms"),
    ]


def _at(values_ms: list[float], percent: int) -> float:
    return statistics.quantiles(values_ms, n=100)[percent - 1]


def _bare(url: str) -> list[float]:
    with redis.Redis.from_url(url, protocol=2) as client:
        popper = subprocess.Popen([sys.executable, "-c", _POPPER, str(ROUNDS)], env=environment(url))
        until(lambda: client.exists("bench:ready"))
        for number in range(ROUNDS):
            time.sleep(0.01)
            client.lpush("bench:list", time.monotonic_ns())
            until(lambda n=number: client.llen("bench:seen") > n, every_s=0.002)  # type: ignore[misc]
        popper.wait(timeout=30)
        seen = [int(each) / 1e6 for each in client.lrange("bench:seen", 0, -1)]
        client.flushall()
    return seen


def _ours(url: str) -> tuple[list[float], list[float]]:
    app = TaskQ(url, namespace="bench")
    stamp = app.by_name("tests.bench.app.stamp", queue="default")
    with redis.Redis.from_url(url, protocol=2) as client, node(url):
        until(lambda: client.zcard("bench:{_}:nodes") > 0)
        stamp.enqueue(time.monotonic_ns()).result(timeout=30)
        seen = []
        for _ in range(ROUNDS):
            time.sleep(0.01)
            job = stamp.enqueue(time.monotonic_ns())
            until(lambda job=job: client.zscore("bench:{default}:completed", job.id), every_s=0.002)  # type: ignore[misc]
            seen.append(job.result(timeout=30) / 1e6)
        jobs = [stamp.using(delay=0.5 + 0.01 * number).enqueue(0) for number in range(SCHEDULED)]
        late = []
        for job in jobs:
            job.join(timeout=30)
            job.refresh()
            record = job.to_dict()
            late.append(_ms(record["started_at"]) - _ms(record["scheduled_at"]))
    app.close()
    return seen, late


def _ms(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp() * 1000
