"""What can happen in a history: one function each, weighted in the table at the end.

What a worker knows is kept here: its table, its claim under way, its unanswered finishes, the markers it took.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from taskq.commands import Buried, Claim, Done, Failure, Held, NewJob, Release, Snoozed
from tests.simulation.model import ENDS, WAITS

if TYPE_CHECKING:
    from tests.simulation.machine import Simulation

#: Where all chance comes from: hypothesis gives each step its seed.
Draw = random.Random

T = TypeVar("T")

LEASE_MS = 8_000
GRACE_MS = 60_000
SLOTS = {"async": 2, "thread": 1}
TIMES = (0, 1, 500, 5_000, 70_000)
LIMITS = (1, 2, 250, 250)
LOST = ("", "", "", "", "reply", "request")
FIELDS: dict[str, tuple[Any, ...]] = {
    "max_attempts": (1, 2, 5),
    "keep": (0, 1, 20_000),
    "keep_result": (0, 5_000, 10**9),
    "on_lease_lost": ("fail",),
}


@dataclass
class Worker:
    """One worker, as it sees itself."""

    id: str
    node: int
    table: dict[str, tuple[int, str]] = field(default_factory=dict)
    request: int = 0
    offer: dict[str, Any] | None = None
    unanswered: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    awake: set[str] = field(default_factory=set)

    def free(self) -> dict[str, int]:
        used = [klass for _, klass in self.table.values()]
        return {klass: max(0, n - used.count(klass)) for klass, n in SLOTS.items()}

    def waits_for(self) -> set[str]:
        """The classes whose marker it took, or of which its claim is under way."""
        return self.awake | set(self.offer["free"] if self.offer else ())


class Act(NamedTuple):
    do: Callable[[Simulation, Draw], None]
    weight: int
    possible: Callable[[Simulation], Any] = lambda sim: True


def yes(draw: Draw) -> bool:
    return draw.random() < 0.5


def some(draw: Draw, among: Sequence[T], most: int = 99) -> list[T]:
    """At least one of them."""
    return draw.sample(among, draw.randint(1, min(most, len(among))))


def some_ids(sim: Simulation, draw: Draw) -> list[str]:
    return some(draw, [*sorted(sim.model.jobs), "default:nobody"], 3)


# --- clients


def enqueue(sim: Simulation, draw: Draw) -> None:
    jobs = [_new_job(sim, draw) for _ in range(draw.randint(1, 3))]
    sim.sent.append((jobs, draw.choice(["existing", "existing", "raise"])))
    sim.call("enqueue", jobs, exists=sim.sent[-1][1])


def _new_job(sim: Simulation, draw: Draw) -> NewJob:
    sim.names += 1
    own = draw.choice(["", "", "", "a", "b"])
    due, expires = (draw.choice(["", "", "", f"+{ms}", str(sim.model.now + ms)]) for ms in (draw.choice(TIMES), 20_000))
    return NewJob(
        f"default:{own or sim.names}",
        f"token{sim.names}" if own else "",
        draw.choice(["t", "u"]),
        draw.choice(["async", "thread", ""]),
        draw.choice([0, 0, -512, 511]),
        due,
        expires,
        {name: draw.choice(values) for name, values in FIELDS.items() if draw.random() < 0.3},
    )


def send_again(sim: Simulation, draw: Draw) -> None:
    jobs, exists = draw.choice(sim.sent[-3:])
    sim.call("enqueue", jobs, exists=exists)


def cancel(sim: Simulation, draw: Draw) -> None:
    running, force, partial = (yes(draw) for _ in range(3))
    sim.call("cancel", some_ids(sim, draw), running=running, force=force, partial=partial)


def retry(sim: Simulation, draw: Draw) -> None:
    sim.call("retry", some_ids(sim, draw), partial=yes(draw))


def wait(sim: Simulation, draw: Draw) -> None:
    sim.call("wait", some_ids(sim, draw)[0])


# --- operators


def pause(sim: Simulation, draw: Draw) -> None:
    sim.call("pause")


def resume(sim: Simulation, draw: Draw) -> None:
    sim.call("resume")


def purge(sim: Simulation, draw: Draw) -> None:
    states = some(draw, WAITS)
    sim.call("purge", states=states, limit=draw.choice(LIMITS))


def clear(sim: Simulation, draw: Draw) -> None:
    states = some(draw, ENDS)
    sim.call("clear", states=states, older_than_ms=draw.choice(TIMES), limit=draw.choice(LIMITS))


def declare(sim: Simulation, draw: Draw) -> None:
    keep, most = draw.choice([0, 20_000, 10**8]), draw.choice([0, 2, 10_000])
    retention = {"keep_completed": keep, "keep_failed": keep, "max_completed": most, "max_failed": most}
    sim.call("declare", kinds={"u": draw.choice(["async", "thread"])}, retention=retention)


# --- workers


def start(sim: Simulation, draw: Draw) -> None:
    sim.names += 1
    node = draw.randint(1, 2)
    sim.workers.append(Worker(f"n{node}.{sim.names}", node))


def sleep(sim: Simulation, draw: Draw) -> None:
    """An idle worker waits for markers, and takes what there is."""
    worker = draw.choice(sim.workers)
    for klass, n in worker.free().items():
        if n and klass in sim.model.markers:
            assert sim.client.zpopmin(sim.q.wake(klass))
            del sim.model.markers[klass]
            worker.awake.add(klass)
    sim.look()


def claim(sim: Simulation, draw: Draw) -> None:
    worker, lost = draw.choice(sim.workers), draw.choice(LOST)
    if worker.offer is None:
        worker.request += 1
        limit = min(draw.choice([1, 250, 250]), sum(worker.free().values()))
        worker.offer = {"request": worker.request, "limit": limit, "free": worker.free()}
        worker.awake.clear()
    if lost == "request":
        return
    answer: Claim = sim.call("claim", worker=worker.id, lease_ms=LEASE_MS, **worker.offer)
    if lost == "reply":
        return
    worker.offer = None
    for job in answer.jobs:
        worker.table[job.id] = (job.epoch, job.fields.get(b"class", b"async").decode())
    if answer.word == "gone":
        sim.call("wake", sorted(worker.awake))
        sim.workers.remove(worker)


def finish(sim: Simulation, draw: Draw) -> None:
    worker = draw.choice([worker for worker in sim.workers if worker.table])
    ids = some(draw, sorted(worker.table))
    held = [(id, worker.table[id][0]) for id in ids]
    verb = draw.choice(["complete", "complete", "fail", "fail", "release", "snooze"])
    rows: dict[str, Any] = {"worker": worker.id}
    if verb == "complete":
        rows["done"] = [Done(*each, draw.choice([b"", b"r"])) for each in held]
    elif verb == "fail":
        again, delay = draw.choice(["retry", "retry", "fail"]), draw.choice(TIMES)
        rows["failures"] = [Failure(*each, again, delay, '{"type": "E"}', "E") for each in held]
    elif verb == "release":
        rows["jobs"] = [Release(*each, draw.choice(["", "", "thread"])) for each in held]
    else:
        kind, delay = draw.choice(["snooze", "unknown"]), draw.choice(TIMES)
        rows |= {"grace_ms": GRACE_MS, "jobs": [Snoozed(*each, kind, delay, "unknown") for each in held]}
    worker.unanswered.append((verb, rows))
    if (lost := draw.choice(LOST)) != "request":
        _finished(sim, worker, lost)


def finish_again(sim: Simulation, draw: Draw) -> None:
    worker = draw.choice([worker for worker in sim.workers if worker.unanswered])
    _finished(sim, worker, draw.choice(LOST))


def _finished(sim: Simulation, worker: Worker, lost: str) -> None:
    verb, rows = worker.unanswered[-1]
    words = sim.call(verb, **rows)
    assert not set(words) <= {"lost", "gone"} or sim.unchanged()
    if lost:
        return
    worker.unanswered.pop()
    for row in next(value for value in rows.values() if isinstance(value, list)):
        if worker.table.get(row.id, (0,))[0] == row.epoch:
            del worker.table[row.id]


def intrude(sim: Simulation, draw: Draw) -> None:
    """Somebody without the right to it: with an old epoch, or another worker."""
    job = draw.choice(sim.model.of("running"))
    worker, epoch = draw.choice([(job["worker"], job["epoch"] - 1), ("n9.9", job["epoch"])])
    verb = draw.choice(["complete", "fail", "release", "snooze", "renew", "bury"])
    if verb == "renew":
        assert sim.call("renew", lease_ms=LEASE_MS, held=[Held(job.id, epoch, worker)]) == ["lost"]
        return
    if verb == "bury":
        assert sim.call("bury", worker="n9.9", why="x", jobs=[Buried(job.id, epoch, "lost")]) == []
        return
    rows: dict[str, dict[str, Any]] = {
        "complete": {"done": [Done(job.id, epoch, b"x")]},
        "fail": {"failures": [Failure(job.id, epoch, "fail", 0, "{}", "x")]},
        "release": {"jobs": [Release(job.id, epoch, "thread")]},
        "snooze": {"grace_ms": 0, "jobs": [Snoozed(job.id, epoch, "unknown", 0, "x")]},
    }
    (word,) = sim.call(verb, worker=worker, **rows[verb])
    assert word == "lost" or job["ended"] == f"{epoch} {verb}"
    assert sim.unchanged()


# --- nodes


def renew(sim: Simulation, draw: Draw) -> None:
    node = draw.randint(1, 2)
    held = [
        (worker, Held(id, epoch, worker.id))
        for worker in sim.workers
        if worker.node == node
        for id, (epoch, _) in sorted(worker.table.items())
    ]
    words = sim.call("renew", lease_ms=LEASE_MS, held=[each for _, each in held])
    for (worker, each), word in zip(held, words, strict=True):
        if word == "lost":
            del worker.table[each.id]


def kill_worker(sim: Simulation, draw: Draw) -> None:
    worker = draw.choice([worker for worker in sim.workers if worker.table or worker.offer])
    sim.workers.remove(worker)
    sim.dead.append(worker)


def bury(sim: Simulation, draw: Draw) -> None:
    """A node buries its dead, or somebody whom it takes for dead; perhaps again, when it wasn't answered."""
    worker = draw.choice(sim.dead if sim.dead and draw.random() < 0.9 else sim.dead + sim.workers)
    verbs = ["lost", "lost", "refund", "timeout"]
    jobs = [Buried(id, epoch, draw.choice(verbs), 500) for id, (epoch, _) in sorted(worker.table.items())]
    sim.call("bury", worker=worker.id, why="SIGKILL", jobs=jobs)
    if worker in sim.dead and not draw.choice(LOST):
        sim.dead.remove(worker)


