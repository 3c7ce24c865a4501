"""Claims of executors that aren't our worker, by both faces: offered, started, told of, ended; and who holds what."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest

from taskq import (
    ClaimNotFound,
    InvalidTransition,
    JobNotFound,
    LeaseLost,
    PayloadTooLarge,
    QueueNotFound,
    connection,
    keys,
)
from taskq.record.lease import Claimant, Lease, read_token, token
from tests.lua.lead import check
from tests.lua.room import Room
from tests.waiting import wait_until


class Awaited:
    """The async face, called as if it weren't."""

    def __init__(self, app):
        self._app = app
        self._loop = asyncio.new_event_loop()

    def __getattr__(self, name):
        def call(*args, **options):
            return self._loop.run_until_complete(getattr(self._app.aclient, name)(*args, **options))

        return call

    def end(self):
        self._loop.run_until_complete(self._app.aclose())
        self._loop.close()


@pytest.fixture(params=["sync", "async"])
def client(request, app):
    if request.param == "sync":
        yield app.client
        return
    awaited = Awaited(app)
    yield awaited
    awaited.end()


@pytest.fixture
def task(app):
    return app.by_name("render", queue="video")


def one(client, **options):
    """The only waiting job, as an offer."""
    (job,) = client.claim("video", worker="ext-1", **{"start": False, **options})
    return job


# --- an attempt, from offer to end


