"""`taskq worker` and `taskq server` as real programs."""

from __future__ import annotations

import signal
import socket
from collections import Counter

import pytest
import redis
from click.testing import CliRunner

from taskq.cli.main import cli
from taskq.errors import JobFailed
from taskq.state import State
from tests.waiting import wait_until


@pytest.fixture
def place(server_url, namespace):
    return ("--url", server_url, "--namespace", namespace)


def test_burst_runs_what_there_is_and_ends_with_0(start, app, place):
    task = app.by_name("shop.add", queue="default")
    jobs = app.enqueue_many([task.call(i, i) for i in range(300)])
    process = start("worker", "shop", "--burst", "-w", "2", "-c", "10", *place)
    _, told = process.communicate(timeout=40)
    assert process.returncode == 0, told
    assert app.inspector.counts("default").completed == 300, told
    assert jobs[7].result() == 14


def test_a_worker_ends_after_its_number_of_jobs_and_another_goes_on(start, app, place):
    task = app.by_name("shop.who", queue="default")
    jobs = app.enqueue_many([task.call() for _ in range(25)])
    process = start("worker", "shop", "--burst", "--max-jobs", "10", "--threads", "2", "--log-format", "text", *place)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    counts = Counter(job.result() for job in jobs)
    assert sorted(counts.values()) == [5, 10, 10]
    assert told.count("it has run 10 jobs") == 2, told
    assert "WARN" not in told.upper().replace("--WARN", "")


def test_a_worker_that_takes_too_much_memory_is_replaced(start, app, place):
    gentle = app.by_name("shop.hoard", queue="default").enqueue(80)
    process = start("worker", "shop", "--max-memory", "100MiB", "--log-format", "text", *place)
    assert gentle.result(timeout=50) == 80
    greedy = app.by_name("shop.hoard", queue="default").using(max_attempts=1).enqueue(300)
    with pytest.raises(JobFailed, match="memory"):
        greedy.result(timeout=50)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 0, told
    assert "it is replaced once its jobs have ended" in told
    assert "it is replaced at once" in told


def test_a_queues_slots_follow_what_it_needs(start, app, place):
    task = app.by_name("shop.slow", queue="default")
    app.enqueue_many([task.call(1) for _ in range(120)])
    start("worker", "shop", "-q", "default=1..4,email", "-c", "12", "--threads", "1", *place)
    seen = []

    def all_slots_run():
        seen.append(app.inspector.counts("default").running)
        return seen[-1] == 4

    wait_until(all_slots_run, 50)
    assert max(seen) <= 6, "beside those of its slots some that have ended, and whose end isn't written yet"
    (node,) = wait_until(lambda: app.nodes.list()["data"])
    assert wait_until(lambda: app.nodes.get(node["id"])["stats"]["queues"]["default"]["slots"] == 4)


@pytest.mark.timeout(240)
def test_workers_follow_what_is_needed_and_one_that_is_too_many_finishes_what_it_has(start, app, place, folder):
    """Up and down by the leader's own decisions; nobody says anything."""
    task = app.by_name("shop.slow", queue="default")
    app.enqueue_many([task.call(1) for _ in range(300)])  # ten slots
    process = start("worker", "shop", "-w", "1..3", "-c", "2", "--threads", "0", "--log-format", "text", *place)
    (node,) = wait_until(lambda: app.nodes.list()["data"], 40)
    assert wait_until(lambda: app.nodes.get(node["id"])["stats"]["slots"] == 6, 50)
    long = [app.by_name("shop.until", queue="default").using(priority=9).enqueue("told") for _ in range(6)]
    wait_until(lambda: {job.refresh().state for job in long} == {State.RUNNING}, 40)
    app.queue("default").purge()
    wait_until(lambda: app.nodes.get(node["id"])["workers"] == 1, 100)
    assert {job.refresh().state for job in long} == {State.RUNNING}, "none was preempted"
    (folder / "told").touch()
    assert {job.result(timeout=40) for job in long} == {None}
    assert {job.refresh().attempt for job in long} == {1}
    assert wait_until(lambda: app.nodes.get(node["id"])["stats"]["slots"] == 2, 40), "one is left"
    assert app.by_name("shop.add", queue="default").enqueue(1, 2).result(timeout=20) == 3
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 0, told
    decisions = [line for line in told.splitlines() if "workers are scaled" in line]
    assert "before=1" in decisions[0]
    assert "workers=1" in decisions[-1]
    assert all(f" {name}=" in line for line in decisions for name in ("need", "slots_each", "cores"))


