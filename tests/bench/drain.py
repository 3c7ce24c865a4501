"""Draining no-op jobs with one worker process at default settings, and Redis' share of it."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any, NamedTuple

import redis

from taskq import TaskQ
from tests.bench.process import children, environment, node, until
from tests.bench.row import Row

JOBS = 40_000
NAPS = 2_000


def rows(url: str) -> list[Row]:
    """The drain beside the bare loop, Redis' CPU for a job, and jobs that wait beside the ideal."""
    bare = _bare(url)
    ours = drain(url)
    again = _bare(url)
    nap_s = NAPS / drain(url, "nap", NAPS).rate
    ideal_s = NAPS * 0.05 / 100
    return [
        Row("drain, one worker process", ours.rate, "jobs/s", (bare + again) / 2, "bare loop", "≥ 0.70"),
        Row("Redis CPU for a drained job", ours.redis_us, "µs", None, "", "≤ 25 µs"),
        Row(f"{NAPS} jobs of 50 ms at concurrency 100", nap_s, "s", ideal_s, "s ideal", "≤ 1.10"),
    ]


def _bare(url: str) -> float:
    command = [sys.executable, "-m", "tests.bench.bare", str(JOBS)]
    told = subprocess.run(command, env=environment(url), check=True, capture_output=True, text=True)
    with redis.Redis.from_url(url) as client:
        client.flushall()
    return float(told.stdout)


class Drained(NamedTuple):
    """Jobs a second, and the server's CPU: µs a job, and its share of the time."""

    rate: float
    redis_us: float
    redis_share: float


def drain(url: str, task: str = "noop", jobs: int = JOBS, *, through: str | None = None, workers: int = 1) -> Drained:
    """Fills a paused queue, starts a node, and takes the time from resume to end. `through`: the node's own way."""
    app = TaskQ(url, namespace="bench")
    with redis.Redis.from_url(url) as client:
        client.flushall()
        call = app.by_name(f"tests.bench.app.{task}", queue="default").call
        app.enqueue_many([call() for _ in range(jobs)])
        app.queue("default").pause()
        with node(through or url, "-w", str(workers)) as process:
            until(lambda: len(children(process.pid)) == workers and _ready(client, workers))
            time.sleep(0.5)  # past the start of the interpreter: what is measured is the drain
            cpu = _cpu_s(client)
            start = time.perf_counter()
            app.queue("default").resume()
            until(lambda: client.zcard("bench:{default}:completed") >= jobs)
            elapsed = time.perf_counter() - start
            used = _cpu_s(client) - cpu
        client.flushall()
    app.close()
    return Drained(jobs / elapsed, used / jobs * 1e6, used / elapsed)


def _ready(client: Any, workers: int) -> bool:
    """Whether as many workers have connected: each names its connections, two of them."""
    if client.zcard("bench:{_}:nodes") == 0:
        return False
    return sum(each["name"].startswith("taskq:worker") for each in client.client_list()) >= 2 * workers


def _cpu_s(client: Any) -> float:
    told = client.info("cpu")
    return float(told["used_cpu_user"] + told["used_cpu_sys"])
