"""Which keys may outlive a test without a TTL, and why; everything else without one is a leak.

The list mirrors the key table of lua/README.md. A key that is not in it and has
no TTL would stay on somebody's server for ever, so the fixture in conftest.py
fails the test that wrote it.
"""

from __future__ import annotations

import re

import redis

# The name behind `<namespace>:{<queue>}:`, and why it may stay.
PERMANENT = {
    r"job:.+": "a record leaves by retention (`prune`), which also takes it out of every structure",
    r"classes": "at most 256 fields; the sweep drops classes no living job uses",
    r"kinds": "one field a task that a worker has declared",
    r"levels:.+": "priorities with work; empty, and so gone, once there is none",
    r"groups:.+": "fairness keys with work; gone once there is none",
    r"lanes:.+": "lanes with work; gone once there is none",
    r"front:.+": "jobs that wait; gone once they are claimed",
    r"body:.+": "jobs that wait; the sweep deletes a stream that has been empty for a minute (its last id matters)",
    r"empty": "lanes whose body ran empty, until the sweep deletes that",
    r"wake:.+": "at most one marker; a claim takes it",
    r"scheduled": "jobs in this state",
    r"retryable": "jobs in this state",
    r"pending": "jobs in this state",
    r"completed": "jobs in this state; bounded by retention",
    r"failed": "jobs in this state; bounded by retention",
    r"cancelled": "jobs in this state; bounded by retention",
    r"expiring": "waiting jobs that expire; left when the job leaves",
    r"leases": "running jobs",
    r"prune": "ended jobs; bounded by retention",
    r"unique:.+": "owned by a living job: its end frees it, whatever that is",
    r"reservations": "slots taken for jobs to come; a lapsed one goes with the next, or by the nodes' sweep",
    r"reserved:.+": "held for a job until its first attempt is over; unbound it has a TTL",
    r"meta": "one hash a queue",
    r"events": "capped by length and by bytes",
    r"stats": "totals: one hash a queue",
    r"limits": "what limits code declares, and operators; one field each",
    r"gates": "gates that lanes wait for; gone once none does",
    r"slots:.+": "running jobs; gone once they have ended",
    r"parked:.+": "lanes that wait for a gate; gone once none does",
    r"parks:.+": "lanes that wait for a gate; gone once none does",
    r"weights": "what operators gave fairness keys; one field each",
}

# The same for the registry, `<namespace>:{_}:`.
PERMANENT_REGISTRY = {
    r"queues": "every queue that was ever used: a queue is found here",
    r"leader": "one hash: its term must not be forgotten",
    r"nodes": "ids of nodes by last beat; leaders, and nodes as they start, forget the long silent",
    r"schedules": "every schedule; one of code goes a day after its last declaration, others when removed",
    r"schedule:.+": "one hash a schedule; goes with it",
    r"runs:.+": "its last 100 firings; goes with it",
    r"outboxes": "queues that firings are on their way to; gone once they have arrived",
    r"outbox:.+": "at most some 1,000 firings; gone once they have arrived",
}

_KEY = re.compile(r"(?P<namespace>[a-z0-9][a-z0-9._-]*):\{(?P<tag>[^{}]+)\}:(?P<name>.+)", re.DOTALL)
_QUEUE_KEY = re.compile("|".join(f"(?:{pattern})" for pattern in PERMANENT), re.DOTALL)
_REGISTRY_KEY = re.compile("|".join(f"(?:{pattern})" for pattern in PERMANENT_REGISTRY), re.DOTALL)


def leaked(server: redis.Redis, namespace: str | None) -> list[str]:
    """One line for each key on `server` that shouldn't be there; an empty list is what a test hopes for.

    That is a key outside `namespace` (None: any will do), or one that is permanent without a reason.
    """
    keys = list(server.scan_iter(count=1000))
    pipeline = server.pipeline(transaction=False)
    for key in keys:
        pipeline.pttl(key)
    ttls = zip(keys, pipeline.execute(), strict=True)
    named = [(key.decode(errors="backslashreplace"), ttl_ms) for key, ttl_ms in ttls]
    return [why for key, ttl_ms in named if (why := _complaint(key, ttl_ms, namespace))]


def _complaint(key: str, ttl_ms: int, namespace: str | None) -> str | None:
    parts = _KEY.fullmatch(key)
    if parts is None:
        return f"{key}: is not <namespace>:{{<queue>}}:<name>"
    if namespace is not None and parts["namespace"] != namespace:
        return f"{key}: is in a namespace that isn't this test's ({namespace}); who writes there?"
    permanent = _REGISTRY_KEY if parts["tag"] == "_" else _QUEUE_KEY
    if ttl_ms == -1 and not permanent.fullmatch(parts["name"]):
        return f"{key}: has no TTL and is not in tests/leaks.py"
    return None