def test_options_reach_the_node_and_its_workers(start, app, place):
    app.by_name("shop.send", queue="email").enqueue("a@b.c")
    app.by_name("shop.add", queue="default").enqueue(1, 2)
    process = start(
        "worker", "shop:app", "-q", "email", "--burst", "--log-format", "text", "--log-level", "debug", *place
    )
    _, told = process.communicate(timeout=40)
    assert process.returncode == 0, told
    assert app.inspector.counts("email").completed == 1
    assert app.inspector.counts("default").available == 1  # -q named another queue
    assert "{" not in told.splitlines()[0]


def test_a_mistyped_queue_is_said(start, place):
    process = start("worker", "shop", "-q", "emial,default", "--burst", *place)
    _, told = process.communicate(timeout=40)
    assert process.returncode == 0, told
    (line,) = [line for line in told.splitlines() if "no task of the app goes to this queue" in line]
    assert all(word in line for word in ("emial", "did you mean 'email'?", "shop"))


def test_a_signal_drains_it(worker, app):
    job = app.by_name("shop.slow", queue="default").enqueue(0.5)
    wait_until(lambda: job.refresh().state == "running")
    worker.send_signal(signal.SIGTERM)
    _, told = worker.communicate(timeout=30)
    assert worker.returncode == 0, told
    assert job.refresh().state == "completed"


def test_logs_are_json_off_a_terminal_and_go_to_stderr(worker):
    worker.send_signal(signal.SIGINT)
    out, told = worker.communicate(timeout=30)
    assert out == ""
    assert all(line.startswith("{") for line in told.splitlines())


@pytest.mark.parametrize(
    "app, told",
    [
        ("nowhere", "there is no module 'nowhere' here"),
        ("shop.py", "give the module's name, such as 'shop'"),
        ("shop:nope", "module 'shop' has no 'nope': write shop:app"),
        ("broken", "broken.py:2"),
    ],
)
def test_an_app_that_cant_be_served_is_told_in_words(start, folder, place, app, told):
    (folder / "broken.py").write_text("import os\nos.nothing_of_this_name\n")
    process = start("worker", app, "-w", "2", *place)
    out, said = process.communicate(timeout=30)
    assert (process.returncode, out) == (1, "")
    assert said.count(told) == 1
    assert "Traceback" not in said


def test_the_app_may_stand_in_the_environment(start, place):
    process = start("worker", "--burst", *place, TASKQ_APP="shop")
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_a_server_prints_its_url_and_ends_with_the_signal(start, folder):
    process = start("server", "--port", "0", "--dir", str(folder / "data"))
    url = process.stdout.readline().strip()
    with redis.Redis.from_url(url) as client:
        assert client.ping()
        assert client.config_get("appendonly") == {"appendonly": "yes"}
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "data in" in told
    with redis.Redis.from_url(url) as client, pytest.raises(redis.ConnectionError):
        client.ping()


def test_a_second_server_on_the_same_folder_is_refused_in_one_line(start, folder):
    first = start("server", "--port", "0", "--dir", str(folder / "data"))
    port = first.stdout.readline().strip().rpartition(":")[2].removesuffix("/0")
    second = start("server", "--port", "0", "--dir", "data")
    out, told = second.communicate(timeout=20)
    assert (second.returncode, out) == (1, "")
    assert told == f"taskq: {folder / 'data'} is in use by a server on port {port}\n"


def test_a_server_that_dies_ends_the_command_with_1(start):
    process = start("server", "--port", "0")
    with redis.Redis.from_url(process.stdout.readline().strip()) as client:
        client.shutdown(nosave=True)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "ended by itself" in told


@pytest.mark.parametrize("words", [("-q", "gold,slow"), ("-q", "gold", "--queue", "slow")])
def test_queues_may_be_said_at_once_or_one_by_one(monkeypatch, words):
    asked = []
    monkeypatch.setattr("taskq.node.run.run", lambda _app, options: asked.append(options) or 0)
    monkeypatch.setattr("taskq.log.setup", lambda **_: None)
    assert CliRunner().invoke(cli, ["worker", "json", *words]).exit_code == 0
    assert list(asked[0].queues) == ["gold", "slow"]


def test_a_taken_port_is_one_line():
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        line.listen()
        result = CliRunner().invoke(cli, ["server", "--port", str(line.getsockname()[1])])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert "--port 0" in result.stderr


@pytest.mark.parametrize("words,wedged_ms", [((), 600_000), (("--wedged", "90s"), 90_000)])
def test_how_long_a_loop_may_stand_still_is_settable(monkeypatch, words, wedged_ms):
    asked = []
    monkeypatch.setattr("taskq.node.run.run", lambda _app, options: asked.append(options) or 0)
    monkeypatch.setattr("taskq.log.setup", lambda **_: None)
    done = CliRunner().invoke(cli, ["worker", "json", *words])
    assert done.exit_code == 0, done.output
    assert asked[0].wedged_ms == wedged_ms
