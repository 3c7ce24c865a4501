"""Routing with real workers: what needs a label and a resource runs only there, and holds up nobody meanwhile."""

from __future__ import annotations

from itertools import pairwise

import pytest

from taskq.errors import Unschedulable
from tests.waiting import wait_until


def test_jobs_run_only_where_they_fit_and_hold_up_nobody(start, app, server_url, namespace):
    place = ("--url", server_url, "--namespace", namespace)
    start("worker", "shop", "--capacity", "cpu=4", *place)
    start("worker", "shop", "--label", "gpu=a100", "--capacity", "gpu=1", *place)
    nodes = wait_until(lambda: len(found := app.nodes.list()["data"]) == 2 and found, timeout=40)
    (gpu,) = [node["id"] for node in nodes if node["labels"] == {"gpu": "a100"}]

    slow, add = app.by_name("shop.slow", queue="default"), app.by_name("shop.add", queue="default")
    large = add.using(labels={"gpu": "h100"}).enqueue(1, 1)  # nobody is labelled so
    on_gpu = slow.using(labels={"gpu": "a100"}, resources={"gpu": 1})
    jobs = [on_gpu.enqueue(0.3) for _ in range(4)]
    others = [add.enqueue(n, n) for n in range(20)]

    assert [job.result(timeout=60) for job in others] == [2 * n for n in range(20)]
    for job in jobs:
        job.join(60)
    records = sorted((app.client.job(job.id) for job in jobs), key=lambda record: record.started_at_ms)
    assert {record.worker.rpartition(".")[0] for record in records} == {gpu}
    for first, second in pairwise(records):
        assert first.finished_at_ms <= second.started_at_ms, "one gpu, one job at a time"
    assert large.refresh().state == "available"
    assert large.why().text == "it needs label gpu=h100, 2 live workers, none with it"
    with pytest.raises(Unschedulable, match="it needs gpu=2, and the largest worker of queue default has 1"):
        on_gpu.using(resources={"gpu": 2}).enqueue(0)
    with pytest.raises(Unschedulable, match="is labelled gpu=h100"):
        add.using(labels={"gpu": "h100"}, strict=True).enqueue(1, 1)


def test_all_slots_are_busy_as_soon_as_they_are(start, app, server_url, namespace):
    start("worker", "shop", "-c", "5", "--url", server_url, "--namespace", namespace)
    wait_until(lambda: app.nodes.list()["data"], timeout=40)
    slow = app.by_name("shop.slow", queue="default")
    assert slow.enqueue(0).join(40) == "completed"
    for _ in range(5):
        slow.enqueue(30)
    wait_until(lambda: app.queue("default").counts().running == 5, timeout=30)
    found = slow.enqueue(0).why()
    assert found.text == "all slots are busy, 5/5; it is next", "though the node says what it runs only now and then"
    assert (found.numbers["slots"], found.numbers["busy"]) == (5, 5)