def test_an_offer_is_started_told_of_and_completed(app, task, client):
    job = task.enqueue("a.mov", width=640)
    offer = one(client, poller="p7")
    assert (offer.id, offer.task, offer.queue, offer.attempt, offer.offered) == (job.id, "render", "video", 1, True)
    assert (offer.worker, offer.poller, offer.attempt_key) == ("ext-1", "p7", f"{job.id}#1")
    assert offer.arguments() == (("a.mov",), {"width": 640})
    assert abs(offer.claimed_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert offer.record.tags == ()
    assert job.refresh().to_dict()["started_at"] is None
    client.start(offer.token)
    client.start(offer.token)
    assert job.refresh().to_dict()["started_at"] is not None
    assert client.renew(offer.token) == "ok"
    client.report(offer.token, 3, 10, "frames")
    assert job.refresh().to_dict()["progress"] == {"n": 3, "total": 10, "note": "frames"}
    client.complete(offer.token, {"size": 12})
    client.complete(offer.token, {"size": 12})
    assert app.job(job.id).result() == {"size": 12}


def test_claimed_without_an_offer_it_runs_at_once(task, client):
    job = task.enqueue()
    mine = one(client, start=True)
    assert not mine.offered
    assert job.refresh().to_dict()["started_at"] is not None
    client.complete(mine.token)
    assert job.refresh().state == "completed"


def test_a_failed_attempt_is_retried_after_the_jobs_backoff_or_the_delay_given(task, client):
    job = task.enqueue()
    first = one(client, start=True)
    assert client.fail(first.token, "no such codec", delay=0) == "retryable"
    shown = job.refresh().to_dict()
    assert [(each["type"], each["message"], each["worker"]) for each in shown["errors"]] == [
        ("Error", "no such codec", "ext-1")
    ]
    second = one(client, start=True)
    assert client.fail(second.token, ValueError("bad")) == "retryable"
    shown = job.refresh().to_dict()
    assert (shown["errors"][1]["type"], shown["attempt"]) == ("ValueError", 2)
    assert client.fail(second.token, ValueError("bad")) == "ok"


def test_failed_for_good(task, client):
    job = task.enqueue()
    assert client.fail(one(client, start=True).token, "no", retry=False) == "failed"
    assert (job.refresh().state, job.to_dict()["reason"]) == ("failed", "no")


def test_the_last_attempt_fails_the_job(task, client):
    job = task.using(max_attempts=1).enqueue()
    assert client.fail(one(client, start=True).token, "no") == "failed"
    assert job.refresh().to_dict()["reason"] == "attempts exhausted: no"


def test_released_it_waits_again_its_attempt_refunded(task, client):
    job = task.enqueue()
    offer = one(client)
    assert client.release(offer.token) == "available"
    assert client.release(offer.token) == "ok"
    assert (job.refresh().state, job.attempt) == ("available", 0)
    with pytest.raises(ClaimNotFound):
        client.start(offer.token)


def test_what_was_only_offered_cannot_end(task, client):
    task.enqueue()
    offer = one(client)
    for call in (
        lambda: client.complete(offer.token),
        lambda: client.fail(offer.token, "x"),
        lambda: client.renew(offer.token),
        lambda: client.report(offer.token, 1),
    ):
        with pytest.raises(InvalidTransition, match="start it first"):
            call()
    client.start(offer.token)
    client.complete(offer.token)


def test_asked_to_stop_it_hears_so_with_its_renewal(task, client):
    job = task.enqueue()
    mine = one(client, start=True)
    assert job.cancel() == "requested"
    for _ in range(2):
        assert client.renew(mine.token) == "cancel", "until it does"
    assert client.release(mine.token) == "cancelled"


@pytest.mark.parametrize("retry", [True, False])
def test_asked_to_stop_it_ends_as_cancelled_when_it_fails(task, client, retry):
    job = task.enqueue()
    mine = one(client, start=True)
    job.cancel()
    assert client.fail(mine.token, "stopped", retry=retry) == "cancelled"
    assert job.refresh().state == "cancelled"


def test_who_lost_it_is_told(task, client):
    job = task.enqueue()
    first = one(client)
    client.release(first.token)
    second = one(client, start=True)
    for call in (
        lambda: client.complete(first.token, 1),
        lambda: client.fail(first.token, "x"),
        lambda: client.renew(first.token),
        lambda: client.report(first.token, 1),
        lambda: client.get_claim(first.token),
    ):
        with pytest.raises(LeaseLost):
            call()
    assert second.epoch > first.epoch
    assert job.refresh().state == "running"


def test_of_a_job_that_is_gone(task, client):
    task.using(keep=0).enqueue()
    mine = one(client, start=True)
    client.complete(mine.token)
    with pytest.raises(JobNotFound):
        client.complete(mine.token)
    with pytest.raises(ClaimNotFound):
        client.start(mine.token)


# --- time passes


def test_an_offer_that_lapses_goes_back_and_is_not_found(app, task, client):
    job = task.enqueue()
    offer = one(client, offer_ttl="50ms")
    wait_until(lambda: app.client.get_claim(offer.token).expires_at_ms < app.client.get_claim(offer.token).read_at_ms)
    with pytest.raises(ClaimNotFound, match="the offer of job"):
        client.start(offer.token)
    assert (job.refresh().state, job.attempt) == ("available", 0)
    with pytest.raises(ClaimNotFound):
        client.get_claim(offer.token)


def test_the_same_request_gives_the_same_jobs_while_they_are_held(task, client):
    task.enqueue()
    task.enqueue()
    first = one(client, request="r1")
    again = one(client, request="r1")
    assert again.token == first.token
    assert one(client, request="r2").id != first.id
    client.start(first.token)
    client.complete(first.token)
    assert client.claim("video", worker="ext-1", request="r1") == []


# --- many


def test_queues_are_asked_in_their_order_up_to_the_limit(app, client):
    app.by_name("x", queue="one").enqueue()
    two = [app.by_name("x", queue="two").enqueue() for _ in range(3)]
    jobs = client.claim(["one", "two", "never"], worker="ext-1", limit=3)
    assert [job.queue for job in jobs] == ["one", "two", "two"]
    assert [job.id for job in jobs[1:]] == [job.id for job in two[:2]]


def test_two_executors_share_without_a_double(app, task):
    for _ in range(60):
        task.enqueue()
    taken: list[str] = []

    def execute(name):
        while jobs := app.client.claim("video", worker=name, limit=4, start=False):
            for job in jobs:
                app.client.start(job.token)
                app.client.complete(job.token, name)
                taken.append(job.id)

    threads = [threading.Thread(target=execute, args=(f"ext-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken)) == 60


@pytest.mark.parametrize(
    "wrong",
    [
        {"worker": ""},
        {"worker": "a b"},
        {"limit": 0},
        {"limit": 251},
        {"queues": "No Queue"},
        {"queues": []},
        {"queues": ""},
        {"offer_ttl": 0, "start": False},
        {"offer_ttl": "2d", "start": False},
        {"lease": 0},
        {"poller": "a#b"},
        {"request": "x" * 129},
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused_before_it_is_sent(app, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)).removesuffix("s")):
        app.client.claim(**{"queues": "video", "worker": "ext-1", **wrong})


def test_a_result_that_is_too_large_leaves_the_lease(app, task):
    task.enqueue()
    mine = one(app.client, start=True)
    with pytest.raises(PayloadTooLarge, match="result"):
        app.client.complete(mine.token, b"x" * 1_100_000)
    assert app.client.renew(mine.token) == "ok"


# --- looking


def test_a_claim_is_found_by_its_token(task, client):
    job = task.enqueue()
    offer = one(client, poller="p")
    seen = client.get_claim(offer.token)
    assert (seen.id, seen.offered, seen.worker, seen.poller, seen.token) == (job.id, True, "ext-1", "p", offer.token)
    assert seen.claimed_at == offer.claimed_at
    assert seen.last_heartbeat_at == seen.claimed_at, "nothing was heard since"
    assert seen.expires_at_ms - seen.claimed_at_ms == 30_000, "so long it may wait for its start, unless told"
    client.start(offer.token)
    assert not client.get_claim(offer.token).offered
    client.complete(offer.token)
    for gone in (offer.token, "", "nonsense", "bm9uc2Vuc2U", "ä"):
        with pytest.raises(ClaimNotFound):
            client.get_claim(gone)


def test_outstanding_is_what_waits_and_what_is_offered(app, task, client):
    for delay in (0, 0, 0, "1h"):
        task.using(delay=delay).enqueue()
    other = app.by_name("x", queue="other").enqueue()
    assert client.outstanding("video") == 4
    assert client.outstanding() == 5
    offers = client.claim("video", worker="ext-1", limit=2, start=False)
    assert client.outstanding("video") == 4
    client.start(offers[0].token)
    assert client.outstanding("video") == 3
    client.complete(offers[0].token)
    client.start(offers[1].token)
    assert client.outstanding("video") == 2
    with pytest.raises(QueueNotFound):
        client.outstanding("never")
    assert client.has_outstanding(f"{other.id}#1")


def test_an_attempt_is_outstanding_until_it_starts(task, client):
    job = task.enqueue()
    first, second = f"{job.id}#1", f"{job.id}#2"
    assert [client.has_outstanding(key) for key in (first, second, "", "x", f"{job.id}#0", "Q:x#1")] == [
        True,
        False,
        False,
        False,
        False,
        False,
    ]
    offer = one(client)
    assert client.has_outstanding(first)
    client.start(offer.token)
    assert not client.has_outstanding(first)
    client.fail(offer.token, "x", delay="1h")
    assert [client.has_outstanding(key) for key in (first, second)] == [False, True]
    job.cancel()
    assert not client.has_outstanding(second)


def test_leases_of_a_queue_and_of_all(app, task, client):
    job = task.enqueue()
    other = app.by_name("x", queue="other").enqueue()
    offer = one(client)
    app.client.claim("other", worker="ext-2")
    assert [lease.id for lease in client.leases("video")] == [job.id]
    assert {lease.id for lease in client.leases()} == {job.id, other.id}
    lease = client.lease(offer.attempt_key)
    assert (lease.attempt_key, lease.worker, lease.task, lease.queue) == (offer.attempt_key, "ext-1", "render", "video")
    for key in (f"{job.id}#2", "", "nonsense", f"{job.queue}:nothing#1"):
        with pytest.raises(LeaseLost):
            client.lease(key)


def test_many_leases_are_read_page_by_page(app, task, monkeypatch):
    monkeypatch.setattr("taskq.client.claims.PAGE", 7)
    mine = {task.enqueue().id for _ in range(30)}
    assert {job.id for job in app.client.claim("video", worker="ext-1", limit=250)} == mine
    assert {lease.id for lease in app.client.leases("video")} == mine


def test_a_damaged_record_hides_no_other(app, task, raw, client):
    jobs = [task.enqueue() for _ in range(2)]
    client.claim("video", worker="ext-1", limit=2)
    raw.hset(keys.queue(app.settings.namespace, "video").job(jobs[0].id), "attempt", "many")
    assert [lease.id for lease in client.leases("video")] == [jobs[1].id]


# --- pure: what a lease says of itself


def lease_at(beat_ms, **options) -> Lease:
    fields = {
        "attempt_key": "q:a#1",
        "id": "q:a",
        "task": "t",
        "attempt": 1,
        "epoch": 5,
        "worker": "ext-1",
        "poller": "",
        "claimed_at_ms": 5,
        "beat_at_ms": beat_ms,
        "expires_at_ms": beat_ms + 8000,
        "read_at_ms": 20_000,
        "offered": False,
        "cancel": False,
    }
    return Lease(**{**fields, **options})


@pytest.mark.parametrize(
    "now,threshold,fresh",
    [
        (19_999, 10, True),
        (20_000, 10, False),
        (20_001, 10, False),
        (10_000, 0, False),
        (10_000, -1, False),
        (datetime.fromtimestamp(19.999, UTC), timedelta(seconds=10), True),
        (datetime.fromtimestamp(20, UTC), timedelta(seconds=10), False),
        (None, "10s", False),
        (None, "10001ms", True),
    ],
)
def test_fresh_is_less_than_the_threshold(now, threshold, fresh):
    assert lease_at(10_000).is_fresh(now, threshold) is fresh


def test_a_lease_says_when_its_holder_was_heard_of():
    lease = lease_at(10_000)
    assert lease.last_heartbeat_at == datetime.fromtimestamp(10, UTC)
    assert lease.age_ms == 10_000
    assert lease.to_dict()["age"] == 10.0
    assert lease_at(30_000).age_ms == 0
    assert lease_at(0).last_heartbeat_at == datetime.fromtimestamp(0, UTC)


def test_a_naive_time_is_refused():
    with pytest.raises(ValueError, match="aware"):
        lease_at(0).is_fresh(datetime(2030, 1, 1), 1)  # noqa: DTZ001 (that is the point)


@pytest.mark.parametrize(
    "key,worker,same",
    [
        ("q:a#1", "ext-1", True),
        ("q:a#2", "ext-1", False),
        ("q:a#1", "ext-2", False),
        ("", "ext-1", False),
        ("q:a#1", "", False),
    ],
)
def test_a_lease_matches_only_its_own_attempt_and_worker(key, worker, same):
    assert lease_at(0).matches(key, worker) is same


def test_nothing_matches_what_is_not_named():
    assert not lease_at(0, attempt_key="", worker="").matches("", "")


def test_a_token_says_which_claim():
    claim = Claimant("video:019b-x.y", 1_800_000_000_000, 3, "host@x:1")
    assert read_token(token(claim)) == claim
    assert "=" not in token(claim)
    assert " " not in token(claim)


def test_the_client_sends_a_claim_again_under_its_name(app, task, monkeypatch):
    """Its answer was lost on the way: the second time it is the same claim."""
    task.enqueue()
    task.enqueue()
    sent: list[str] = []
    execute = connection.run

    def twice(server, command, **options):
        sent.append(command.script.name)
        execute(server, command, **options)
        return execute(server, command, **options)

    monkeypatch.setattr("taskq.client.executing.run", twice)
    (job,) = app.client.claim("video", worker="ext-1", start=False)
    assert sent == ["claim"]
    monkeypatch.undo()
    assert [lease.id for lease in app.client.leases("video")] == [job.id]
    assert app.client.outstanding("video") == 2


# --- what an executor has


def test_who_says_nothing_of_itself_takes_what_needs_nothing(app, client):
    app.by_name("t", queue="video").using(labels={"gpu": "a100"}).enqueue()
    plain = app.by_name("t", queue="video").enqueue()
    assert [job.id for job in client.claim("video", worker="ext-1", limit=9)] == [plain.id]


def test_jobs_go_where_labels_amounts_and_target_all_fit(app, client):
    task = app.by_name("t", queue="video")
    plain = task.enqueue()
    gpu = task.using(labels={"gpu": "a100"}, resources={"gpu": 1}).enqueue()
    large = task.using(resources={"memory": "4GiB"}).enqueue()
    mine = task.using(target="ext-1", resources={"gpu": 1}).enqueue()

    def given(**has):
        return {job.id for job in client.claim("video", limit=9, start=False, **has)}

    assert given(worker="ext-2", labels={"gpu": "v100"}, free={"gpu": 9}) == {plain.id}
    assert given(worker="ext-2", labels={"gpu": "a100"}, free={"gpu": 0.5}) == set()
    assert given(worker="ext-2", labels={"gpu": "a100"}, free={"gpu": 1}) == {gpu.id}
    assert given(worker="ext-2", free={"gpu": 9, "memory": "3GiB"}) == set()
    assert given(worker="ext-2", free={"memory": "4GiB"}) == {large.id}
    assert given(worker="ext-1", labels={}) == set()
    assert given(worker="ext-1", free={"gpu": 1}) == {mine.id}


def test_no_more_is_given_than_what_is_free_suffices_for_together(app, client):
    task = app.by_name("t", queue="video")
    for _ in range(3):
        task.using(resources={"gpu": 1}).enqueue()
        task.using(resources={"gpu": 2}).enqueue()
    jobs = client.claim("video", worker="ext-1", limit=9, free={"gpu": 4})
    assert sum(job.record.needs.takes[0][1] for job in jobs) in {3000, 4000}


def test_nor_over_several_queues(app, client):
    queues = [f"video-{n}" for n in range(4)]
    for queue in queues:
        app.by_name("t", queue=queue).using(resources={"gpu": 1, "memory": "2GiB"}, labels={"zone": "a b"}).enqueue()
    has = {"labels": {"zone": "a b"}, "free": {"gpu": 3, "memory": "5GiB"}}
    first = client.claim(queues, worker="ext-1", limit=9, **has)
    assert [job.queue for job in first] == queues[:2]
    assert client.claim(queues, worker="ext-1", limit=9, labels=has["labels"], free={"gpu": 1, "memory": "1GiB"}) == []
    assert [job.queue for job in client.claim(queues, worker="ext-1", limit=9, **has)] == queues[2:]


async def test_awaited_it_is_the_same(app):
    app.by_name("t", queue="video").using(labels={"gpu": "a100"}).enqueue()
    assert await app.aclient.claim("video", worker="ext-1", labels={"gpu": "b"}) == []
    assert len(await app.aclient.claim("video", worker="ext-1", labels={"gpu": "a100"})) == 1
    await app.aclose()


@pytest.mark.parametrize("wrong", [{"labels": {"a": 1}}, {"free": {"a": "x"}}, {"labels": "a"}])
def test_what_an_executor_cannot_have_is_refused(client, wrong):
    with pytest.raises(ValueError, match=r"labels|resources|free"):
        client.claim("video", worker="ext-1", **wrong)


def test_a_queue_that_an_executor_asks_is_registered_as_one_that_a_worker_serves(client, raw, namespace):
    assert client.claim(["video", "audio"], worker="ext-1") == []
    cluster = keys.cluster(namespace)
    assert raw.smembers(cluster.fixed("queues")) == {b"audio", b"video"}
    for name in ("video", "audio"):
        report = check(Room(raw, keys.queue(namespace, name)))
        assert (report.found.total(), report.foreign) == (0, [])
