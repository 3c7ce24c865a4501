"""Bytes of a queued job, and of a worker process; the time of `import taskq`."""

from __future__ import annotations

import subprocess
import sys

import redis

from taskq import TaskQ
from tests.bench.process import children, environment, memory_bytes, node, until
from tests.bench.row import Row

JOBS = 50_000


def rows(url: str) -> list[Row]:
    """Memory and import time."""
    return [
        Row("memory of a queued job, 200-byte payload", _queued(url), "bytes", None, "", "650"),
        Row("worker process, private memory", _worker(url) / 1e6, "MB", None, "", "40"),
        Row("import taskq", _import_ms(url), "ms", None, "", "50, without redis"),
    ]


def _queued(url: str) -> float:
    app = TaskQ(url, namespace="bench")

    @app.task(name="noop")
    async def noop(text: str) -> None: ...

    with redis.Redis.from_url(url) as client:
        noop.enqueue("x")
        before = client.info("memory")["used_memory"]
        app.enqueue_many([noop.call("x" * 197) for _ in range(JOBS)])
        used = client.info("memory")["used_memory"] - before
        client.flushall()
    app.close()
    return float(used / JOBS)


def _worker(url: str) -> int:
    with redis.Redis.from_url(url) as client, node(url) as process:
        until(lambda: client.zcard("bench:{_}:nodes") > 0)
        return memory_bytes(children(process.pid)[0])


def _import_ms(url: str) -> float:
    code = (
        "import time, sys; start = time.perf_counter(); import taskq; taskq.TaskQ; "
        "took = time.perf_counter() - start; assert 'redis' not in sys.modules; print(took * 1000)"
    )
    runs = [
        float(
            subprocess.run([sys.executable, "-c", code], env=environment(url), check=True, capture_output=True).stdout
        )
        for _ in range(5)
    ]
    return min(runs)
