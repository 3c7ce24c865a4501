"""What nodes cost that have nothing to do: one of them, and each further one of many."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import NamedTuple

import redis

from tests.bench.process import children, cpu_s, node, until
from tests.bench.row import Row

SECONDS = 10.0
FEW, MORE, MANY = 2, 6, 50  # the slope is taken between the first two, and drawn out to the third
LONGER_S = 20.0  # what nodes do every 10 s is in it as often as it should


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


def many(url: str) -> list[Row]:
    """What idle nodes send together, each with a worker, and what the server counts for it."""
    with redis.Redis.from_url(url) as client, ExitStack() as nodes:
        found = {}
        for number in (FEW, MORE):
            while client.zcard("bench:{_}:nodes") < number:  # one by one: their starts are the dearest
                known = client.zcard("bench:{_}:nodes")
                nodes.enter_context(node(url))
                until(lambda known=known: client.zcard("bench:{_}:nodes") > known)
            time.sleep(5.0)
            before = _counted(client)
            time.sleep(LONGER_S)
            found[number] = _counted(client).since(before, LONGER_S)
    few, more = found[FEW], found[MORE]
    each = [(high - low) / (MORE - FEW) for low, high in zip(few, more, strict=True)]
    sent, processed, cpu = (high + slope * (MANY - MORE) for high, slope in zip(more, each, strict=True))
    return [
        Row(f"calls of an idle node more, of {FEW} to {MORE}", each[0], "a second", None, "", ""),
        Row(f"{MANY} idle nodes by that, calls", sent, "a second", None, "", "< 300"),
        Row("the same, total_commands_processed", processed, "a second", sent, "calls", ""),
        Row("the same, the server's CPU", 100 * cpu, "%", None, "", ""),
    ]


class _Counted(NamedTuple):
    """What a server has counted so far, or in a second."""

    sent: float
    processed: float
    cpu_s: float

    def since(self, before: _Counted, seconds: float) -> _Counted:
        return _Counted(*((now - then) / seconds for now, then in zip(self, before, strict=True)))


def _counted(client: redis.Redis) -> _Counted:
    told = client.info("everything")
    cpu = told["used_cpu_user"] + told["used_cpu_sys"]
    return _Counted(_sent(client), told["total_commands_processed"], cpu)


def _sent(client: redis.Redis) -> int:
    """Commands that processes of taskq sent. What a script calls inside is not sent by anybody."""
    told = client.info("commandstats")
    return sum(told.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval", "bzpopmin", "ping"))
