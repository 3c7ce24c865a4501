"""The active set: what runs or is offered, who holds it, and what its node is; by both faces and the command line."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from click.testing import CliRunner

from taskq import QueueNotFound, commands, keys
from taskq.cli.main import cli
from tests.waiting import wait_until


@pytest.fixture
def busy(app, run, namespace):
    """Two queues; one job runs on a living node, one with an executor, one is offered."""
    for queue in ("email", "video"):
        for _ in range(2):
            app.by_name("t", queue=queue).enqueue()
    run(
        commands.register_node(
            keys.cluster(namespace), node="host-1", ttl_ms=60_000, fields={"state": "active"}, tasks=[]
        )
    )
    app.client.claim("email", worker="host-1.0")
    app.client.claim("video", worker="ext-1", lease="1h")
    (offer,) = app.client.claim("video", worker="host-2.0", start=False, poller="p")
    return offer


def test_what_runs_is_shown_with_who_holds_it(app, busy):
    page = app.inspector.active()
    shown = [
        (each["queue"], each["worker"], each["node"], each["node_state"], each["offered"], each["stale"])
        for each in page["data"]
    ]
    assert shown == [
        ("email", "host-1.0", "host-1", "active", False, False),
        ("video", "host-2.0", "host-2", None, True, False),
        ("video", "ext-1", None, None, False, False),
    ]
    assert {name: page[name] for name in ("total", "limit", "offset")} == {"total": 3, "limit": 50, "offset": 0}
    assert all(0 <= each["age"] < 60 for each in page["data"])
    for each in page["data"]:
        assert (each["task"], each["attempt"], each["attempt_key"]) == ("t", 1, f"{each['id']}#1")
        assert app.job(each["id"]).refresh().state == "running", "what is offered, too"
    assert page["data"][1]["attempt_key"] == busy.attempt_key
    assert page["data"][1]["poller"] == "p"


def test_each_sign_of_its_holder_is_dated_by_the_server(app, raw):
    """What another clock says is no matter: the script stamps what it writes, and the page shows it."""

    def now_ms():
        seconds, micros = raw.time()
        return seconds * 1000 + micros // 1000

    def shown():
        (each,) = app.inspector.active()["data"]
        beat = datetime.fromisoformat(each["last_heartbeat_at"])
        return round(beat.timestamp() * 1000), each["age"] * 1000

    app.by_name("t", queue="email").enqueue()
    before = now_ms()
    (job,) = app.client.claim("email", worker="ext-1")
    claimed = now_ms()
    wait_until(lambda: now_ms() > claimed + 20, what="a later ms")
    beat, age = shown()
    assert before <= beat <= claimed
    assert claimed + 20 - beat < age <= now_ms() - beat
    later = now_ms()
    app.client.renew(job.token)
    beat, age = shown()
    assert later <= beat <= now_ms()
    assert age <= now_ms() - beat


async def test_pages_make_up_the_whole_over_queues(app, busy):
    pages = [await app.inspector.aactive(limit=2, offset=at) for at in (0, 2, 4)]
    assert [len(page["data"]) for page in pages] == [2, 1, 0]
    assert [each["id"] for page in pages for each in page["data"]] == [
        each["id"] for each in app.inspector.active()["data"]
    ]
    assert len((await app.inspector.aactive(queue="video"))["data"]) == 2
    await app.aclose()


def test_a_damaged_record_hides_no_other_and_a_lease_without_one_is_left_out(app, busy, raw, namespace):
    lost, *rest = (each["id"] for each in app.inspector.active()["data"])
    raw.hset(keys.queue(namespace, "video").job(rest[0]), "attempt", "many")
    raw.delete(keys.queue(namespace, "email").job(lost))
    assert [each["id"] for each in app.inspector.active()["data"]] == [rest[1]]


def test_of_a_queue_that_never_was(app, busy):
    with pytest.raises(QueueNotFound):
        app.inspector.active(queue="never")
    with pytest.raises(ValueError, match="limit=0"):
        app.inspector.active(limit=0)


def test_a_stale_lease_is_shown_as_such_and_a_dead_node_ends_nothing(app, busy, run, namespace, raw):
    raw.zadd(keys.queue(namespace, "email").fixed("leases"), {app.inspector.active()["data"][0]["id"]: 1000})
    raw.hset(keys.cluster(namespace).node("host-1"), "last_seen", 1000)
    first = app.inspector.active()["data"][0]
    assert (first["stale"], first["node_state"]) == (True, "dead")
    assert app.inspector.counts("email").running == 1


def test_on_the_command_line(app, busy, server_url, namespace):
    def taskq(*words):
        result = CliRunner().invoke(cli, ["--url", server_url, "--namespace", namespace, "job", "active", *words])
        assert result.exit_code == 0, result.stderr
        return result.stdout

    lines = taskq().splitlines()
    assert lines[0].split() == ["id", "task", "attempt", "worker", "heard", "node", "note"]
    assert len(lines) == 4
    assert "host-1.0" in lines[1]
    assert "active" in lines[1]
    assert "offered" in lines[2]
    assert json.loads(taskq("--json", "--queue", "video"))["total"] == 2
