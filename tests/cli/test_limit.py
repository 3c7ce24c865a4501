"""`taskq queue limit | weights | show`, `queue pause --key`, `task pause`, `job reprioritise`."""

from __future__ import annotations

import json

import pytest

from taskq import Concurrency


@pytest.fixture
def jobs(app):
    task = app.by_name("a.b", queue="email")
    return app.enqueue_many([task.call(i) for i in range(3)])


def rows(taskq, *more):
    return json.loads(taskq("queue", "limit", "email", "--json", *more).stdout)["data"]


def test_a_limit_is_changed_listed_and_reset(taskq, jobs, app):
    assert rows(taskq) == []
    done = taskq("queue", "limit", "email", "crm", "--concurrency", "5", "--rate", "100/min", "--burst", "20")
    assert done.stdout == "email, limit crm: changed: concurrency none → 5, rate none → 100/1m burst 20\n"
    assert "no code that runs declares" in done.stderr
    assert (
        taskq("queue", "limit", "email", "crm", "--concurrency", "5").stdout == "email, limit crm: it is so already\n"
    )
    done = taskq("queue", "limit", "email", "crm", "--concurrency", "2", "--key", "acme")
    assert done.stdout == "email, limit crm, key acme: changed: concurrency 5 → 2\n"
    assert [(row["name"], row["key"], row["concurrency"], row["rate"], row["burst"]) for row in rows(taskq)] == [
        ("crm", None, 5, "100/1m", 20),
        ("crm", "acme", 2, "100/1m", 20),
    ]
    shown = taskq("queue", "limit", "email").stdout
    assert "limit crm" in shown
    assert "acme" in shown
    assert "set here" in shown
    (acme,) = rows(taskq, "crm", "--key", "acme")
    (bolt,) = rows(taskq, "crm", "--key", "bolt")
    assert [(row["key"], row["concurrency"]) for row in (acme, bolt)] == [("acme", 2), ("bolt", 5)]
    assert len(rows(taskq, "crm")) == 2
    for more in (["--key", "acme"], []):
        assert "concurrency" in taskq("queue", "limit", "email", "crm", *more, "--reset").stdout
    assert rows(taskq) == []


def test_reserved_slots_are_shown_apart_and_numbers_of_calls_as_such(taskq, jobs, app):
    queue = app.queue("email")
    queue.limit(concurrency=9)
    queue.reserve("k", max_concurrency=9)
    app.by_name("a.b", queue="email").using(limits=[Concurrency(3, name="crm")]).enqueue()
    whole, crm = rows(taskq)
    assert (whole["running"], whole["reserved"], whole["free"]) == (0, 1, 8)
    assert (crm["name"], crm["concurrency"], crm["by_calls"], crm["reserved"]) == ("crm", 3, True, 0)
    shown = taskq("queue", "limit", "email").stdout
    assert "reserved" in shown
    assert "said by calls" in shown


def test_a_mistyped_limit_is_answered_with_the_nearest(taskq, jobs):
    taskq("queue", "limit", "email", "crm", "--concurrency", "5")
    told = taskq("queue", "limit", "email", "crn", "--concurrency", "2").stderr
    assert told == "no code that runs declares a limit 'crn' (did you mean 'crm'?): it holds for jobs that name it\n"
    assert "of a limit 'crmm' (did you mean 'crm'?) in queue email: " in taskq("queue", "limit", "email", "crmm").stderr


def test_an_empty_key_is_not_shown_as_none(taskq, jobs, app):
    done = taskq("queue", "limit", "email", "crm", "--concurrency", "2", "--key", "")
    assert done.stdout == "email, limit crm, key '': changed: concurrency none → 2\n"
    assert "limit crm  ''" in taskq("queue", "limit", "email").stdout
    assert taskq("queue", "pause", "email", "--key", "").stdout == "email '': paused\n"
    assert taskq("queue", "resume", "email", "--key", "").stdout == "email '': resumed\n"
    app.queue("email").weights({"": 3})
    assert "''" in taskq("queue", "weights", "email").stdout
    assert json.loads(taskq("queue", "weights", "email", "--json").stdout) == {"": 3}


def test_a_limit_is_blocked_and_opened(taskq, jobs):
    taskq("queue", "limit", "email", "crm", "--block", "30s")
    (row,) = rows(taskq)
    assert row["blocked_until"] is not None
    assert "blocked until" in taskq("queue", "limit", "email").stdout
    taskq("queue", "limit", "email", "crm", "--block", "0")
    assert rows(taskq) == []


def test_a_queue_as_a_whole_is_limited_and_its_lanes_age(taskq, jobs):
    taskq("queue", "limit", "email", "--concurrency", "40", "--age", "10m")
    (row,) = rows(taskq)
    assert (row["kind"], row["concurrency"], row["age"]) == ("queue", 40, 600)
    assert "a level every 600 s" in taskq("queue", "limit", "email").stdout
    taskq("queue", "limit", "email", "--reset")
    assert rows(taskq) == []


