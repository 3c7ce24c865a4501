"""`app.queue("q").reserve(…)`, `bind` and the rest, and their twins: a slot of a queue before there is a job."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from taskq import AdmissionConflict, AdmissionNotFound, QueueNotFound, Reservation, ServerFull, TaskQ
from tests.chaos.proxy import Proxy
from tests.client import reservers
from tests.waiting import wait_until


@pytest.fixture
def queue(app):
    return app.queue("q")


@pytest.fixture
def task(app):
    return app.by_name("shop.send", queue="q")


def test_from_a_slot_to_a_job(app, queue, task, hand):
    slot = queue.reserve(("nightly", 7), max_concurrency=1)
    assert slot and slot == Reservation(reserved=True, reason=None, token=slot.token)  # noqa: PT018
    assert slot.token.startswith("q:")
    refused = queue.reserve(("nightly", 7), max_concurrency=1)
    assert not refused and (refused.reason, refused.token) == ("duplicate", None)  # noqa: PT018
    assert queue.reserve("another", max_concurrency=1).reason == "no_capacity"
    assert queue.reserve("another", max_concurrency=3, outside_occupancy=2).reason == "no_capacity"
    job = queue.bind(slot.token, task.call("a@b.c"))
    assert (job.created, job.state, job.task, job.queue) == (True, "available", "shop.send", "q")
    again = queue.bind(slot.token, task.call("a@b.c"))
    assert again.id == job.id
    with pytest.raises(AdmissionConflict, match=f"bound to job {job.id}"):
        queue.bind(slot.token, task.call("another"))
    with pytest.raises(AdmissionConflict, match="which lives: cancel that"):
        queue.release_reservation(slot.token)
    assert queue.finalize(("nightly", 7)) is False
    (claimed,) = hand.claim("q")
    assert claimed.id == job.id
    assert queue.reserve("another", max_concurrency=1).reason == "no_capacity"
    hand.complete(claimed)
    assert queue.reserve(("nightly", 7), max_concurrency=1).reserved
    assert queue.bind(slot.token, task.call("a@b.c")).id == job.id, "also after it has ended"


async def test_the_twins(on_loop, hand):
    queue, task = on_loop.queue("q"), on_loop.by_name("shop.send", queue="q")
    slot = await queue.areserve("k", max_concurrency=2)
    assert (await queue.areserve("k", max_concurrency=2)).reason == "duplicate"
    (row,) = (await queue.areservations())["data"]
    assert (row["token"], row["key"], row["state"], row["job"]) == (slot.token, "k", "reserved", None)
    job = await queue.abind(slot.token, task.call(1))
    with pytest.raises(AdmissionConflict):
        await queue.arelease_reservation(slot.token)
    assert await queue.afinalize("k") is False
    assert await queue.acleanup_reservations(older_than=0) == 0
    assert (await job.acancel()) == "removed"
    await queue.arelease_reservation(slot.token)
    with pytest.raises(AdmissionNotFound):
        await queue.arelease_reservation(slot.token)
    assert (await queue.areservations())["total"] == 0


def test_a_dispatcher_that_dies_between_the_two_leaves_nothing(queue, task):
    slot = queue.reserve("k", max_concurrency=1, ttl="300ms")
    assert queue.reserve("k", max_concurrency=1).reason == "duplicate"
    wait_until(lambda: queue.reserve("k", max_concurrency=1, ttl="1ms").reserved, timeout=30)
    with pytest.raises(AdmissionNotFound, match="its time ran out before it was bound"):
        queue.bind(slot.token, task.call())


def test_what_is_given_back_and_cleaned_up(app, queue, task, raw, namespace):
    for token in ("q:nobody", "nonsense", "", "Q:x", "q:a b"):
        with pytest.raises(AdmissionNotFound):
            queue.release_reservation(token)
        with pytest.raises((AdmissionNotFound, ValueError)):
            queue.bind(token, task.call())
    tokens = [queue.reserve(n, max_concurrency=300).token for n in range(260)]
    queue.release_reservation(tokens[0])
    bound = queue.bind(tokens[1], task.call())
    dead = queue.bind(tokens[2], task.call())
    raw.delete(f"{namespace}:{{q}}:job:{dead.id}")
    assert queue.reservations()["total"] == 259
    assert queue.cleanup_reservations(older_than="1h") == 1
    assert queue.cleanup_reservations(older_than=0) == 257
    (row,) = queue.reservations()["data"]
    assert (row["job"], row["state"], row["expires_at"], row["key"]) == (bound.id, "available", None, "1")
    assert queue.finalize("nobody") is queue.finalize("") is queue.finalize(2) is False


def test_finalize_frees_a_key_that_no_job_was_bound_to(queue, task):
    slot = queue.reserve("k", max_concurrency=1)
    assert queue.finalize("k") is True
    with pytest.raises(AdmissionNotFound):
        queue.bind(slot.token, task.call())
    slot = queue.reserve("k", max_concurrency=1)
    assert slot, "its key and its slot are free"
    queue.bind(slot.token, task.call())
    assert queue.finalize("k") is False, "a job that waits lives"
    assert queue.reserve("k", max_concurrency=1).reason == "duplicate"


def test_a_client_does_what_a_queue_does(app, queue, task):
    client = app.client
    slot = client.reserve("q", "k", max_concurrency=2)
    assert client.reservations("q")["data"][0]["token"] == slot.token
    made = client.bind(slot.token, task.call("acme"))
    assert (made.word, queue.jobs()["data"][0]["id"]) == ("available", made.id)
    assert client.bind(slot.token, task.call("acme")) == made
    assert client.finalize("q", "k") is False
    queue.release(client.reserve("q", "other", max_concurrency=2).token)
    assert client.cleanup("q", older_than=0) == queue.cleanup(older_than=0) == 0
    with pytest.raises(QueueNotFound):
        client.reservations("nobody")


async def test_and_so_does_its_twin(on_loop):
    client, task = on_loop.aclient, on_loop.by_name("shop.send", queue="q")
    slot = await client.reserve("q", "k", max_concurrency=2)
    made = await client.bind(slot.token, task.call("acme"))
    (row,) = (await client.reservations("q"))["data"]
    assert (made.word, row["job"]) == ("available", made.id)
    assert await client.cleanup("q", older_than=0) == await on_loop.queue("q").acleanup(older_than=0) == 0
    with pytest.raises(TypeError, match="call='acme' is no call"):
        await client.bind(slot.token, "acme")


@pytest.mark.parametrize("call", ["acme", None, len, ("acme",)])
def test_what_is_no_call_is_refused_with_what_to_give(app, queue, call):
    slot = queue.reserve("k", max_concurrency=1)
    for bind in (queue.bind, app.client.bind):
        with pytest.raises(TypeError, match=r"is no call: give a task with its arguments, such as send\.call"):
            bind(slot.token, call)


@pytest.mark.parametrize(
    "key,error", [(None, TypeError), (("a", None), TypeError), ([], ValueError), (b"k", ValueError)]
)
def test_a_key_is_required_and_must_name_something(app, queue, key, error):
    for ask in (lambda: queue.reserve(key, max_concurrency=1), lambda: queue.finalize(key)):
        with pytest.raises(error, match="key="):
            ask()


def test_one_that_exists_is_given_and_the_slot_is_free(queue, task):
    there = task.using(id="mine").enqueue()
    slot = queue.reserve("k", max_concurrency=1)
    job = queue.bind(slot.token, task.using(id="mine").call())
    assert (job.id, job.created) == (there.id, False)
    unique = task.using(unique="u")
    there = unique.enqueue()
    slot = queue.reserve("k", max_concurrency=1)
    job = queue.bind(slot.token, unique.call(1))
    assert (job.id, job.created) == (there.id, False)
    assert queue.reserve("k", max_concurrency=1)


def test_a_mistyped_queue_is_no_empty_one(app, task, queue):
    for call in (app.queue("nobody").reservations, lambda: app.queue("nobody").cleanup_reservations(older_than=0)):
        with pytest.raises(QueueNotFound):
            call()
    slot = queue.reserve("k", max_concurrency=1)
    with pytest.raises(ValueError, match=r"is a slot of queue q, and the call goes to queue other: use .using\(queue"):
        queue.bind(slot.token, task.using(queue="other").call())


@pytest.mark.parametrize(
    "key,options,rule",
    [
        ("", {}, "key='' is empty"),
        ([1], {}, r"key=\[1\] can't name a reservation"),
        ("k", {"max_concurrency": 0}, "max_concurrency=0 is out of range"),
        ("k", {"max_concurrency": 2**63}, "max_concurrency=9223372036854775808 is out of range"),
        ("k", {"outside_occupancy": -1}, "outside_occupancy=-1 is out of range"),
        ("k", {"outside_occupancy": 10**18}, "outside_occupancy=1000000000000000000 is out of range"),
        ("k", {"ttl": 0}, "ttl=0 is out of range"),
        ("k", {"ttl": "2d"}, "a reservation holds 1 ms to 24h|a reservation holds 1 ms to 1d"),
        ("k", {"ttl": "soon"}, "ttl='soon'"),
    ],
)
def test_what_cannot_be_is_refused_by_its_rule(queue, key, options, rule):
    with pytest.raises(ValueError, match=rule):
        queue.reserve(key, **{"max_concurrency": 1, **options})


def test_a_number_that_is_none_is_refused(queue):
    with pytest.raises(TypeError, match="max_concurrency='2' is no number"):
        queue.reserve("k", max_concurrency="2")
    with pytest.raises(TypeError, match="token=7 is no reservation's token"):
        queue.release_reservation(7)


def test_a_full_server_takes_no_job_and_the_slot_stays(queue, task, raw):
    slot = queue.reserve("k", max_concurrency=1)
    raw.config_set("maxmemory", 1)
    try:
        with pytest.raises(ServerFull):
            queue.bind(slot.token, task.call())
    finally:
        raw.config_set("maxmemory", 0)
    assert queue.bind(slot.token, task.call()).created


# --- answers that are lost, and many at once


@pytest.fixture
def far(embedded: Any, namespace: str) -> Iterator[tuple[TaskQ, Proxy]]:
    proxy = Proxy(embedded.port)
    app = TaskQ(proxy.url, namespace=namespace)
    yield app, proxy
    app.close()
    proxy.close()


@pytest.mark.parametrize("script", ["reserve", "bind", "release_reservation"])
def test_a_lost_answer_is_asked_for_again_and_done_once(far, queue, script):
    app, proxy = far
    lost = []

    def fate(what: str) -> str:
        if what == script and not lost:
            lost.append(what)
            return "lost"
        return "pass"

    proxy.fate = fate  # type: ignore[assignment]
    task = app.by_name("shop.send", queue="q")
    slot = app.queue("q").reserve("k", max_concurrency=1)
    assert slot
    if script == "bind":
        job = app.queue("q").bind(slot.token, task.call())
        assert job.created
        assert queue.counts().available == 1
        assert queue.jobs()["data"][0]["id"] == job.id
    else:
        app.queue("q").release_reservation(slot.token)
    assert lost == [script]


def test_many_processes_never_have_a_slot_too_many(server_url, namespace):
    command = [sys.executable, "-m", "tests.client.reservers", server_url, namespace]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["codes"] == [0]
    said: dict[str, Counter[Any]] = {}
    for kind, word in found["said"]:
        said.setdefault(kind, Counter())[word] += 1
    others = reservers.PROCESSES - reservers.SLOTS
    assert said["own keys"] == {"reserved": reservers.SLOTS, "no_capacity": others}
    assert said["one key"] == {"reserved": 1, "duplicate": reservers.PROCESSES - 1}
    assert 1 < found["most"] <= reservers.SLOTS
    assert found["most_of_key"] == 1
    assert sum(word * n for word, n in said["churn"].items()) > 0
