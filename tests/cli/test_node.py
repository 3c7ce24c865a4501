"""`taskq node`: list, show, drain, resume, stop, with a real node."""

from __future__ import annotations

import json
import socket
import time

import pytest

from taskq import NodeNotFound, __version__, commands, keys
from taskq.cli.node import _tell
from taskq.connection import connect, run
from taskq.state import State
from tests.waiting import wait_until


@pytest.fixture
def say(settings):
    """`say(command)` runs a command on the test's server."""
    server = connect(settings)
    yield lambda command: run(server, command)
    server.close()


def old(namespace, node="old", silent_ms=31_000):
    fields = {"state": "active", "queues": '["email"]', "workers": 2}
    now = int(time.time() * 1000) - silent_ms
    return commands.register_node(keys.cluster(namespace), node=node, ttl_ms=600_000, fields=fields, now=now)


def test_nobody(taskq):
    assert json.loads(taskq("node", "list", "--json").stdout) == {"data": [], "total": 0, "limit": 1000, "offset": 0}
    assert taskq("node", "list").exit_code == 0


def test_the_dead_are_listed_when_asked_for(taskq, say, namespace):
    say(old(namespace))
    assert json.loads(taskq("node", "list", "--json").stdout)["data"] == []
    (node,) = json.loads(taskq("node", "list", "--all", "--json").stdout)["data"]
    assert (node["id"], node["state"], node["health"], node["queues"]) == ("old", "dead", "unhealthy", ["email"])
    assert "dead" in taskq("node", "list", "--all").stdout
    say(old(namespace, "other"))
    assert taskq("node", "list", "--all", "--limit", "1").stderr == "1–1 of 2; the next page: --offset 1\n"
    assert json.loads(taskq("node", "show", "old", "--json").stdout)["state"] == "dead"


@pytest.mark.parametrize("verb", ["show", "drain", "resume", "stop"])
def test_a_node_that_is_not_there_is_one_line(taskq, say, namespace, verb):
    say(old(namespace, "web-1-4711-3fa9c1", silent_ms=0))
    result = taskq("node", verb, "web-1-4711-3fa9c2", *(["--yes"] if verb == "stop" else []))
    assert result.exit_code == 1
    assert result.stderr.strip() == (
        "taskq: there is no live node 'web-1-4711-3fa9c2' (did you mean 'web-1-4711-3fa9c1'?)"
    )


@pytest.mark.parametrize("words", [("drain",), ("resume",), ("stop", "--yes"), ("scale", "-w", "2")])
@pytest.mark.parametrize("gone, told", [("nope", "there is no live node 'nope'"), ("dead", "node 'dead' is dead")])
def test_if_one_is_not_there_none_is_told(taskq, say, raw, namespace, words, gone, told):  # noqa: PLR0917 (fixtures)
    say(old(namespace, "living", silent_ms=0))
    say(old(namespace, "dead"))
    result = taskq("node", *words, "living", gone)
    assert (result.exit_code, result.stdout) == (1, "")
    assert told in result.stderr
    assert not [key for key in raw.scan_iter() if raw.type(key) == b"stream"], "an order was given"


@pytest.mark.parametrize("gone, told", [("nope", "there is no live node 'nope'"), ("dead", "node 'dead' is dead")])
def test_stop_refuses_a_node_that_is_not_there_before_it_asks(taskq, say, namespace, gone, told):
    say(old(namespace, "living", silent_ms=0))
    say(old(namespace, "dead"))
    result = taskq("node", "stop", "living", gone)
    assert (result.exit_code, result.stdout) == (1, "")
    assert told in result.stderr


def test_of_all_nodes_one_that_dies_meanwhile_is_passed_over(app, say, namespace, capsys):
    for id, silent_ms in (("first", 0), ("dying", 31_000), ("last", 0)):
        say(old(namespace, id, silent_ms))
    told = []

    def order(id):
        app.nodes.drain(id)
        told.append(id)

    _tell(app, ["first", "dying", "last"], order, lambda seen: "drains", every=True)
    assert told == ["first", "last"]
    assert capsys.readouterr() == ("first: drains\nlast: drains\n", "dying: died meanwhile\n")
    with pytest.raises(NodeNotFound):
        _tell(app, ["dying"], order, lambda seen: "drains", every=False)