def lose_host(sim: Simulation, draw: Draw) -> None:
    """Nobody buries these: what they held is reaped, and for a marker they took make up the claims of every few s."""
    node = draw.randint(1, 2)
    for workers in (sim.workers, sim.dead):
        for worker in [worker for worker in workers if worker.node == node]:
            sim.unwoken |= worker.waits_for()
            workers.remove(worker)


def reap(sim: Simulation, draw: Draw) -> None:
    sim.call("reap", lease_ms=LEASE_MS, limit=draw.choice(LIMITS))


def promote(sim: Simulation, draw: Draw) -> None:
    sim.call("promote", limit=draw.choice(LIMITS))


def expire(sim: Simulation, draw: Draw) -> None:
    sim.call("expire", limit=draw.choice(LIMITS))


def prune(sim: Simulation, draw: Draw) -> None:
    sim.call("prune", limit=draw.choice(LIMITS))


def pass_time(sim: Simulation, draw: Draw) -> None:
    sim.model.now += draw.choice([1, 300, 1_000, 2_000])


def fall_silent(sim: Simulation, draw: Draw) -> None:
    """An outage: for a long time nobody's call arrives."""
    sim.model.now += draw.choice([9_000, 20_000, 400_000])


def watch(sim: Simulation, draw: Draw) -> None:
    """Ten seconds in which a node reaps, but one host doesn't renew: leases run out while it isn't quiet."""
    for _ in range(5):
        sim.model.now += 2_000
        sim.call("reap", lease_ms=LEASE_MS, limit=250)


