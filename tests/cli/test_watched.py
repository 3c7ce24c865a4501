"""How a running node is looked at from outside: its health over HTTP, and what it tells on SIGUSR1."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import redis

from taskq import TaskQ
from taskq.embedded import Embedded
from tests.waiting import wait_until


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def place(server_url, namespace):
    return ("--url", server_url, "--namespace", namespace)


def ask(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)
    except OSError:
        return 0, {}


def test_health_over_http(start, place, port, app, taskq):
    start("worker", "shop", "--health-port", str(port), *place)
    wait_until(lambda: ask(port, "/readyz")[0] == 200, timeout=30)
    assert ask(port, "/healthz") == (200, {"ok": True})
    (node,) = app.nodes.list()["data"]
    assert node["port"] == port
    taskq("node", "drain", node["id"])
    assert ask(port, "/readyz") == (503, {"ok": False, "why": ["it drains"]})
    assert ask(port, "/healthz") == (200, {"ok": True})
    taskq("node", "resume", node["id"])
    assert ask(port, "/readyz")[0] == 200


def test_a_node_whose_only_worker_is_stopped_is_not_ready(start, place, port):
    node = start("worker", "shop", "--health-port", str(port), *place)
    wait_until(lambda: ask(port, "/readyz")[0] == 200, timeout=30)
    (worker,) = Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text().split()
    os.kill(int(worker), signal.SIGSTOP)
    try:
        wait_until(lambda: ask(port, "/readyz") == (503, {"ok": False, "why": ["no worker claims"]}), timeout=30)
    finally:
        os.kill(int(worker), signal.SIGCONT)
    wait_until(lambda: ask(port, "/readyz")[0] == 200, timeout=30)


@pytest.mark.timeout(120)
def test_health_follows_an_outage(start, tmp_path, namespace, server_binary, port):
    """CONN-01: red while the server is away, green when it is back, and then it runs jobs. No restart would help, so
    nobody is asked to restart it.
    """
    red = (503, {"ok": False, "why": ["Redis is not reached"]})
    with Embedded(tmp_path / "data", 0, binary=server_binary) as server:
        node = start("worker", "shop", "--health-port", str(port), "--url", server.url, "--namespace", namespace)
        wait_until(lambda: ask(port, "/readyz")[0] == 200, timeout=30)
        for _ in range(2):
            server.kill()
            wait_until(lambda: ask(port, "/readyz") == red, timeout=30)
            assert ask(port, "/healthz") == (200, {"ok": True})
            server.start()
            wait_until(lambda: ask(port, "/readyz")[0] == 200, timeout=30)
            with contextlib.closing(TaskQ(server.url, namespace=namespace)) as app:
                assert app.by_name("shop.add", queue="default").enqueue(1, 2).result(timeout=20) == 3
        assert node.poll() is None


@pytest.mark.timeout(120)
def test_health_is_by_scripts_and_not_by_a_ping(start, tmp_path, namespace, server_binary, port):
    """CONN-06: a server that answers, and runs no script of ours, isn't reached."""
    with Embedded(tmp_path / "data", 0, binary=server_binary) as server, redis.Redis.from_url(server.url) as raw:
        start("worker", "shop", "--health-port", str(port), "--url", server.url, "--namespace", namespace)
        wait_until(lambda: ask(port, "/readyz")[0] == 200, timeout=30)
        raw.execute_command("ACL", "SETUSER", "default", "-eval", "-evalsha")
        wait_until(lambda: ask(port, "/readyz") == (503, {"ok": False, "why": ["Redis is not reached"]}), timeout=30)
        assert raw.ping()
        raw.execute_command("ACL", "SETUSER", "default", "+eval", "+evalsha")
        wait_until(lambda: ask(port, "/readyz")[0] == 200, timeout=30)


def test_a_port_that_is_taken_is_one_line(start, place):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        process = start("worker", "shop", "--health-port", str(taken.getsockname()[1]), *place)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 1
    (line,) = told.splitlines()
    assert line.startswith("taskq: port ")
    assert "can't be listened on" in line
    assert line.endswith("; give --health-port another")


def test_labels_capacity_and_metadata_stand_in_the_record(start, place, app):
    words = ("--label", "zone=a", "--label", "gpu=yes", "--capacity", "mem=8GiB", "--capacity", "gpu=2")
    start("worker", "shop", *words, "--metadata", "commit=abc=1", *place)
    (node,) = wait_until(lambda: app.nodes.list()["data"], timeout=30)
    assert node["labels"] == {"zone": "a", "gpu": "yes"}
    assert node["capacity"] == {"mem": 8 * 2**30, "gpu": 2}
    assert node["metadata"] == {"commit": "abc=1"}


def test_on_sigusr1_it_tells_what_runs(start, place, app):
    process = start("worker", "shop", "--log-format", "json", *place)
    job = app.by_name("shop.slow", queue="default").enqueue(20)
    wait_until(lambda: job.refresh().state == "running", timeout=30)
    seen = []

    def told():
        process.send_signal(signal.SIGUSR1)
        seen.clear()
        while not seen or seen[-1]["event"] != "that is what runs":
            seen.append(json.loads(process.stderr.readline()))
        return any(line["event"] == "runs" for line in seen)

    wait_until(told, timeout=30)  # the server calls it running before the worker has heard so
    (holds,) = [line for line in seen if line["event"] == "a worker holds"]
    assert (holds["jobs"], holds["first"][0]["job"], holds["first"][0]["task"]) == (1, job.id, "shop.slow")
    (runs,) = [line for line in seen if line["event"] == "runs"]
    assert (runs["job_id"], runs["stage"]) == (job.id, "runs")
    assert any("shop.py" in place and place.endswith(" slow") for place in runs["stack"]), seen
    assert any(line["event"] == "thread" for line in seen)
    assert process.poll() is None
