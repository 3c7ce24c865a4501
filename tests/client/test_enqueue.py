"""Enqueueing: one job and many, own ids, what is stored, and the registry of queues."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from taskq import Backoff, JobAlreadyExists, Options, TaskQ, commands, keys

OTHER = TaskQ()


def declared(app):
    @app.task(name="shop.send", queue="email", max_attempts=5, timeout=30)
    async def send(to, *, subject="hi"):
        return 202

    return send


def test_a_job_is_there_when_enqueue_returns(app):
    job = declared(app).enqueue("a@b.c", subject="x")
    assert (job.state, job.created, job.task, job.queue, job.attempt) == ("available", True, "shop.send", "email", 0)
    shown = job.to_dict()
    assert (shown["args"], shown["kwargs"], shown["max_attempts"], shown["priority"]) == (
        ["a@b.c"],
        {"subject": "x"},
        5,
        0,
    )
    assert (shown["timeout"], shown["id"]) == (None, job.id)


async def test_the_async_twin_does_the_same(on_loop):
    job = await declared(on_loop).aenqueue("a@b.c", subject="x")
    assert (job.state, job.created) == ("available", True)
    assert (await job.ato_dict())["kwargs"] == {"subject": "x"}


def test_every_option_reaches_the_record(app, raw, namespace):
    job = (
        declared(app)
        .using(
            priority=7,
            delay="1h",
            expires="2h",
            backoff=Backoff.fixed(5),
            timeout=60,
            hard_timeout=90,
            tags=["x"],
            meta={"request_id": "7"},
            id="order-7",
            keep="1d",
            keep_result=0,
            on_lease_lost="fail",
        )
        .enqueue("a")
    )
    assert (job.id, job.state) == ("email:order-7", "scheduled")
    stored = {
        k.decode(): v.decode("latin-1") for k, v in raw.hgetall(keys.queue(namespace, "email").job(job.id)).items()
    }
    created = int(stored.pop("created_at"))
    assert (int(stored.pop("scheduled_at")), int(stored.pop("expires_at"))) == (
        created + 3_600_000,
        created + 7_200_000,
    )
    assert len(stored.pop("token")) == 16
    assert stored.pop("payload")
    assert not stored.pop("entry", ""), "a scheduled job stands in no lane"
    assert stored == {
        "state": "scheduled",
        "task": "shop.send",
        "priority": "7",
        "max_attempts": "5",
        "backoff": "fixed:5000:86400000",
        "timeout": "60000",
        "hard_timeout": "90000",
        "tags": '["x"]',
        "meta": '{"request_id": "7"}',
        "keep": "86400000",
        "keep_result": "0",
        "on_lease_lost": "fail",
    }


def test_at_a_past_time_a_job_is_available_at_a_later_one_scheduled(app):
    send = declared(app)
    now = datetime.now(UTC)
    assert send.using(at=now - timedelta(hours=1)).enqueue("a").state == "available"
    assert send.using(at=now + timedelta(hours=1)).enqueue("a").state == "scheduled"


def test_an_own_id_is_enqueued_once(app):
    send = declared(app)
    first, second = send.using(id="one").enqueue("a"), send.using(id="one").enqueue("b")
    assert (first.created, second.created, first.id) == (True, False, second.id)
    assert second.state is None, "the server only said that it exists"
    assert second.refresh().state == "available"
    assert second.to_dict()["args"] == ["a"]


def test_threads_and_loop_are_told_apart(app, hand):
    @app.task(name="shop.add")
    def add(x): ...

    add.enqueue(1)
    assert [job.fields[b"class"] for job in hand.claim()] == [b"thread"]


def test_a_queue_is_known_from_its_first_job_on(app, raw, namespace):
    send = declared(app)
    send.enqueue("a")
    app.enqueue_many([app.by_name("x", queue="b").call(), app.by_name("x", queue="a").call()])
    assert raw.smembers(keys.cluster(namespace).fixed("queues")) == {b"email", b"a", b"b"}
    raw.delete(keys.cluster(namespace).fixed("queues"))
    send.enqueue("a")
    assert not raw.exists(keys.cluster(namespace).fixed("queues")), "once a process"


def test_a_stub_sends_its_backoff_and_timeout_with_the_job(app):
    @app.stub(name="mail.send", queue="email", timeout=30, backoff=Backoff.fixed(5))
    def send_mail(to: str) -> int:
        raise NotImplementedError

    record = send_mail.enqueue("a@b.c").refresh().record
    assert (record.task, record.timeout_ms, record.backoff) == ("mail.send", 30_000, "fixed:5000:86400000")


# --- by name


def test_a_name_alone_goes_where_it_is_told(app):
    assert app.by_name("mail.send", queue="email").enqueue("a").queue == "email"


def test_a_name_alone_goes_where_nodes_serve_it(app, run, namespace):
    cluster = keys.cluster(namespace)
    assert app.by_name("mail.send").enqueue("a").queue == "default", "nobody knows it yet"
    beat = commands.register_node(
        cluster, node="n", ttl_ms=30_000, fields={"pid": 1}, tasks=[("mail.send", "email", "async")]
    )
    run(beat)
    task = app.by_name("mail.send")
    assert task.enqueue("a").queue == "email"
    assert task.using(priority=3).enqueue("a").queue == "email"
    assert task.using(queue="other").enqueue("a").queue == "other"
    assert app.by_name("mail.send").call("a").task.plan().q.name == "email"


def test_the_nodes_word_beats_the_apps_default_queue(app, run, namespace):
    app.configure(defaults=Options(queue="low"))
    assert app.by_name("mail.send").enqueue("a").queue == "low"
    run(
        commands.register_node(
            keys.cluster(namespace), node="n", ttl_ms=9000, fields={}, tasks=[("mail.send", "email", "async")]
        )
    )
    assert app.by_name("mail.send").enqueue("a").queue == "email"


def knows(run, namespace, *tasks, node="n"):
    fields = {"tasks": json.dumps([task for task, *_ in tasks])}
    run(commands.register_node(keys.cluster(namespace), node=node, ttl_ms=30_000, fields=fields, tasks=tasks))


ONCE = json.dumps({"max_attempts": 1, "priority": 7, "tags": ["x"], "keep": "1h", "later": "?"})


@pytest.mark.parametrize("queue", [None, "elsewhere"])
async def test_a_name_alone_brings_the_tasks_own_options(on_loop, run, namespace, queue):
    knows(run, namespace, ("mail.send", "email", "async", ONCE))
    task = on_loop.by_name("mail.send", queue=queue)
    for job in (task.enqueue("a"), await on_loop.by_name("mail.send", queue=queue).aenqueue("a")):
        record = job.refresh().record
        assert record.queue == (queue or "email")
        assert (record.max_attempts, record.priority, record.tags, record.keep_ms) == (1, 7, ("x",), 3_600_000)
    record = task.using(max_attempts=9).enqueue("a").refresh().record
    assert (record.max_attempts, record.priority) == (9, 7)


def test_the_nodes_are_asked_once_a_task_and_of_unknown_ones_now_and_then(app, run, namespace, monkeypatch):
    asked = []
    ask = app.client.task_info
    monkeypatch.setattr(app.client, "task_info", lambda task: asked.append(task) or ask(task))
    for _ in range(3):
        app.by_name("mail.read", queue="email").enqueue("a")
    assert asked == ["mail.read"]
    knows(run, namespace, ("mail.send", "email", "async", ONCE))
    for _ in range(3):
        app.by_name("mail.send", queue="email").enqueue("a")
    app.by_name("mail.send").using(delay=1).enqueue("a")
    assert asked == ["mail.read", "mail.send"]


@pytest.mark.parametrize("options", ["{", "[]", '"x"', "[" * 9999])
def test_options_that_cant_be_read_are_none(app, run, namespace, options):
    knows(run, namespace, ("mail.send", "email", "async", options))
    assert app.by_name("mail.send").enqueue("a").refresh().record.max_attempts == 3


def test_a_task_that_nobody_knows_is_said_once_with_the_nearest(app, run, namespace, caplog):
    knows(run, namespace, ("shop.mail.send", "email", "async"))
    assert app.by_name("mail.send").enqueue("a").queue == "default"
    app.by_name("mail.send").enqueue("a")
    app.by_name("else.where", queue="default").enqueue("a")
    (line,) = [each.getMessage() for each in caplog.records]
    assert "no worker knows this task: its jobs wait until one does" in line
    assert "task='mail.send' queue='default'" in line
    assert "did you mean 'shop.mail.send'?" in line


def test_two_queues_for_a_task_are_said(app, run, namespace, caplog):
    knows(run, namespace, ("mail.send", "b", "async"), node="n1")
    run(
        commands.register_node(
            keys.cluster(namespace), node="n2", ttl_ms=9000, fields={}, tasks=[("mail.send", "a", "async")]
        )
    )
    assert app.by_name("mail.send").enqueue("a").queue == "a"
    assert "from two queues" in caplog.text


# --- many


def test_many_jobs_come_back_in_the_order_of_their_calls(app):
    send = declared(app)
    calls = [send.using(queue=f"q{n % 3}", id=str(n)).call(n) for n in range(700)]
    jobs = app.enqueue_many(calls)
    assert [job.id for job in jobs] == [f"q{n % 3}:{n}" for n in range(700)]
    assert all(job.created and job.state == "available" for job in jobs)
    assert [app.queue(f"q{n}").counts().available for n in range(3)] == [234, 233, 233]
    assert jobs[5].to_dict()["args"] == [5]


async def test_many_jobs_awaited(on_loop):
    send = declared(on_loop)
    jobs = await on_loop.aenqueue_many(send.call(n) for n in range(300))
    assert len({job.id for job in jobs}) == 300
    assert (await on_loop.queue("email").acounts()).available == 300


def test_the_same_call_twice_is_two_jobs(app):
    call = declared(app).call("a")
    one, two = app.enqueue_many([call, call])
    assert one.id != two.id


def test_no_calls_no_jobs(app):
    assert app.enqueue_many([]) == []


def test_an_existing_id_gives_that_job_or_refuses_all(app):
    send = declared(app)
    send.using(id="b").enqueue(1)
    calls = [send.using(id=id).call(2) for id in "abc"]
    with pytest.raises(JobAlreadyExists, match="email:b exists already; nothing was added"):
        app.enqueue_many(calls, exists="raise")
    assert app.queue("email").counts().available == 1
    assert [job.created for job in app.enqueue_many(calls)] == [True, False, True]
    assert app.job("email:b").to_dict()["args"] == [1]


def test_large_payloads_travel_alone(app):
    send = declared(app)
    jobs = app.enqueue_many([send.call("x" * 900_000) for _ in range(3)])
    assert len(jobs) == 3
