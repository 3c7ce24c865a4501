"""What each call of the hot scripts costs the server, by batch, beside the bare loop's scripts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import redis

from taskq import commands, keys
from taskq import scripts as lua
from tests.bench import bare
from tests.bench.row import Row

JOBS = 20_000
BATCH = 100


def rows(url: str) -> list[Row]:
    """µs of the server's CPU a job for enqueue (250 a call), claim and complete (100 a call)."""
    with redis.Redis.from_url(url, protocol=2) as client:
        for name in lua.names():
            client.script_load(lua.load(name).source)
        ours = _ours(client)
        client.flushall()
        least = _least(client)
        client.flushall()
        reference = _bare(client)
    return [
        Row("enqueue script", ours[0], "µs/job", None, "", ""),
        Row("claim script", ours[1], "µs/job", reference[0], "µs bare", ""),
        Row("complete script", ours[2], "µs/job", reference[1], "µs bare", ""),
        Row("claim and complete", ours[1] + ours[2], "µs/job", sum(reference), "µs bare", "25 µs"),
        Row("the same without events, keep=0", least, "µs/job", sum(reference), "µs bare", "18 µs"),
    ]


def _cpu_us(client: Any) -> float:
    told = client.info("cpu")
    return float(told["used_cpu_user"] + told["used_cpu_sys"]) * 1e6


def _run(client: Any, command: commands.Command[Any], sha: str | None = None) -> Any:
    sha = sha or command.script.sha
    return command.read(client.evalsha(sha, len(command.keys), *command.keys, *command.args))


def cost_us(client: Any, lane: Callable[[int], str]) -> float:
    """µs of the server's CPU a job for claim and complete, where each job's lane has these keys. As in a drain, what
    was claimed is finished before more is: few run at a time.
    """
    q = keys.queue("bench", "default")
    for first in range(0, JOBS, 250):
        _run(client, commands.enqueue(q, [_job(number, lane(number)) for number in range(first, first + 250)]))
    before = _cpu_us(client)
    for n in range(1, JOBS // BATCH + 1):
        claim = commands.claim(q, worker="n.1", request=n, lease_ms=600_000, limit=BATCH, free={"async": BATCH})
        done = [commands.Done(job.id, job.epoch, b"") for job in _run(client, claim).jobs]
        _run(client, commands.complete(q, worker="n.1", done=done))
    return (_cpu_us(client) - before) / JOBS


def _ours(client: Any, lane: Callable[[int], str] = lambda _: "") -> tuple[float, float, float]:
    q = keys.queue("bench", "default")
    marks = [_cpu_us(client)]
    for first in range(0, JOBS, 250):
        _run(client, commands.enqueue(q, [_job(number, lane(number)) for number in range(first, first + 250)]))
    marks.append(_cpu_us(client))
    claims = [
        _run(
            client, commands.claim(q, worker="n.1", request=n + 1, lease_ms=600_000, limit=BATCH, free={"async": BATCH})
        )
        for n in range(JOBS // BATCH)
    ]
    marks.append(_cpu_us(client))
    for claim in claims:
        done = [commands.Done(job.id, job.epoch, b"") for job in claim.jobs]
        _run(client, commands.complete(q, worker="n.1", done=done))
    marks.append(_cpu_us(client))
    first, second, third = ((after - before) / JOBS for before, after in pairwise(marks))
    return first, second, third


def _least(client: Any) -> float:
    """µs a job for claim and complete of jobs that aren't kept (`keep=0`), by scripts that note no events: nobody can
    switch these off, so they are taken out of the text here.
    """
    note = "function event.note(kind, id)\n"
    shas = {}
    for name in ("claim", "complete"):
        source = lua.load(name).source
        assert note in source, "event.note is called otherwise now"
        shas[name] = client.script_load(source.replace(note, f"{note}do return end\n"))
    q = keys.queue("bench", "default")
    for first in range(0, JOBS, 250):
        jobs = [_job(number, "", keep=0) for number in range(first, first + 250)]
        _run(client, commands.enqueue(q, jobs))
    client.delete(q.fixed("events"))
    before = _cpu_us(client)
    for n in range(1, JOBS // BATCH + 1):
        claim = commands.claim(q, worker="n.1", request=n, lease_ms=600_000, limit=BATCH, free={"async": BATCH})
        done = [commands.Done(job.id, job.epoch, b"") for job in _run(client, claim, shas["claim"]).jobs]
        _run(client, commands.complete(q, worker="n.1", done=done), shas["complete"])
    used = _cpu_us(client) - before
    assert client.exists(q.fixed("events"), q.fixed("completed"), q.fixed("prune")) == 0
    return used / JOBS


def _job(number: int, lane: str, **more: int) -> commands.NewJob:
    fields = {"payload": b"x" * 60, **more}
    return commands.NewJob(f"default:0192f-{number:030d}", "", "noop", "async", 0, "", "", fields, lane)


def _bare(client: Any) -> tuple[float, float]:
    fill = client.pipeline(transaction=False)
    for number in range(JOBS):
        id = f"default:0192f-{number:030d}"
        fill.xadd("bare:body", {"id": id})
        mapping = {"state": "available", "task": "noop", "created_at": 1800000000000, "payload": b"x" * 60}
        fill.hset(f"bare:job:{id}", mapping=mapping)
    fill.execute()
    claim, finish = client.register_script(bare.CLAIM), client.register_script(bare.FINISH)
    before = _cpu_us(client)
    batches = []
    while batch := claim(["bare:body", "bare:leases"], [BATCH, 1800000000000]):
        batches.append([id for id, _ in batch])
    between = _cpu_us(client)
    for ids in batches:
        finish(["bare:leases", "bare:completed", "bare:prune", "bare:events"], [1800000000000, *ids])
    return (between - before) / JOBS, (_cpu_us(client) - between) / JOBS
