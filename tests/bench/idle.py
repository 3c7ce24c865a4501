"""What a node costs that has nothing to do."""

from __future__ import annotations

import time

import redis

from tests.bench.process import children, cpu_s, node, until
from tests.bench.row import Row

SECONDS = 10.0


def rows(url: str) -> list[Row]:
    """Connections, commands a second and CPU of an idle worker process; the node's beside it."""
    with redis.Redis.from_url(url) as client, node(url) as process:
        until(lambda: client.zcard("bench:{_}:nodes") > 0)
        time.sleep(3.0)  # the start's own work is not idleness
        worker = children(process.pid)[0]
        names = [each["name"] for each in client.client_list()]
        before = _sent(client), cpu_s(worker), cpu_s(process.pid)
        time.sleep(SECONDS)
        after = _sent(client), cpu_s(worker), cpu_s(process.pid)
    return [
        Row("idle worker, connections", sum(name.startswith("taskq:worker") for name in names), "", None, "", "2"),
        Row("idle node with one worker, calls", (after[0] - before[0]) / SECONDS, "a second", None, "", "< 5"),
        Row("idle worker, CPU", 100 * (after[1] - before[1]) / SECONDS, "%", None, "", "< 1 %"),
        Row("idle node process, CPU", 100 * (after[2] - before[2]) / SECONDS, "%", None, "", ""),
    ]


def _sent(client: redis.Redis) -> int:
    """Commands that processes of taskq sent. What a script calls inside is not sent by anybody."""
    told = client.info("commandstats")
    return sum(told.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval", "bzpopmin", "ping"))
