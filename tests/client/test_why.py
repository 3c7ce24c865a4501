"""`job.why()`: for each thing that can hold a job there is a sentence that says it, with its numbers."""

from __future__ import annotations

import pytest

from taskq import Concurrency, Lock, Rate, commands, keys


@pytest.fixture
def work(app, enter):
    """A task that a node of two workers knows; its jobs hold a lock or slots as the test asks."""

    @app.task(name="work")
    def work(tenant: str = "acme") -> None:
        raise NotImplementedError

    enter(stats={"slots": 40, "busy": 0})
    return work


def test_a_time_that_is_not_yet(work):
    found = work.using(delay="90s").enqueue().why()
    assert (found.gate, found.state) == ("due", "scheduled")
    assert found.text.startswith("it is due at 20")
    assert 80 < found.numbers["in"] <= 90


def test_a_paused_queue_task_or_key(app, work):
    job, of_acme = work.enqueue(), work.using(fair="tenant").enqueue()
    queue = app.queue("default")
    queue.pause()
    assert job.why().text.startswith("queue default is paused since 20")
    assert job.why().text.endswith(": taskq queue resume default")
    queue.resume()
    queue.pause(key="acme")
    assert of_acme.why().text == "key acme is paused: taskq queue resume default --key acme"
    assert job.why().gate == "turn"
    work.pause()
    assert job.why().text == "task work is paused: taskq task resume work --queue default"


def test_a_limit_that_is_reached_names_who_holds_it(app, work, hand):
    jobs = [work.using(limits=[Concurrency(2, by="tenant", name="crm")]).enqueue() for _ in range(3)]
    app.queue("default").limit("crm", concurrency=2)
    held = [job.id for job in hand.claim()]
    assert jobs[2].why().text == f"limit crm=acme is at 2/2, held by {', '.join(held)}"
    assert jobs[2].why().to_dict()["holders"] == held


def test_the_queue_s_own_limit_tells_what_is_reserved(app, work, hand):
    job, other = work.enqueue(), work.enqueue()
    queue = app.queue("default")
    queue.limit(concurrency=2)
    queue.reserve("k", max_concurrency=9)
    assert [each.id for each in hand.claim()] == [job.id]
    assert other.why().text == f"the limit of queue default is at 2/2, held by {job.id}, 1 reserved"


def test_a_rate_tells_when_its_next_token_comes(app, work, hand):
    jobs = [work.using(limits=[Rate("1/min", name="api")]).enqueue() for _ in range(2)]
    app.queue("default").limit("api", rate="1/min")
    hand.claim()
    found = jobs[1].why()
    assert found.text.startswith("limit api: its next token comes in 5")
    assert 30 < found.numbers["in"] <= 60


def test_a_lock_names_its_holder(work, hand):
    jobs = [work.using(lock=Lock("account", by="tenant")).enqueue() for _ in range(2)]
    hand.claim()
    assert jobs[1].why().text == f"it waits for lock account=acme, held by {jobs[0].id}"


def test_its_place(work):
    assert work.enqueue().why().text == "it waits for its turn: it is next"
    work.using(priority=3).enqueue()
    jobs = [work.enqueue() for _ in range(3)]
    assert jobs[2].why().text == "it waits for its turn: 3 jobs before it in its lane, 1 lane before that"
    assert jobs[2].why().numbers | {"lanes_ahead": 1, "jobs_ahead": 3} == jobs[2].why().numbers


def test_all_slots_are_busy_by_what_runs_whatever_their_node_said_last(work, enter, hand):
    enter(stats={"slots": 0, "busy": 0})
    enter("hand-1", stats={"slots": 2, "busy": 0})
    jobs = [work.enqueue() for _ in range(3)]
    held = hand.claim(limit=2)
    assert jobs[2].why().text == "all slots are busy, 2/2; it is next"
    enter("hand-1", stats={"slots": 2, "busy": 2})
    hand.complete(held[0])
    assert jobs[2].why().text == "it waits for its turn: it is next"
    assert jobs[2].why().numbers["busy"] == 1


