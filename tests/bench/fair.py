"""What keys cost the scripts, as limits and as fairness keys; and how long others wait beside a great tenant."""

from __future__ import annotations

import random
import statistics
import time

import redis

from taskq import TaskQ, commands, keys
from taskq import scripts as lua
from tests.bench.process import node, until
from tests.bench.row import Row
from tests.bench.scripts import cost_us

BACKLOG = 1_000_000
TENANTS = 999
ROUNDS = 400
KEYS = 10_000


def lanes(url: str) -> list[Row]:
    """Redis' CPU for claim and complete: a limit that doesn't bind, and 10,000 fairness keys, beside a plain lane."""
    with redis.Redis.from_url(url, protocol=2) as client:
        _load(client)
        found = []
        for lane in ("", "", "-:crm", "t%:"):  # the first only warms the server up
            client.hset(keys.queue("bench", "default").fixed("limits"), "crm", "c=1000000")
            found.append(cost_us(client, lambda n, lane=lane: lane.replace("%", str(n % KEYS))))
            client.flushall()
    _, plain, limited, fair = found
    return [
        Row("a drained job, a limit that doesn't bind", limited, "µs", plain, "µs plain", "≤ 1.25"),
        Row(f"a drained job, {KEYS:,} fairness keys", fair, "µs", plain, "µs plain", "≤ 1.43"),
    ]


def waits(url: str) -> list[Row]:
    """How long a job of one of 999 tenants waits beside a million of another one, and on an idle queue."""
    app = TaskQ(url, namespace="bench")
    draw = random.Random(7)
    with redis.Redis.from_url(url, protocol=2) as client, node(url):
        _load(client)
        until(lambda: client.zcard("bench:{_}:nodes") > 0)
        _waits(app, client, draw, 20)
        idle = _waits(app, client, draw, ROUNDS)
        app.queue("default").pause()
        _fill(client)
        app.queue("default").resume()
        until(lambda: client.zcard("bench:{default}:leases") > 0)
        beside = _waits(app, client, draw, ROUNDS)
        left = app.queue("default").counts().available
    app.close()
    what = f"wait of other tenants beside {BACKLOG:,} ({left:,} left at the end), p99"
    return [Row(what, _p99(beside), "ms", _p99(idle), "ms idle", "≤ 3")]


def _load(client: redis.Redis) -> None:
    for name in lua.names():
        client.script_load(lua.load(name).source)


def _p99(values_ms: list[float]) -> float:
    return statistics.quantiles(values_ms, n=100)[98]


def _waits(app: TaskQ, client: redis.Redis, draw: random.Random, count: int) -> list[float]:
    found = []
    q = keys.queue("bench", "default")
    for number in range(count):
        time.sleep(0.01)
        id = f"default:w-{time.monotonic_ns()}-{number}"
        job = _job(id, f"t{draw.randrange(TENANTS)}:")
        began = time.monotonic()
        command = commands.enqueue(q, [job])
        client.evalsha(command.script.sha, len(command.keys), *command.keys, *command.args)
        key = q.job(id)
        until(lambda key=key: client.hget(key, "epoch"), every_s=0.001)  # type: ignore[misc]
        found.append(1000 * (time.monotonic() - began))
    return found


def _fill(client: redis.Redis) -> None:
    q = keys.queue("bench", "default")
    pipe = client.pipeline(transaction=False)
    for first in range(0, BACKLOG, 250):
        jobs = [_job(f"default:g-{first + n:09d}", "great:") for n in range(250)]
        command = commands.enqueue(q, jobs)
        pipe.evalsha(command.script.sha, len(command.keys), *command.keys, *command.args)
        if first % 10_000 == 0:
            pipe.execute()
    pipe.execute()


def _job(id: str, lane: str) -> commands.NewJob:
    return commands.NewJob(id, "", "tests.bench.app.noop", "async", 0, "", "", {}, lane)
