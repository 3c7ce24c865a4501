"""The bare loop: the least that claims jobs at least once and finishes them, without the rest of taskq.

One process, two connections, batches of 100, a claim under way while the last batch runs: the ceiling that this design
has on this machine. `python -m tests.bench.bare` fills, drains, and prints jobs a second.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

import msgpack
import redis.asyncio

CLAIM = """
local entries = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[1])
if #entries == 0 then return {} end
local out, scores = {}, {}
for i = 1, #entries do
  local id = entries[i][2][2]
  local fields = redis.call('HGETALL', 'bare:job:' .. id)
  redis.call('HSET', 'bare:job:' .. id, 'state', 'running', 'epoch', ARGV[2], 'attempt', 1, 'worker', 'w', 'entry', '')
  scores[#scores + 1] = ARGV[2]
  scores[#scores + 1] = id
  out[i] = { id, fields }
end
redis.call('ZADD', KEYS[2], unpack(scores))
local ms, sequence = string.match(entries[#entries][1], '(%d+)-(%d+)')
redis.call('XTRIM', KEYS[1], 'MINID', ms .. '-' .. (sequence + 1))
return out
"""
FINISH = """
local held, ended = {}, {}
for i = 2, #ARGV do
  local key = 'bare:job:' .. ARGV[i]
  local proof = redis.call('HMGET', key, 'state', 'epoch', 'worker', 'ended')
  if proof[1] == 'running' and proof[3] == 'w' then
    redis.call('HSET', key, 'state', 'completed', 'finished_at', ARGV[1], 'ended', '1 complete')
    held[#held + 1] = ARGV[i]
    ended[#ended + 1] = ARGV[1]
    ended[#ended + 1] = ARGV[i]
  end
end
redis.call('ZREM', KEYS[1], unpack(held))
redis.call('ZADD', KEYS[2], unpack(ended))
redis.call('ZADD', KEYS[3], unpack(ended))
redis.call('XADD', KEYS[4], 'MAXLEN', '~', 1000, '*', 'ids', table.concat(held, ' '))
return 'ok'
"""
BATCH = 100


async def noop() -> None:
    """The job."""


async def _run(id: str, flat: list[bytes], ended: list[str]) -> None:
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    msgpack.unpackb(fields[b"payload"])
    await noop()
    ended.append(id)


async def drain(url: str, jobs: int) -> float:
    """Jobs a second."""
    options: dict[str, Any] = {"protocol": 2, "socket_timeout": 10}
    claiming = redis.asyncio.Redis.from_url(url, **options)
    finishing = redis.asyncio.Redis.from_url(url, **options)
    fill = finishing.pipeline(transaction=False)
    for number in range(jobs):
        id = f"default:0192f-{number:030d}"
        fill.xadd("bare:body", {"id": id})
        fill.hset(
            f"bare:job:{id}",
            mapping={
                "state": "available",
                "task": "noop",
                "created_at": 1800000000000,
                "payload": msgpack.packb([[], {}]),
            },
        )
    await fill.execute()
    claim, finish = claiming.register_script(CLAIM), finishing.register_script(FINISH)
    start = time.perf_counter()
    done = 0
    under_way: asyncio.Task[Any] | None = None
    while batch := await claim(["bare:body", "bare:leases"], [BATCH, int(time.time() * 1000)]):
        ended: list[str] = []
        await asyncio.gather(*(_run(id.decode(), flat, ended) for id, flat in batch))
        if under_way is not None:
            await under_way
        keys = ["bare:leases", "bare:completed", "bare:prune", "bare:events"]
        under_way = asyncio.create_task(finish(keys, [int(time.time() * 1000), *ended]))
        done += len(ended)
    if under_way is not None:
        await under_way
    elapsed = time.perf_counter() - start
    await claiming.aclose()
    await finishing.aclose()
    return done / elapsed


def main() -> None:
    """Prints the rate."""
    try:
        import uvloop
    except ImportError:
        runner = asyncio.Runner()
    else:
        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    with runner:
        print(runner.run(drain(os.environ["TASKQ_URL"], int(sys.argv[1]))))


if __name__ == "__main__":
    main()