@pytest.mark.usefixtures("on_loop")
async def test_an_amount_that_is_taken_names_who_holds_it(app, work, enter, run):
    enter(workers=1, capacity={"gpu": 2, "cpu": 4}, stats={"slots": 16, "busy": 2}, queues=["default", "other"])
    on_gpu = work.using(resources={"gpu": 1})
    first, second = (on_gpu.using(queue=queue).enqueue() for queue in ("default", "other"))
    third, fourth = (on_gpu.enqueue() for _ in range(2))
    (klass,) = run(commands.classes(keys.queue(app.settings.namespace, "default"))).classes
    assert third.why().text == "it waits for its turn: 1 job before it in its lane, 0 lanes before that"
    for queue in ("default", "other"):
        run(commands.claim(
            keys.queue(app.settings.namespace, queue), worker="n.0", request=1, lease_ms=8000, limit=1,
            free={"async": 1, "thread": 1, "+gpu": 1000}, narrow={klass: {"thread": 1, "+gpu": 1000}},
        ))  # fmt: skip
    found = third.why()
    assert (
        found.text == f"gpu: 0 of 2 free, held by {first.id}, {second.id}; it is next, once gpu=1 is free on one worker"
    )
    assert found.numbers["resources"] == {"gpu": {"free": 0, "of": 2}}
    assert (await fourth.awhy()).text.startswith("gpu: 0 of 2 free")
    running = [{"job": job.id, "task": "work", "started_at": None} for job in (first, second)]
    enter(workers=1, capacity={"gpu": 2, "cpu": 4}, stats={"slots": 16, "busy": 2, "running": running})
    node = app.nodes.get("n")
    assert node["stats"]["resources"] == {"gpu": {"used": 2, "free": 0}, "cpu": {"used": 0, "free": 4}}
    assert await app.nodes.aget("n") == node


@pytest.mark.parametrize(
    "asked, text",
    [
        ({"resources": {"gpu": 1}}, "it needs gpu=1, 3 live workers, none with it"),
        ({"resources": {"memory": "4GiB"}}, "it needs memory=4GiB, 3 live workers, none with it"),
        ({"labels": {"zone": "eu"}}, "it needs label zone=eu, 3 live workers, none with it"),
        ({"resources": {"cpu": 4, "fpga": 1}},
         "it needs cpu=4 and fpga=1 on one worker, 3 live workers, none with all of it"),
        ({"target": "web-9"}, "its target web-9 is not there: 2 live nodes, none of that name"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("on_loop")
async def test_what_no_worker_has(work, enter, asked, text):
    wanted = work.using(**asked).enqueue()  # nobody knows yet what these nodes have
    enter(capacity={"cpu": 8})
    enter("m", workers=1, capacity={"fpga": 1})
    found = await wanted.awhy()
    assert (found.gate, found.text) == ("worker", text)
    assert wanted.why() == found


def test_nobody_serves_the_queue_or_knows_the_task(app, work, enter):
    enter(tasks=["other"], stats={})
    assert work.enqueue().why().text == "1 live node serves queue default, and none knows task work"
    away = work.using(queue="away").enqueue()
    assert away.why().text == "no live taskq worker serves queue away: taskq worker APP -q away"


def test_a_worker_that_did_not_know_its_task_handed_it_back(app, work, hand, run):
    job = work.enqueue()
    (held,) = hand.claim()
    back = commands.Snoozed(held.id, held.epoch, "unknown", 60_000, "UnknownTask: no task work here")
    q = keys.queue(app.settings.namespace, "default")
    run(commands.snooze(q, worker="hand-1.0", grace_ms=3_600_000, jobs=[back]))
    assert job.why().text.startswith("a worker handed it back: UnknownTask: no task work here; it is tried again in ")
