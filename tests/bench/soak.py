"""`make soak`: a node with two workers under a mixed load, and whether anybody's memory grows.

Sampled are the private memory of node, workers and producer, and the server's `used_memory`. The rate is bounded, so
that a machine does other things beside it. Ends with 1 if something grows, or if the load wasn't served.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping

import redis
from rich.console import Console
from rich.table import Table

from taskq import TaskQ
from taskq.embedded import Embedded
from tests.bench.__main__ import CONFIG
from tests.bench.process import children, environment, memory_bytes, node, until
from tests.bench.verdict import Verdict, verdict

WORKERS = 2
SAMPLES = 180
LATE_MAX = 1000


def main() -> int:
    """Soaks, and tells."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=200.0, help="jobs a second")
    asked = parser.parse_args()
    with Embedded(port=0, config=CONFIG) as server:
        samples = _soak(server.url, asked.minutes * 60, asked.rate)
    return _tell(samples)


def _soak(url: str, seconds: float, rate: float) -> dict[str, list[tuple[float, float]]]:
    samples: dict[str, list[tuple[float, float]]] = {}
    app = TaskQ(url, namespace="soak")
    err = Console(stderr=True, highlight=False, soft_wrap=True)
    with (
        redis.Redis.from_url(url) as client,
        node(url, "-w", str(WORKERS), app="tests.bench.soak_app", log_level="critical") as process,
    ):
        until(lambda: client.zcard("soak:{_}:nodes") > 0)
        load = subprocess.Popen([sys.executable, "-m", "tests.bench.soak_load", str(rate)], env=environment(url))
        try:
            start, next_s = time.monotonic(), 0.0
            while (at := time.monotonic() - start) < seconds:
                if load.poll() is not None:
                    raise RuntimeError(f"the load ended with {load.returncode}")
                for what, value in _look(client, process.pid, load.pid).items():
                    samples.setdefault(what, []).append((at, value))
                if len(samples["server"]) % 18 == 1:
                    now = ", ".join(f"{what} {row[-1][1] / 1e6:,.1f} MB" for what, row in samples.items())
                    err.print(f"  {at:5.0f} s: {now}; {_counts(app)}")
                next_s += seconds / SAMPLES
                time.sleep(max(0.0, start + next_s - time.monotonic()))
        finally:
            load.kill()
            load.wait()
        left = app.queue("default").counts().available
        app.close()
        if left > LATE_MAX:
            raise RuntimeError(f"the load was not served: {left} jobs wait")
    return samples


def _look(client: redis.Redis, node_pid: int, load_pid: int) -> dict[str, int]:
    workers = {f"worker {place}": memory_bytes(pid) for place, pid in enumerate(sorted(children(node_pid)), 1)}
    used = int(client.info("memory")["used_memory"])
    return {"node": memory_bytes(node_pid), **workers, "producer": memory_bytes(load_pid), "server": used}


def _counts(app: TaskQ) -> str:
    told = [(name, app.queue(name).counts()) for name in ("default", "slow", "threads")]
    return "; ".join(f"{name}: {each.available} wait, {each.completed} completed" for name, each in told)


def _tell(samples: Mapping[str, list[tuple[float, float]]]) -> int:
    table = Table("memory, MB", "first third", "middle", "last third", "trend, MB/h", "verdict", title="taskq soak")
    found: dict[str, Verdict] = {what: verdict(row) for what, row in samples.items()}
    for what, each in found.items():
        thirds = [f"{value / 1e6:,.2f}" for value in each.thirds]
        word = "growing" if each.is_growing else "flat"
        table.add_row(what, *thirds, f"{each.an_hour / 1e6:+,.2f}", word)
    Console(width=110).print(table)
    return int(any(each.is_growing for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