def test_sizes_read_as_sizes(taskq, say, namespace):
    fields = {"state": "active", "queues": "[]", "workers": 1, "capacity": '{"memory": 34359738368, "gpu": 1.5}'}
    say(commands.register_node(keys.cluster(namespace), node="big", ttl_ms=600_000, fields=fields))
    shown = taskq("node", "show", "big").stdout
    assert "memory=32GiB, gpu=1.5\n" in shown or "gpu=1.5, memory=32GiB\n" in shown
    assert "memory: 32GiB of 32GiB free\n" in shown
    assert json.loads(taskq("node", "show", "big", "--json").stdout)["capacity"] == {"memory": 2**35, "gpu": 1.5}


def test_where_no_name_is_near_the_line_says_where_to_look(taskq):
    result = taskq("node", "show", "nobody")
    assert result.exit_code == 1
    assert result.stderr == "taskq: there is no live node 'nobody': see `taskq node list --all`\n"


@pytest.mark.parametrize("verb", ["drain", "resume", "stop"])
def test_which_nodes_must_be_said(taskq, verb):
    assert taskq("node", verb).exit_code == 2
    assert taskq("node", verb, "--all", "a").exit_code == 2
    every = taskq("node", verb, "*")
    assert (every.exit_code, every.stderr) == (2, "taskq: '*' is no node's id: give --all for every node that lives\n")


@pytest.mark.parametrize("words", [("drain",), ("resume",), ("stop",), ("scale", "-w", "2")])
def test_where_no_node_lives_all_of_them_is_none(taskq, words):
    result = taskq("node", *words, "--all")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no node lives\n")


def test_a_node_shows_what_it_runs(taskq, app, worker):
    job = app.by_name("shop.slow", queue="default").enqueue(30)
    wait_until(lambda: job.refresh().state == State.RUNNING)
    wait_until(lambda: app.inspector.leader()["node"])
    (node,) = json.loads(taskq("node", "list", "--json").stdout)["data"]
    id = node["id"]
    assert (node["pid"], node["state"], node["health"], node["leader"]) == (worker.pid, "active", "healthy", True)
    assert (node["hostname"], node["version"], node["workers"]) == (socket.gethostname(), __version__, 1)
    assert node["created_at"] <= node["last_seen"]
    assert node["concurrency"] == {"async": 100, "thread": 16}
    assert node["queues"] == ["default", "email"]
    assert "shop.slow" in node["tasks"]

    def running():
        return json.loads(taskq("node", "show", id, "--json").stdout)["stats"]["running"]

    (one,) = wait_until(running, timeout=30)
    assert (one["job"], one["task"]) == (job.id, "shop.slow")
    assert one["started_at"][:16] == job.to_dict()["started_at"][:16]
    assert job.id in taskq("node", "show", id).stdout


def test_a_drained_node_finishes_what_runs_claims_nothing_and_goes_on_when_told(taskq, app, worker):
    slow = app.by_name("shop.slow", queue="default").enqueue(3)
    wait_until(lambda: slow.refresh().state == State.RUNNING)
    (node,) = app.nodes.list()["data"]
    drained = taskq("node", "drain", node["id"])
    assert drained.stdout == f"{node['id']}: draining\n"
    assert drained.stderr == "the only node drains: no schedule fires until it resumes\n"
    assert taskq("node", "drain", "--all").stdout == f"{node['id']}: draining\n", "twice is once"
    left = app.by_name("shop.add", queue="default").enqueue(1, 2)
    wait_until(lambda: slow.refresh().state == State.COMPLETED)
    wait_until(lambda: app.inspector.leader()["node"] is None, timeout=20)
    time.sleep(1)
    assert left.refresh().state == State.AVAILABLE
    (shown,) = app.nodes.list()["data"]
    assert (shown["state"], shown["leader"], shown["pid"]) == ("draining", False, worker.pid)
    assert worker.poll() is None
    assert taskq("leader").stdout == "nobody leads: the only node drains: no schedule fires until it resumes\n"
    assert taskq("node", "resume", node["id"]).stdout == f"{node['id']}: active\n"
    assert left.result(timeout=20) == 3


