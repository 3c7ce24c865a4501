"""Limits that code alone declares, on real workers: in the task's own queue and in another, whoever enqueues, and
though the jobs were there first.
"""

from __future__ import annotations

import pytest

from taskq import TaskQ, keys
from tests.chaos.conftest import FOLDER, _load
from tests.chaos.conserve import complaints
from tests.fleet import Fleet
from tests.ledger import VARIABLE, most_at_once
from tests.waiting import wait_until


@pytest.fixture
def shop(server_url, namespace, monkeypatch):
    """The app, as its producers import it."""
    monkeypatch.setenv("TASKQ_URL", server_url)
    monkeypatch.setenv("TASKQ_NAMESPACE", namespace)
    module = _load("limitshop", FOLDER / "limitshop.py", monkeypatch)
    yield module
    module.app.close()


@pytest.fixture
def workers(server_url, namespace, shop, ledger, tmp_path):
    """`workers("-q", "desk")` starts a node of two workers."""
    environment = {"TASKQ_URL": server_url, "TASKQ_NAMESPACE": namespace, VARIABLE: ledger.url}
    fleet = Fleet("limitshop", folder=FOLDER, environment=environment, logs=tmp_path)
    yield lambda *flags: fleet.start("-w", "2", "-c", "10", *flags)
    fleet.close()


@pytest.fixture
def ended(shop, raw, namespace):
    """Waits until all have completed; then nothing is left of their slots, and the queues are sound."""

    def ended(jobs):
        def completed():
            return all(each.state == "completed" for each in shop.app.client.jobs([job.id for job in jobs]))

        wait_until(completed, 90, what=f"{len(jobs)} jobs completed")
        for queue in {keys.queue_of(job.id) for job in jobs}:
            q = keys.queue(namespace, queue)
            assert complaints(raw, q, {job.id for job in jobs if job.id.startswith(f"{queue}:")}) == []
            assert list(raw.scan_iter(q.slots("*"))) == []

    return ended


def at_once(ledger, jobs):
    """How many of these ran at the same time at most."""
    ids = {job.id for job in jobs}
    return most_at_once(each for each in ledger.entries() if each.job in ids)


def sent(shop, **options):
    """Calls of both tasks for two names: who → jobs."""
    jobs = {}
    for who in ("acme", "bolt"):
        batch = shop.app.enqueue_many([shop.type_up.using(**options).call(who, 0.3) for _ in range(4)])
        jobs[who] = [*batch, *(shop.serve.using(**options).enqueue(who, 0.3) for _ in range(4))]
    return jobs


@pytest.mark.timeout(180)
@pytest.mark.parametrize("queue", ["desk", "annex"])
def test_no_more_run_at_once_than_code_says(shop, workers, ledger, ended, queue):
    """The task's queue, and one that no task names."""
    jobs = sent(shop, queue=queue)
    workers("-q", "desk,annex")
    ended([job for some in jobs.values() for job in some])
    later = sent(shop, queue=queue)
    ended([job for some in later.values() for job in some])
    for some in (jobs, later):
        assert {who: at_once(ledger, each) for who, each in some.items()} == {"acme": 2, "bolt": 2}


@pytest.mark.timeout(180)
def test_nor_of_those_enqueued_by_name_or_by_a_stub(shop, workers, ledger, ended):
    """A program without the code; the nodes' word reaches the other queue by it, the stub says its own."""
    producer = TaskQ()
    workers("-q", "desk,annex")
    wait_until(lambda: producer.client.task_info(shop.serve.name), 20)
    jobs = [producer.by_name(shop.serve.name, queue="annex").enqueue("acme", 0.3) for _ in range(8)]

    @producer.stub(name=shop.type_up.name, limits=shop.type_up.options.limits)
    def type_up(who: str, seconds: float) -> None:
        raise NotImplementedError

    jobs += [type_up.using(queue="annex").enqueue("acme", 0.3) for _ in range(4)]
    ended(jobs)
    assert at_once(ledger, jobs) == 2
    producer.close()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("queue", ["desk", "annex"])
def test_a_rate_in_code_lets_no_more_begin(shop, workers, ended, queue):
    jobs = [shop.ring.using(queue=queue).enqueue() for _ in range(40)]
    workers("-q", "desk,annex")
    ended(jobs)
    begun = sorted(record.epoch for record in shop.app.client.jobs([job.id for job in jobs]))
    for n, first in enumerate(begun):
        assert sum(first <= each < first + 1000 for each in begun[n:]) <= 10 + 2 + 1


@pytest.mark.timeout(120)
def test_an_operators_word_beats_code_until_it_is_taken_back(shop, workers, ledger, ended):
    """Also with workers that say their own every minute, and with jobs that come later."""
    first = shop.serve.using(queue="annex").enqueue("acme", 0)
    workers("-q", "desk,annex")
    queue = shop.app.queue("annex")
    queue.limit("desk", concurrency=4)
    jobs = [shop.serve.using(queue="annex").enqueue("acme", 0.5) for _ in range(12)]
    ended([first, *jobs])
    assert at_once(ledger, jobs) == 4
    queue.limit("desk", reset=True)
    jobs = [shop.serve.using(queue="annex").enqueue("acme", 0.3) for _ in range(6)]
    ended(jobs)
    assert at_once(ledger, jobs) == 2
