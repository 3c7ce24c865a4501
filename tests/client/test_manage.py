"""Cancelling and retrying by hand, one and many; queues paused, purged, cleared and counted; pages of jobs."""

from __future__ import annotations

import pytest

from taskq import InvalidTransition, JobNotFound, QueueNotFound, commands, keys
from tests.waiting import wait_until


@pytest.fixture
def task(app):
    return app.by_name("shop.send", queue="default")


def ids(page) -> list[str]:
    return [job["id"] for job in page["data"]]


def clock_ms(raw):
    seconds, micros = raw.time()
    return seconds * 1000 + micros // 1000


# --- jobs


def test_cancel_says_what_became_of_it(app, task, hand):
    running, ended, later = task.enqueue(), task.enqueue(), task.using(delay="1h").enqueue()
    mine = {job.id: job for job in hand.claim()}
    hand.complete(mine[ended.id])
    assert later.cancel() == "removed"
    assert later.refresh().state == "cancelled"
    assert running.cancel() == "requested"
    assert running.refresh().state == "running"
    assert ended.cancel() == "too_late"
    with pytest.raises(InvalidTransition, match="is running") as caught:
        running.cancel(running=False)
    assert (caught.value.from_state, caught.value.to_state) == ("running", "cancelled")
    with pytest.raises(JobNotFound):
        app.job("default:nothing").cancel()


def test_a_batch_is_cancelled_all_or_none_or_each_for_itself(app, task, hand):
    one, two = task.using(id="one").enqueue(), task.using(id="two").enqueue()
    for job in hand.claim():
        hand.complete(job)
    three = task.using(id="three").enqueue()
    with pytest.raises(InvalidTransition, match="nothing was done"):
        app.client.cancel_many([three.id, one.id])
    with pytest.raises(JobNotFound):
        app.client.cancel_many([three.id, "default:nothing"])
    assert three.refresh().state == "available"
    given = [one.id, three.id, "default:nothing", "nonsense"]
    assert app.client.cancel_many(given, partial=True) == ["too_late", "removed", "missing", "missing"]
    assert app.client.retry_many([one.id, two.id]) == ["available", "available"]


def test_a_refusal_says_that_other_queues_may_be_done(app, task):
    one = task.enqueue()
    told = "there is no job nosuch:x; nothing was done in queue nosuch; what was asked for beyond that may be done"
    with pytest.raises(JobNotFound, match=told):
        app.client.cancel_many([one.id, "nosuch:x"])
    assert one.refresh().state == "cancelled"


def test_retry_runs_a_job_again_as_if_new(task, hand):
    job = task.enqueue()
    hand.fail(hand.claim()[0], reason="no")
    assert job.refresh().record.errors
    assert job.retry() is job
    assert (job.state, job.attempt) == ("available", 0)
    shown = job.to_dict()
    assert (shown["attempt"], shown["errors"], shown["reason"], shown["finished_at"]) == (0, [], None, None)
    with pytest.raises(InvalidTransition, match="is available already"):
        job.retry()
    with pytest.raises(JobNotFound):
        task.job("default:nothing").retry()


async def test_the_async_twins_do_the_same(on_loop, hand):
    job = await on_loop.by_name("x").aenqueue()
    assert await job.acancel() == "removed"
    assert (await job.aretry()).state == "available"
    hand.complete(hand.claim()[0], 7)
    assert (await job.arefresh()).record.result() == 7
    assert await job.ajoin() == "completed"
    assert await job.acancel() == "too_late"
    assert await on_loop.aclient.jobs([job.id, "default:nothing"]) == [job.record, None]
    assert await on_loop.aping()


# --- queues


def test_a_paused_queue_hands_nothing_out(app, task, hand):
    queue = app.queue("default")
    before = task.enqueue()
    (runs,) = hand.claim()
    task.enqueue()
    assert (queue.pause(), queue.pause(), queue.counts().paused) == (True, False, True)
    assert hand.claim() == []
    hand.complete(runs)
    assert before.refresh().state == "completed", "what runs is finished"
    assert hand.claim() == []
    assert (queue.resume(), queue.resume(), queue.counts().paused) == (True, False, False)
    assert len(hand.claim()) == 1


