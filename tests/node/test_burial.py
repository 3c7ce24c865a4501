"""Who pays for a dead worker: what is told of each job it held, and in which order."""

import pytest

from taskq import commands, keys
from taskq.errors import ServerUnsupported, TaskQError
from taskq.node.channel import Hello
from taskq.node.children import burial
from taskq.node.children.burial import Undertaker, plan, verb_for
from taskq.node.table import Entry


def entry(n, queue="q"):
    return Entry(n, n, f"{queue}:{n}", 0)


def test_who_pays():
    culprit, neighbour = entry(1), entry(2)
    only = frozenset({("q:1", 1)})
    assert verb_for(culprit, "", frozenset()) == "lost"
    assert verb_for(Entry(1, 1, "q:1", 0, begun=False), "", frozenset()) == "refund", "its code did not run"
    assert verb_for(Entry(1, 1, "q:1", 0, ended=True), "", frozenset()) == "ended", "it has had its attempt"
    assert verb_for(Entry(1, 1, "q:1", 0, ended=True), "grace ended", frozenset()) == "ended"
    assert verb_for(culprit, "grace ended", frozenset()) == "refund"
    assert verb_for(culprit, "hard timeout", only) == "timeout"
    assert verb_for(neighbour, "hard timeout", only) == "refund"
    assert verb_for(Entry(1, 5, "q:1", 0), "hard timeout", only) == "refund", "another epoch, another run"


def test_every_queue_served_is_called_also_for_nothing():
    assert plan([], ["a", "b"]) == {"a": [[]], "b": [[]]}
    assert plan([entry(1, "c")], ["a"]) == {"a": [[]], "c": [[entry(1, "c")]]}


def test_at_most_250_a_call_the_newest_epochs_first():
    calls = plan([entry(n) for n in range(1, 602)], ["q"])["q"]
    assert [len(call) for call in calls] == [250, 250, 101]
    assert [call[0].epoch for call in calls] == [601, 351, 101]


class Dead:
    """A worker that has died, as its node remembers it."""

    def __init__(self, child, killed_for="", culprits=frozenset(), backoff="fixed:60000:60000:exact"):
        self.worker, self.held, self.cause = child.worker, child.held, killed_for or "SIGKILL"
        self.killed_for, self.culprits, self.forgiven = killed_for, culprits, True
        task = {"queue": "default", "executor": "async", "backoff": backoff}
        self.hello = Hello({}, ["default"], {"t": task}, "0.1.0")


@pytest.fixture
def undertaker(ground):
    return Undertaker(ground.server, ground.namespace)


async def test_what_it_ran_counts_an_attempt_what_it_only_claimed_does_not(ground, undertaker):
    child = ground.child()
    ran = await ground.enqueue(2)
    await ground.claim(child, 2)
    only_claimed = await ground.enqueue(1)
    await ground.claim(child, 1, fill=False)
    assert await undertaker.bury(Dead(child)) == 3
    assert await ground.states(ran + only_claimed) == {"available"}
    assert (await ground.fields(ran[0]))[b"attempt"] == b"1"
    assert (await ground.fields(only_claimed[0])).get(b"attempt", b"0") == b"0"


async def test_the_last_attempts_death_is_a_failure_with_its_reason(ground, undertaker):
    child = ground.child()
    (id,) = await ground.enqueue(1, max_attempts=1)
    await ground.claim(child, 1)
    await undertaker.bury(Dead(child))
    fields = await ground.fields(id)
    assert (fields[b"state"], fields[b"reason"]) == (b"failed", b"worker died: n.1 (SIGKILL)")


async def test_one_whose_code_had_ended_is_not_run_once_more_than_it_may(ground, undertaker):
    child = ground.child()
    once, thrice = await ground.enqueue(1, max_attempts=1) + await ground.enqueue(1)
    await ground.claim(child, 2)
    for entry in child.held():
        child.table.end(entry.slot)
    await undertaker.bury(Dead(child, "grace ended"))
    fields = await ground.fields(once)
    assert (fields[b"state"], fields[b"reason"]) == (b"failed", b"worker died: n.1 (grace ended); its code had ended")
    fields = await ground.fields(thrice)
    assert (fields[b"state"], fields[b"attempt"]) == (b"available", b"1")