@pytest.mark.parametrize(
    "words",
    [
        ("crm", "--burst", "5"),
        ("crm", "--rate", "fast"),
        ("crm", "--concurrency", "-1"),
        ("crm", "--block", "soon"),
        ("crm", "--age", "1m"),
        ("crm", "--reset", "--rate", "1/s"),
        ("--concurrency", "1", "--key", "acme"),
        ("queue", "--concurrency", "1"),
        ("crm", "--concurrency", "1", "--json"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(taskq, jobs, words):
    result = taskq("queue", "limit", "email", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert rows(taskq) == []


@pytest.mark.parametrize("words", [("crm",), ("crm", "--key", "acme"), ("--key", "acme")])
def test_a_limit_that_is_not_there_is_no_empty_list(taskq, jobs, words):
    result = taskq("queue", "limit", "email", *words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing is said of" in result.stderr


@pytest.mark.parametrize("verb", ["limit", "weights", "show"])
def test_a_mistyped_queue_is_no_success(taskq, jobs, verb):
    result = taskq("queue", verb, "emial")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did you mean 'email'" in result.stderr


def test_weights(taskq, jobs, app):
    assert "acme" in taskq("queue", "weights", "email", "acme=3", "a=b=2").stdout
    assert json.loads(taskq("queue", "weights", "email", "acme=", "--json").stdout) == {"a=b": 2}
    assert taskq("queue", "weights", "email", "acme").exit_code == 2
    assert taskq("queue", "weights", "email", "acme=0").exit_code == 2


def test_a_key_is_paused_and_shows_wherever_the_queue_does(taskq, jobs, app):
    assert taskq("queue", "pause", "email", "--key", "acme").stdout == "email acme: paused\n"
    assert taskq("queue", "pause", "email", "--key", "acme").stdout == "email acme: is paused already\n"
    assert "in part" in taskq("queue", "list").stdout
    assert "in part" in taskq("stats").stdout
    shown = json.loads(taskq("queue", "show", "email", "--json").stdout)
    assert (shown["available"], shown["paused"], shown["pauses"]) == (3, False, 1)
    assert [(row["kind"], row["key"], row["paused"]) for row in shown["limits"]] == [("fairness key", "acme", True)]
    assert "paused tasks and keys  1\n" in taskq("queue", "show", "email").stdout
    assert taskq("queue", "resume", "email", "--key", "acme").stdout == "email acme: resumed\n"
    assert taskq("queue", "resume", "email", "--key", "acme").stdout == "email acme: was not paused\n"


def test_a_task_is_paused_in_a_queue(taskq, jobs, app):
    assert taskq("task", "pause", "a.b", "--queue", "email").stdout == "a.b in email: paused\n"
    assert taskq("task", "resume", "a.b", "--queue", "email").stdout == "a.b in email: resumed\n"
    unknown = taskq("task", "pause", "a.b")
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert "no node has known a task" in unknown.stderr


def test_a_job_gets_another_priority(taskq, jobs, app):
    id = jobs[2].id
    assert taskq("job", "reprioritise", id, "10").stdout == f"{id}: priority 10, available\n"
    assert taskq("job", "reprioritise", id, "--", "-5").stdout == f"{id}: priority -5, available\n"
    assert jobs[2].refresh().record.priority == -5
    assert taskq("job", "reprioritise", id, "600").exit_code == 2
    assert taskq("job", "reprioritise", "email:none", "1").exit_code == 1


def test_a_task_that_nobody_has_heard_of_is_refused_in_a_queue_too(taskq, jobs):
    refused = taskq("task", "pause", "a.bb", "--queue", "email")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "'a.bb'" in refused.stderr
    assert taskq("task", "pause", "a.b", "--queue", "email").stdout == "a.b in email: paused\n"
    job = json.loads(taskq("job", "why", jobs[0].id, "--json").stdout)
    assert (job["gate"], job["kind"], job["name"], job["key"]) == ("paused", "task", "a.b", None)


def test_a_reset_stands_alone_and_names_the_keys_that_stay(taskq, jobs, app):
    queue = app.queue("email")
    queue.limit("crm", concurrency=5)
    for key in ("acme", "nobody"):
        queue.limit("crm", concurrency=0, key=key)
    for more in (("--concurrency", "3"), ("--block", "30s"), ("--key", "acme", "--rate", "1/s")):
        refused = taskq("queue", "limit", "email", "crm", "--reset", *more)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr.startswith("taskq: --reset stands alone")
    with pytest.raises(ValueError, match="reset=True stands alone"):
        queue.limit("crm", concurrency=3, reset=True)
    done = taskq("queue", "limit", "email", "crm", "--reset")
    assert done.stdout == "email, limit crm: changed: concurrency 5 → none\n"
    assert done.stderr == "keys still set here: acme, nobody (--reset --key acme)\n"
    for key in ("acme", "nobody"):
        assert taskq("queue", "limit", "email", "crm", "--reset", "--key", key).stderr == ""
    assert rows(taskq) == []