def _anybody(sim: Simulation) -> Any:
    return sim.workers


def _held(sim: Simulation) -> bool:
    return any(worker.table for worker in sim.workers)


#: What happens, how often, and when it can.
ACTS = [
    # every day
    Act(enqueue, 8),
    Act(start, 3, lambda sim: len(sim.workers) < 4),
    Act(sleep, 3, _anybody),
    Act(claim, 10, _anybody),
    Act(finish, 20, _held),
    Act(renew, 3, _held),
    Act(reap, 1),
    Act(promote, 1),
    Act(expire, 1),
    Act(prune, 1),
    Act(pass_time, 3),
    # by hand
    Act(cancel, 3),
    Act(retry, 3),
    Act(wait, 1),
    Act(pause, 1),
    Act(resume, 4, lambda sim: "paused" in sim.model.meta),
    Act(purge, 1),
    Act(clear, 1),
    Act(declare, 1),
    # what goes wrong
    Act(send_again, 2, lambda sim: sim.sent),
    Act(finish_again, 4, lambda sim: any(worker.unanswered for worker in sim.workers)),
    Act(intrude, 4, lambda sim: sim.model.of("running")),
    Act(kill_worker, 3, lambda sim: any(worker.table or worker.offer for worker in sim.workers)),
    Act(bury, 3, lambda sim: sim.dead or (sim.workers and sim.turn % 5 == 0)),
    Act(lose_host, 1, _held),
    Act(fall_silent, 1),
    Act(watch, 1),
]