def test_a_drained_node_stays_so_when_redis_forgets_everything(taskq, app, worker, raw):
    (node,) = app.nodes.list()["data"]
    assert taskq("node", "drain", node["id"]).exit_code == 0
    raw.flushdb()
    wait_until(lambda: app.nodes.list(all=True)["data"], timeout=30)
    job = app.by_name("shop.add", queue="default").enqueue(1, 2)
    time.sleep(1)
    assert job.refresh().state == State.AVAILABLE
    assert app.nodes.get(node["id"])["state"] == "draining"
    taskq("node", "resume", "--all")
    assert job.result(timeout=20) == 3


def test_a_stopped_node_ends_and_leaves_the_registry(taskq, app, worker):
    (node,) = app.nodes.list()["data"]
    refused = taskq("node", "stop", node["id"])
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    result = taskq("node", "stop", node["id"], "--yes")
    assert result.stdout == f"{node['id']}: ends\n"
    assert worker.wait(20) == 0
    assert app.nodes.list(all=True)["data"] == []


def test_a_node_is_scaled_while_it_runs(taskq, app, worker):
    running = [app.by_name("shop.slow", queue="default").enqueue(4) for _ in range(3)]
    wait_until(lambda: {job.refresh().state for job in running} == {State.RUNNING})
    (node,) = app.nodes.list()["data"]
    id = node["id"]
    told = taskq("node", "scale", id, "--workers", "2", "--slots", "1")
    assert told.stdout == f"{id}: 2 workers of 1 slots\n"
    wait_until(lambda: app.nodes.get(id)["stats"]["slots"] == 2 * 17, timeout=30)
    assert taskq("node", "scale", "--all", "-w", "1").stdout == f"{id}: 1 workers of 1 slots\n"
    assert {job.result(timeout=30) for job in running} == {None}
    assert {job.refresh().attempt for job in running} == {1}, "nothing was preempted"
    assert worker.poll() is None


def test_a_node_is_given_a_range_of_workers_and_keeps_within_it(taskq, app, worker):
    (node,) = app.nodes.list()["data"]
    id = node["id"]
    assert taskq("node", "scale", id, "-w", "2..3", "--slots", "4").stdout == f"{id}: 2..3 workers of 4 slots\n"
    seen = json.loads(taskq("node", "show", id, "--json").stdout)
    assert (seen["workers"], seen["stats"]["workers"]) == (2, {"least": 2, "most": 3})
    assert "workers: 2..3, as needed\n" in taskq("node", "show", id).stdout
    assert taskq("node", "scale", id, "-w", "2").stdout == f"{id}: 2 workers of 4 slots\n"
    assert "workers" not in app.nodes.get(id)["stats"]


@pytest.mark.parametrize(
    "words, told",
    [
        (
            ("--workers", "0"),
            "--workers 0 is out of range, 1 to 1000: a node without workers would end; drain it instead",
        ),
        (("--workers", "3..2"), "--workers 3..2 goes backwards"),
        (("--workers", "many"), "--workers 'many' is no number of workers: give such as --workers 2 or --workers 2..8"),
        (("--slots", "-1"), "--slots -1 is out of range"),
        ((), "give --workers, --slots or both"),
    ],
)
def test_a_number_that_cannot_be_is_wrong_usage(taskq, say, namespace, words, told):
    say(old(namespace, silent_ms=0))
    refused = taskq("node", "scale", "old", *words)
    assert refused.exit_code == 2
    assert told in refused.stderr
