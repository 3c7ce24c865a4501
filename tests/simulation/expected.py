"""The model as the keyspace it stands for: what a dump of the real one must equal, key by key."""

from __future__ import annotations

from typing import Any

from tests.lua.keyspace import Dump
from tests.simulation.model import ENDS, WAITS
from tests.simulation.workers import Model

# Which worker was told the time of what is due next: a hint, tested by itself.
HINTS = {"timer_at", "timer_worker"}


def keyspace(model: Model) -> Dump:
    """Every key but events and statistics."""
    found: dict[str, Any] = {
        f"job:{id}": {"state": job.state}
        | {field: str(value) for field, value in job.record.items() if (field, value) != ("entry", "")}
        for id, job in model.jobs.items()
    }
    for state in ("scheduled", "retryable", "pending", *ENDS):
        found[state] = {job.id: job.at for job in model.of(state)}
    jobs = model.jobs.values()
    found["leases"] = {job.id: job.at for job in model.of("running")}
    found["prune"] = {job.id: job.prune_at for job in jobs if job.state in ENDS}
    found["expiring"] = {
        job.id: job["expires_at"] for job in jobs if job.state in WAITS and job["expires_at"] and not job["epoch"]
    }
    for klass, priority in {job.lane for job in model.of("available")}:
        waiting = model.waiting((klass, priority))
        found.setdefault(f"levels:{klass}", {})[str(priority)] = priority
        found[f"groups:{klass}:{priority}"] = {"-": 0}
        found[f"lanes:{klass}:{priority}:-"] = {f"{klass}:{priority}": waiting[0].place}
        found[f"front:{klass}:{priority}"] = {job.id: job.place for job in waiting if not job["entry"]}
    for klass, priority in model.bodies:
        found[f"body:{klass}:{priority}"] = [job.id for job in model.waiting((klass, priority)) if job["entry"]]
    found["empty"] = {f"{klass}:{priority}": at for (klass, priority), at in model.empty.items()}
    found["classes"] = {klass: f"executor={klass}" for klass in model.classes}
    found["kinds"] = dict(model.kinds)
    found["meta"] = {field: str(value) for field, value in model.meta.items()}
    found |= {f"wake:{klass}": {"1": at} for klass, at in model.markers.items()}
    found |= {f"claimed:{w}": {k: str(v) for k, v in memory.items()} for w, memory in model.claimed.items()}
    return {name: value for name, value in found.items() if value or isinstance(value, list)}


def comparable(found: Dump) -> Dump:
    """A dump without what the model doesn't know."""
    kept = {name: value for name, value in found.items() if not name.startswith("stats")}
    if isinstance(meta := kept.get("meta"), dict):
        kept["meta"] = {field: value for field, value in meta.items() if field not in HINTS}
    return {name: value for name, value in kept.items() if value or isinstance(value, list)}