def test_purge_cancels_what_waits_and_clear_deletes_what_ended(app, task, hand):
    queue = app.queue("default")
    app.enqueue_many(task.call() for _ in range(600))
    running = hand.claim(limit=10)
    hand.complete(running[0])
    task.using(delay="1h").enqueue()
    assert queue.purge(states=["scheduled"]) == 1
    assert queue.purge() == 590
    counts = queue.counts()
    assert (counts.available, counts.running, counts.cancelled, counts.completed) == (0, 9, 591, 1)
    assert queue.clear(older_than="1h") == 0
    assert queue.clear() == 591
    assert queue.clear(states=["completed"]) == 1
    assert queue.counts().completed == 0


async def test_the_async_queue_does_the_same(on_loop):
    queue = on_loop.queue("default")
    await on_loop.aenqueue_many(on_loop.by_name("x").call() for _ in range(300))
    assert [await queue.apause(), await queue.aresume()] == [True, True]
    assert (await queue.ajobs("available", limit=2))["total"] == 300
    assert [await queue.apurge(), await queue.aclear()] == [300, 300]


async def test_a_queue_that_never_was_is_a_slip(on_loop):
    app = on_loop
    app.by_name("x", queue="email").enqueue()
    queue = app.queue("emial")
    for ask in (queue.pause, queue.resume, queue.purge, queue.clear, queue.counts, queue.jobs):
        with pytest.raises(QueueNotFound, match=r"no queue 'emial' \(did you mean 'email'\?\): nothing was ever"):
            ask()
        with pytest.raises(QueueNotFound):
            await getattr(queue, f"a{ask.__name__}")()
    assert [row["queue"] for row in app.inspector.queues()] == ["email"]


def test_an_empty_queue_is_one_nevertheless(app):
    app.by_name("x", queue="email").enqueue().cancel()
    assert app.queue("email").clear() == 1
    assert not any(app.queue("email").counts())
    assert app.queue("email").jobs()["total"] == 0


def test_a_queue_that_a_node_serves_is_there_before_its_first_job(app, run, namespace):
    run(commands.register_queue(keys.cluster(namespace), "email"))
    assert app.queue("email").pause()
    assert app.queue("email").counts().paused


def test_clear_with_a_limit_takes_the_longest_ended_of_each_state(app, task, hand):
    jobs = app.enqueue_many(task.call() for _ in range(300))
    for job in hand.claim():
        hand.fail(job)
    app.client.cancel_many([job.id for job in jobs[250:]])
    assert app.queue("default").clear(states=["failed", "cancelled"], limit=260) == 260
    counts = app.queue("default").counts()
    assert (counts.failed, counts.cancelled) == (0, 40)
    assert app.queue("default").clear(limit=7) == 7
    assert app.queue("default").clear(limit=999) == 33


def test_nodes_are_listed_with_what_they_know(app, run, namespace):
    fields = {"queues": '["email"]', "tasks": '["mail.send", 7]', "pid": 5, "workers": "many"}
    run(commands.register_node(keys.cluster(namespace), node="h-1-a", ttl_ms=9000, fields=fields))
    run(commands.register_node(keys.cluster(namespace), node="h-2-b", ttl_ms=9000, fields={"tasks": "{"}))
    first, second = app.inspector.nodes()
    assert (first["id"], first["queues"], first["tasks"], first["pid"], first["workers"]) == (
        "h-1-a", ["email"], ["mail.send"], 5, None,
    )  # fmt: skip
    assert first["last_seen"].endswith("Z")
    assert (second["queues"], second["tasks"]) == ([], [])


def test_a_queue_needs_a_name_that_can_be_one(app):
    with pytest.raises(ValueError, match="queue='No Such'"):
        app.queue("No Such")


# --- looking


