"""What the doctor's measurements mean. Pure: numbers in, findings out; where a limit stands, it says why there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from taskq.connection.ask import Refusal
from taskq.connection.fitness import Facts, Finding

_MIB = 2**20
#: A record of a usual job, payload and all, stays in the compact form up to this; Redis's own default is 64.
COMPACT = 1024
#: A worker's claim, finish and renewal are a round trip each, and so is every enqueue.
SLOW_MS, SLOW_P99_MS = 5.0, 50.0
#: What differs by less is how clocks are; times that users give or read are by the server's.
CLOCK_S = 1.0
#: Our own are about thirty; a thousand are somebody's whose scripts differ by the values in them.
SCRIPTS_MANY = 1000


def unreachable(where: str, error: str) -> Finding:
    """The server, or one shard, could not be asked."""
    about, _, advice = error.rpartition(": ")
    return Finding("reachable", "fail", about or f"no answer from {where}", advice)


def memory(known: Facts) -> Finding:
    """Enqueueing ends at `maxmemory`; everything else goes on."""
    name, info = "memory", known.info
    if "used_memory" not in info:
        return Finding(name, "warn", "can't be told", "allow +info to have it checked", unseen=True)
    used, limit = int(info["used_memory"]), int(info.get("maxmemory", 0))
    if limit == 0:
        return Finding(name, "ok", f"{used / _MIB:.1f} MiB used, no maxmemory")
    left = 1 - used / limit
    found = f"{used / _MIB:.1f} of {limit / _MIB:.1f} MiB used, {max(left, 0):.0%} left"
    if left <= 0:
        return Finding(name, "fail", found, "enqueueing is refused: raise maxmemory, or clear jobs")
    if left < 0.1:
        return Finding(name, "warn", found, "raise maxmemory, or keep ended jobs less long: at 0% nothing is enqueued")
    return Finding(name, "ok", found)


def clock(reply: Any, before: float, after: float) -> Finding:
    """The server's clock beside ours. `before` and `after` the call, in Unix seconds."""
    if isinstance(reply, Refusal):
        return Finding("clock", "warn", "can't be told", "allow +time", unseen=True)
    theirs = int(reply[0]) + int(reply[1]) / 1e6
    offset = theirs - (before + after) / 2
    unsure = (after - before) / 2
    found = f"{offset * 1000:+.0f} ms from this machine's, give or take {unsure * 1000:.1f} ms"
    if abs(offset) - unsure > CLOCK_S:
        return Finding("clock", "warn", found, "jobs fall due by the server's clock: set both by NTP")
    return Finding("clock", "ok", found)


def scripts(known: Facts, reply: Any) -> Finding:
    """Ours are sent once and then called by their hash; whether they are there is no fault, only news."""
    name = "scripts"
    if isinstance(known.script, Refusal):
        return Finding(name, "fail", f"can't be run ({known.script.text})", "allow +eval +evalsha")
    if isinstance(reply, Refusal):
        return Finding(name, "warn", "can't be told", "allow +script|exists to have it checked", unseen=True)
    found = f"{sum(map(int, reply))} of {len(reply)} in the cache; others are sent when they are first needed"
    every = int(known.info.get("number_of_cached_scripts", 0))
    if every >= SCRIPTS_MANY:
        advice = "another program writes values into its scripts' text: it costs memory, and drives out ours"
        return Finding(name, "warn", f"{found}; {every} scripts in all", advice)
    return Finding(name, "ok", found)


def round_trip(took_ms: Sequence[float]) -> Finding:
    """How long a PING takes; sorted, in ms."""
    p50, p99 = (took_ms[min(len(took_ms) - 1, math.ceil(len(took_ms) * part) - 1)] for part in (0.5, 0.99))
    found = f"p50 {p50:.2f} ms, p99 {p99:.2f} ms ({len(took_ms)} pings)"
    if p50 > SLOW_MS:
        return Finding("round trip", "warn", found, "every enqueue and claim waits that long: move closer to it")
    if p99 > SLOW_P99_MS:
        return Finding("round trip", "warn", found, "the server or the network stalls at times: see its SLOWLOG")
    return Finding("round trip", "ok", found)


def compact_hashes(known: Facts) -> Finding:
    """Up to which size a value leaves a job's record in the compact form."""
    name = "listpack"
    value = known.config.get("hash-max-listpack-value") or known.config.get("hash-max-ziplist-value")
    if value is None:
        return Finding(name, "warn", "can't be told", "allow +config|get to have it checked", unseen=True)
    which = "hash-max-listpack-value" if "hash-max-listpack-value" in known.config else "hash-max-ziplist-value"
    if int(value) < COMPACT:
        advice = f"set {which} {COMPACT}: a waiting job then takes about half the memory"
        return Finding(name, "warn", f"{which} is {value}", advice)
    return Finding(name, "ok", f"{which} is {value}")


def cluster(reply: Any, shards: int) -> Finding:
    """Whether every slot is served."""
    if isinstance(reply, Refusal):
        if reply.forbids:
            return Finding("cluster", "warn", "can't be told", "allow +cluster|info +cluster|slots", unseen=True)
        return Finding("cluster", "fail", reply.text, "write redis:// instead of redis+cluster://")
    rows = dict(row.split(":", 1) for row in reply.decode().splitlines() if ":" in row)
    state, covered = rows.get("cluster_state", "?"), rows.get("cluster_slots_ok", "0")
    found = f"state {state}, {shards} shards, {covered} of 16384 slots served"
    if state != "ok" or covered != "16384":
        return Finding("cluster", "fail", found, "look at CLUSTER NODES: queues in the other slots stand still")
    return Finding("cluster", "ok", found)
