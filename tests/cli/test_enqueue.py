"""`taskq enqueue`: what it stores, and what it says of tasks that nobody knows."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from taskq import commands, keys
from tests.waiting import wait_until

ONCE = '{"max_attempts":1,"priority":-7}'


@pytest.fixture
def known(run, namespace):
    """A node has said that it knows shop.add (from queue `sums`) and shop.send."""
    run(
        commands.register_node(
            keys.cluster(namespace),
            node="n",
            ttl_ms=30_000,
            fields={"tasks": json.dumps(["shop.add", "shop.send"]), "queues": json.dumps(["sums", "email"])},
            tasks=[("shop.add", "sums", "async"), ("shop.send", "email", "thread", ONCE)],
        )
    )


def stored(taskq, id):
    return json.loads(taskq("job", "show", id, "--json").stdout)


def test_it_prints_the_id_and_asks_the_workers_for_the_queue(taskq, known):
    result = taskq("enqueue", "shop.add", "1", "two", 'k={"a": [1]}')
    assert (result.exit_code, result.stderr) == (0, "")
    job = stored(taskq, result.stdout.strip())
    assert (job["queue"], job["args"], job["kwargs"]) == ("sums", [1, "two"], {"k": {"a": [1]}})


@pytest.mark.parametrize("words, why", [
    (("acme",), "missing a required argument: 'number'"),
    (("acme", "1", "2", "3"), "too many positional arguments"),
    (("acme", "1", "colour=red"), "got an unexpected keyword argument 'colour'"),
])  # fmt: skip
def test_arguments_that_the_task_does_not_take_are_refused(taskq, run, namespace, words, why):
    told = "(tenant: str, number: int, *, dry: bool = False) -> None"
    tell_of(run, namespace, told)
    refused = taskq("enqueue", "crm.call", *words)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"taskq: crm.call{told} doesn't take these arguments: {why}")
    assert taskq("enqueue", "crm.call", "acme", "1", "dry=true").exit_code == 0


@pytest.mark.parametrize("told", ["", "(a, b=<object object at 0x7f>)", "(a, b: int = 1"])
def test_parameters_that_cannot_be_read_are_left_to_the_worker(taskq, run, namespace, told):
    tell_of(run, namespace, told)
    assert taskq("enqueue", "crm.call").exit_code == 0


def test_where_it_may_run_and_what_it_waits_for_are_options_too(taskq, known):
    words = ("--label", "zone=eu", "--resource", "gpu=1", "--resource", "memory=4GiB", "--target", "web-1")
    job = stored(taskq, taskq("enqueue", "shop.add", "--queue", "far", *words, "--lock", "account").stdout.strip())
    assert (job["labels"], job["resources"], job["target"]) == (
        {"zone": "eu"}, {"gpu": 1, "memory": 4 * 2**30}, "web-1",
    )  # fmt: skip
    assert "account" in json.dumps(job["lock"])
    made = set()
    for option in ("--debounce", "--throttle"):
        first, second = (taskq("enqueue", "shop.send", "a", option, "1h").stdout for _ in range(2))
        assert first.startswith("email:")
        assert first == second
        made.add(first)
    assert len(made) == 2
    for wrong in (("--resource", "gpu=two"), ("--label", "zone"), ("--debounce", "soon"), ("--lock", "")):
        assert taskq("enqueue", "shop.add", *wrong).exit_code == 2
    assert "gpu" in (told := taskq("enqueue", "shop.add", "--resource", "gpu=two").stderr)
    assert told.startswith("taskq: --resource gpu=two is no amount: give a number such as 2")
    told = taskq("enqueue", "shop.add", "--resource", "g pu=2", "--label", "a=b").stderr
    assert told.startswith("taskq: --resource holds 'g pu': a name is 1 to 64")


def test_what_becomes_of_it_where_nobody_could_run_it(taskq, known):
    there = ("--queue", "sums", "--target", "web-1")
    job = stored(taskq, taskq("enqueue", "shop.add", *there, "--on-target-lost", "fail").stdout.strip())
    assert job["target"] == "web-1"
    refused = taskq("enqueue", "shop.add", *there, "--on-target-lost", "never")
    assert (refused.exit_code, refused.stderr.startswith("taskq: --on-target-lost 'never' is none")) == (2, True)
    refused = taskq("enqueue", "shop.add", *there, "--strict")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "web-1" in refused.stderr


def tell_of(run, namespace, parameters):
    about = json.dumps({"parameters": parameters})
    run(
        commands.register_node(
            keys.cluster(namespace), node="n", ttl_ms=30_000,
            fields={"tasks": '["crm.call"]', "queues": '["crm"]'},
            tasks=[("crm.call", "crm", "async", "", about)],
        )
    )  # fmt: skip


def test_every_option_is_stored(taskq, known):
    words = (
        *("--queue", "email", "--delay", "1h", "--priority", "-3", "--id", "own", "--tag", "a", "--tag", "b"),
        *("--meta", "k=v", "--meta", "n=1", "--expires", "2h", "--max-attempts", "7", "--timeout", "30"),
    )
    result = taskq("enqueue", "shop.send", *words, "--", "-1")
    assert result.stdout == "email:own\n"
    job = stored(taskq, "email:own")
    assert (job["state"], job["priority"], job["tags"], job["meta"]) == (
        "scheduled", -3, ["a", "b"], {"k": "v", "n": "1"},
    )  # fmt: skip
    assert (job["max_attempts"], job["timeout"], job["args"]) == (7, 30, [-1])
    assert job["expires_at"] > job["scheduled_at"] > job["created_at"]


@pytest.mark.parametrize("words", [(), ("--queue", "email"), ("--queue", "sums")])
def test_what_the_tasks_code_says_holds(taskq, known, words):
    job = stored(taskq, taskq("enqueue", "shop.send", *words, "a@b.c").stdout.strip())
    assert (job["max_attempts"], job["priority"]) == (1, -7)
    job = stored(taskq, taskq("enqueue", "shop.send", *words, "--max-attempts", "4", "a@b.c").stdout.strip())
    assert (job["max_attempts"], job["priority"]) == (4, -7)


def test_a_task_served_from_two_queues_is_said(taskq, known, run, namespace):
    other = [("shop.add", "apart", "async")]
    run(commands.register_node(keys.cluster(namespace), node="n2", ttl_ms=30_000, fields={}, tasks=other))
    result = taskq("enqueue", "shop.add", "1", "2")
    assert result.stdout.startswith("apart:")
    assert "from two queues, 'apart' and 'sums': this job goes to 'apart'; --queue chooses" in result.stderr
    assert taskq("enqueue", "shop.add", "1", "2", "--queue", "sums").stderr == ""


def test_the_end_of_a_tasks_name_is_enough_to_be_told_it(taskq, known):
    result = taskq("enqueue", "send", "a@b.c")
    assert (result.exit_code, "(did you mean 'shop.send'?)" in result.stderr) == (1, True)


def test_instants_with_a_zone(taskq, known):
    id = taskq("enqueue", "shop.add", "--at", "2090-01-31T09:00:00+01:00", "--expires", "2090-01-31T09:00:00Z").stdout
    job = stored(taskq, id.strip())
    assert (job["scheduled_at"], job["expires_at"]) == ("2090-01-31T08:00:00.000Z", "2090-01-31T09:00:00.000Z")


def test_a_payload_is_all_arguments_at_once(taskq, known):
    id = taskq("enqueue", "shop.add", "--payload", '{"args": [1, [2]], "kwargs": {"not-an-identifier": null}}').stdout
    job = stored(taskq, id.strip())
    assert (job["args"], job["kwargs"]) == ([1, [2]], {"not-an-identifier": None})


def test_an_own_id_twice_adds_nothing_and_says_so(taskq, known):
    first = taskq("enqueue", "shop.add", "1", "--id", "x")
    again = taskq("enqueue", "shop.add", "2", "--id", "x")
    assert (first.stdout, again.stdout, again.exit_code) == ("sums:x\n", "sums:x\n", 0)
    assert "nothing was added" in again.stderr
    assert stored(taskq, "sums:x")["args"] == [1]


def test_a_task_nobody_knows_is_refused_with_the_nearest(taskq, known, app):
    result = taskq("enqueue", "shop.ad", "1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did you mean 'shop.add'" in result.stderr
    assert "--queue" in result.stderr
    assert app.inspector.queues() == []


def test_with_a_queue_it_is_added_and_will_wait(taskq, known):
    result = taskq("enqueue", "shop.new", "1", "--queue", "sums")
    assert result.exit_code == 0
    assert result.stdout.startswith("sums:")
    assert "no worker knows task 'shop.new'" in result.stderr


def test_a_queue_that_nobody_serves_is_said(taskq, known):
    result = taskq("enqueue", "shop.add", "1", "--queue", "sumz")
    assert result.exit_code == 0
    assert "no worker serves queue 'sumz' now (did you mean 'sums'?)" in result.stderr
    result = taskq("dispatch", "--count", "1", "--queue", "sumz")
    assert "no worker serves queue sumz now (did you mean 'sums'?)" in result.stderr


def test_too_large_a_payload_is_one_line(taskq, known, monkeypatch):
    monkeypatch.setenv("TASKQ_MAX_PAYLOAD", "1KiB")
    result = taskq("enqueue", "shop.add", "x" * 2000)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "max_payload" in result.stderr


@pytest.mark.usefixtures("worker")
def test_wait_prints_the_result_as_json(taskq):
    assert taskq("enqueue", "shop.add", "2", "3", "--wait").stdout == "5\n"
    assert taskq("enqueue", "shop.add", '"a"', '"b"', "--wait").stdout == '"ab"\n'
    sent = taskq("enqueue", "shop.send", "a@b.c", "subject=x", "--wait")
    assert json.loads(sent.stdout) == {"to": "a@b.c", "subject": "x"}
    assert sent.stderr.startswith("email:")


@pytest.mark.usefixtures("worker")
def test_wait_for_what_doesnt_end_well_is_exit_code_1(taskq):
    failed = taskq("enqueue", "shop.boom", "text with \x1b[31m", "--max-attempts", "1", "--wait")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "RuntimeError: text with \\x1b[31m" in failed.stderr
    late = taskq("enqueue", "shop.slow", "60", "--wait", "--wait-timeout", "200ms")
    assert (late.exit_code, late.stdout) == (1, "")
    assert "has not ended within 200ms (it is" in late.stderr


def test_ending_the_wait_says_that_the_job_goes_on(start, server_url, app, namespace):
    place = ("--url", server_url, "--namespace", namespace)
    process = start("enqueue", "shop.add", "1", "--queue", "default", "--wait", *place)
    id = next(line for line in process.stderr if line.startswith("default:")).strip()
    wait_until(lambda: app.job(id).refresh().record.fields.get(b"waited"))
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert f"job {id} goes on; how it stands: taskq job show {id}\n" in told


@pytest.mark.usefixtures("worker")
def test_a_running_job_is_cancelled_from_the_command_line(taskq, app):
    id = taskq("enqueue", "shop.slow", "60").stdout.strip()
    wait_until(lambda: app.job(id).refresh().state == "running")
    assert taskq("job", "cancel", id).exit_code == 0
    wait_until(lambda: app.job(id).refresh().state == "cancelled")


def test_dispatched_jobs_run_on_any_worker(taskq, app, worker: subprocess.Popen[str]):
    assert taskq("dispatch", "--count", "20", "--fail-rate", "0", "--delay", "1").stderr == ""
    wait_until(lambda: app.inspector.counts("default").completed == 20)


def test_a_key_is_owned_by_one_job(taskq, known):
    first = taskq("enqueue", "shop.add", "1", "--unique", "nightly").stdout
    again = taskq("enqueue", "shop.add", "2", "--unique", "nightly")
    assert (again.exit_code, again.stdout) == (0, first)
    assert "exists already: nothing was added" in again.stderr
    assert stored(taskq, first.strip())["unique"] == "shop.add:nightly"
    assert taskq("enqueue", "shop.add", "1", "--unique", "").exit_code == 2
