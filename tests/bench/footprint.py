"""Bytes of a queued job, and of a worker process; the time of `import taskq`."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile

import redis

from taskq import TaskQ
from tests.bench.process import children, environment, memory_bytes, node, until
from tests.bench.row import Row

JOBS = 50_000
_ASYNCIO = "import asyncio"


def rows(url: str) -> list[Row]:
    """Memory and import time."""
    bare = _import_ms("import asyncio")
    return [
        Row("memory of a queued job, 200-byte payload", _queued(url), "bytes", None, "", "650"),
        Row("worker process, private memory", _worker(url) / 1e6, "MB", None, "", "40"),
        Row("import taskq", _import_ms("import taskq"), "ms CPU", bare, _ASYNCIO, "50"),
        Row(
            "the same and its first use",
            _import_ms("import taskq; taskq.TaskQ"),
            "ms CPU",
            bare,
            _ASYNCIO,
        ),
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


def _import_ms(code: str) -> float:
    """What the imports cost beyond the bare interpreter: CPU, as time would say more of the machine's other work.

    Compiled once beforehand, as an installed package is; without redis, which is imported at the first call.
    """
    code += "; import sys; assert 'redis' not in sys.modules"
    with tempfile.TemporaryDirectory() as cache:
        env = environment("") | {"PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
        _cpu_ms(code, env)
        return min(_cpu_ms(code, env) for _ in range(10)) - min(_cpu_ms("import sys", env) for _ in range(10))


def _cpu_ms(code: str, env: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