def test_a_page_of_a_state_is_newest_first_and_counts_all(app, task, hand):
    jobs = [task.using(id=f"n{number}").enqueue() for number in range(7)]
    for job in hand.claim():
        hand.complete(job)
    page = app.inspector.jobs(state="completed", queue="default", limit=3, offset=1)
    assert (page["total"], page["limit"], page["offset"], len(page["data"])) == (7, 3, 1, 3)
    everything = ids(app.inspector.jobs(state="completed", queue="default"))
    assert ids(page) == everything[1:4]
    assert sorted(everything) == sorted(job.id for job in jobs)


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_pages_over_states_and_queues_cover_every_job_once(app, hand, limit):
    for queue in ("a", "b"):
        made = [app.by_name("x", queue=queue).using(id=f"n{number}").enqueue() for number in range(4)]
        app.by_name("x", queue=queue).using(id="later", delay="1h").enqueue()
        claimed = hand.claim(queue, limit=2)
        hand.complete(claimed[0])
        made[3].cancel()
    seen: list[str] = []
    while page := app.inspector.jobs(limit=limit, offset=len(seen))["data"]:
        assert len(page) <= limit
        seen += [f"{job['state']} {job['queue']}" for job in page]
    states = ("running", "available", "scheduled", "completed", "cancelled")
    assert [each.split()[0] for each in seen] == [state for state in states for _ in "ab"]
    assert set(seen) == {f"{state} {queue}" for state in states for queue in ("a", "b")}
    assert seen[2:4] == ["available a", "available b"]


@pytest.mark.parametrize("stretch", [1, 3, 1000])
@pytest.mark.parametrize("limit", [1, 4, 50])
async def test_several_queues_are_one_list_with_the_newest_first(app, raw, monkeypatch, limit, stretch):
    """However deep the page, and however many of the times are read at once."""
    monkeypatch.setattr(commands, "ENTERED_MAX", stretch)
    made = []
    for queue in ("a", "b", "b", "c", "a", "c", "b", "b", "b", "a", "c"):
        made.append(app.by_name("x", queue=queue).enqueue())
        made[-1].cancel()
        ended_ms = clock_ms(raw)
        wait_until(lambda ended_ms=ended_ms: clock_ms(raw) > ended_ms, step_s=0.0001)
    newest_first = [job.id for job in reversed(made)]
    seen: list[str] = []
    while page := ids(app.inspector.jobs(state="cancelled", limit=limit, offset=len(seen))):
        seen += page
    assert seen == newest_first
    assert ids(await app.inspector.ajobs(state="cancelled", limit=5, offset=4)) == newest_first[4:9]
    await app.aclose()


def test_a_damaged_job_is_shown_as_such_and_hides_no_other(app, task, raw, namespace):
    task.using(id="good").enqueue()
    task.using(id="bad").enqueue()
    raw.hset(keys.queue(namespace, "default").job("default:bad"), "attempt", "many")
    page = {job["id"]: job for job in app.inspector.jobs(queue="default")["data"]}
    assert page["default:bad"]["reason"].startswith("BadRecord: ")
    assert page["default:bad"].keys() == page["default:good"].keys()


def test_queues_are_listed_with_their_counts(app, task):
    app.by_name("x", queue="email").enqueue()
    task.using(delay=60).enqueue()
    app.queue("email").pause()
    listed = {queue["queue"]: queue for queue in app.inspector.queues()}
    assert sorted(listed) == ["default", "email"]
    assert (listed["email"]["available"], listed["email"]["paused"]) == (1, True)
    assert (listed["default"]["scheduled"], listed["default"]["paused"]) == (1, False)


def test_an_empty_namespace_lists_nothing(app):
    assert app.inspector.queues() == []
    assert app.inspector.jobs() == {"data": [], "total": 0, "limit": 50, "offset": 0}


@pytest.mark.parametrize(
    "asked,says",
    [
        ({"state": "done"}, "there is no state 'done'"),
        ({"state": "compleated"}, "did you mean 'completed'"),
        ({"queue": "No Such"}, "queue='No Such'"),
        ({"limit": 0}, "limit=0 is out of range"),
        ({"limit": 5000}, "limit=5000 is out of range"),
        ({"offset": -1}, "offset=-1 is negative"),
    ],
)
def test_what_can_not_be_listed_is_said(app, asked, says):
    with pytest.raises(ValueError, match=says):
        app.inspector.jobs(**asked)