async def test_a_hard_timeout_waits_the_tasks_backoff_and_its_neighbours_are_refunded(ground, undertaker):
    child = ground.child()
    slow, neighbour = await ground.enqueue(2)
    jobs = {job.id: job for job in await ground.claim(child, 2)}
    culprits = frozenset({(slow, jobs[slow].epoch)})
    await undertaker.bury(Dead(child, "hard timeout", culprits))
    fields, other = await ground.fields(slow), await ground.fields(neighbour)
    assert fields[b"state"] == b"retryable"
    assert b"JobTimeout" in fields[b"error:1"]
    seconds, _ = ground.raw.time()
    assert 55_000 < int(fields[b"scheduled_at"]) - seconds * 1000 <= 61_000
    assert (other[b"state"], other.get(b"attempt", b"0")) == (b"available", b"0")


async def test_a_jobs_own_backoff_beats_its_tasks(ground, undertaker):
    child = ground.child()
    (slow,) = await ground.enqueue(1, backoff="fixed:5000:5000:exact")
    (job,) = await ground.claim(child, 1)
    await undertaker.bury(Dead(child, "hard timeout", frozenset({(slow, job.epoch)})))
    seconds, _ = ground.raw.time()
    assert int((await ground.fields(slow))[b"scheduled_at"]) - seconds * 1000 < 8_000


async def test_a_callable_or_damaged_backoff_waits_the_default(ground, undertaker):
    child = ground.child()
    ids = await ground.enqueue(1) + await ground.enqueue(1, backoff="nonsense")
    culprits = frozenset((job.id, job.epoch) for job in await ground.claim(child, 2))
    await undertaker.bury(Dead(child, "hard timeout", culprits, backoff=None))
    assert await ground.states(ids) == {"retryable"}


async def test_a_cancel_request_wins_over_the_death(ground, undertaker):
    child = ground.child()
    (id,) = await ground.enqueue(1)
    await ground.claim(child, 1)
    await ground.do(commands.cancel(ground.q, [id]))
    await undertaker.bury(Dead(child))
    assert await ground.states([id]) == {"cancelled"}


async def test_one_cancelled_by_force_is_cancelled_and_no_error_is_made_up(ground, undertaker):
    child = ground.child()
    forced, neighbour = await ground.enqueue(2)
    await ground.claim(child, 2)
    await ground.do(commands.cancel(ground.q, [forced], force=True))
    await undertaker.bury(Dead(child, "cancelled by force"))
    fields = await ground.fields(forced)
    assert (fields[b"state"], fields[b"reason"]) == (b"cancelled", b"cancelled while running")
    assert b"error:1" not in fields
    assert await ground.states([neighbour]) == {"available"}


@pytest.fixture
def refusals(monkeypatch, ground):
    """By queue: errors with which its next burials are answered."""
    errors, run_async = {}, burial.run_async
    queues = {keys.queue(ground.namespace, name).prefix: name for name in ("default", "other")}

    async def run(server, command, **options):
        if command.script.name == "bury" and (left := errors.get(queues[command.keys[0]])):
            raise left.pop(0)
        return await run_async(server, command, **options)

    monkeypatch.setattr(burial, "run_async", run)
    monkeypatch.setattr(burial, "again_s", lambda _failures: 0.001)
    return errors


async def test_a_burial_that_is_refused_is_tried_again(ground, undertaker, refusals):
    child = ground.child()
    ids = await ground.enqueue(1)
    await ground.claim(child, 1)
    refusals["default"] = [ServerUnsupported("no"), TaskQError("damaged")]
    assert await undertaker.bury(Dead(child)) == 1
    assert await ground.states(ids) == {"available"}


async def test_a_queue_that_goes_on_to_refuse_keeps_no_other_and_is_told(ground, undertaker, refusals):
    child = ground.child()
    ids = await ground.enqueue(1)
    await ground.claim(child, 1)
    dead = Dead(child)
    dead.hello.queues.append("other")
    refusals["other"] = [TaskQError("damaged")] * burial.TRIES
    with pytest.raises(TaskQError, match="damaged"):
        await undertaker.bury(dead)
    assert refusals["other"] == []
    assert await ground.states(ids) == {"available"}


async def test_a_claim_of_the_dead_is_refused(ground, undertaker):
    child = ground.child()
    await undertaker.bury(Dead(child))
    ids = await ground.enqueue(1)
    assert await ground.claim(child, 1) == []
    assert await ground.states(ids) == {"available"}
