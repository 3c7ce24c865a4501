"""`taskq queue list | pause | resume | purge`, `taskq stats`, `taskq dispatch`."""

from __future__ import annotations

import json

import pytest

from taskq.commands import claim


@pytest.fixture
def fill(app):
    """Three queues with waiting jobs: available, delayed, both."""

    def add(queue, n, **options):
        task = app.by_name("a.b", queue=queue).using(**options)
        app.enqueue_many([task.call(i) for i in range(n)])

    add("email", 300)
    add("email", 260, delay="1h")
    add("media", 2)
    add("later", 3, delay="1h")
    return add


def test_list_has_every_queue_with_its_counts(taskq, fill, app):
    page = json.loads(taskq("queue", "list", "--json").stdout)
    assert (page["total"], page["limit"], page["offset"]) == (3, 1000, 0)
    assert page["data"] == app.inspector.queues()
    email = page["data"][0]
    assert (email["queue"], email["available"], email["scheduled"], email["paused"]) == ("email", 300, 260, False)
    assert [each["queue"] for each in json.loads(taskq("queue", "list", "--json", "--offset", "2").stdout)["data"]] == [
        "media"
    ]
    assert taskq("queue", "list").stdout.splitlines()[1].split() == ["email", "0", "260", "300", *"00000", "-"]


def test_pause_and_resume_say_what_changed(taskq, fill, app):
    assert taskq("queue", "pause", "email", "media").stdout == "email: paused\nmedia: paused\n"
    assert taskq("queue", "pause", "email").stdout == "email: is paused already\n"
    assert app.inspector.counts("email").paused
    assert "paused" in taskq("stats").stdout.splitlines()[1]
    assert taskq("queue", "resume", "email").stdout == "email: resumed\n"
    assert taskq("queue", "resume", "email").stdout == "email: was not paused\n"
    assert not app.inspector.counts("email").paused


@pytest.mark.parametrize("verb", ["pause", "resume", "purge"])
def test_a_mistyped_queue_is_no_success(taskq, fill, verb):
    result = taskq("queue", verb, "emial", *(["--yes"] if verb == "purge" else []))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did you mean 'email'" in result.stderr


def test_purge_prints_its_scope_then_cancels_exactly_that(taskq, fill, app, namespace):
    result = taskq("queue", "purge", "email", "--yes")
    assert result.exit_code == 0
    assert result.stderr == f"cancel in {namespace}/email: 300 available, 260 scheduled\n"
    assert result.stdout == "email: 560 cancelled\n"
    email, media = app.inspector.counts("email"), app.inspector.counts("media")
    assert (email.available, email.scheduled, email.cancelled) == (0, 0, 560)
    assert (media.available, media.cancelled) == (2, 0)
    again = taskq("queue", "purge", "email", "--yes")
    assert again.stdout.startswith("nothing to cancel")


def test_purge_of_some_states(taskq, fill, app):
    assert taskq("queue", "purge", "email", "--state", "scheduled", "--yes").stdout == "email: 260 cancelled\n"
    assert app.inspector.counts("email").available == 300


def test_purge_of_every_queue_says_each_and_the_sum(taskq, fill):
    result = taskq("queue", "purge", "--all", "--yes")
    assert result.stdout.splitlines() == [
        "email: 560 cancelled",
        "later: 3 cancelled",
        "media: 2 cancelled",
        "in all: 565 cancelled",
    ]


def test_purge_leaves_running_jobs_alone(taskq, fill, app, run, namespace):
    from taskq import keys

    q = keys.queue(namespace, "media")
    run(claim(q, worker="w.1", request=1, lease_ms=8000, limit=1, free={"async": 1}))
    assert taskq("queue", "purge", "media", "--yes").stdout == "media: 1 cancelled\n"
    assert app.inspector.counts("media").running == 1


def test_off_a_terminal_purge_wants_yes(taskq, fill, app):
    result = taskq("queue", "purge", "email")
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert app.inspector.counts("email").available == 300


def test_stats_counts_all_queues_and_their_sum(taskq, fill, namespace):
    stats = json.loads(taskq("stats", "--json").stdout)
    assert stats["namespace"] == namespace
    assert [each["queue"] for each in stats["queues"]] == ["email", "later", "media"]
    assert (stats["total"]["available"], stats["total"]["scheduled"]) == (302, 263)
    assert taskq("stats").stdout.splitlines()[-1].split()[:4] == ["all", "0", "263", "302"]


def test_a_new_server_has_nothing_to_show(taskq):
    assert json.loads(taskq("stats", "--json").stdout)["queues"] == []
    assert json.loads(taskq("queue", "list", "--json").stdout)["data"] == []
    assert taskq("job", "list").exit_code == 0


def test_dispatch_adds_jobs_of_the_built_in_task(taskq, app):
    result = taskq("dispatch", "--count", "12", "--queue", "trial", "--fail-rate", "0", "--delay", "1.5")
    assert result.stdout == "12 jobs added to queue trial\n"
    assert "no worker serves queue trial" in result.stderr
    (job, *_) = app.inspector.jobs(queue="trial")["data"]
    assert (job["task"], job["kwargs"]) == ("taskq.simulate", {"fail_rate": 0.0, "delay": 1.5})
    assert app.inspector.counts("trial").available == 12


def test_dispatch_has_the_defaults_of_the_surface(taskq, app):
    taskq("dispatch")
    page = app.inspector.jobs(queue="default")
    assert page["total"] == 10
    assert page["data"][0]["kwargs"] == {"fail_rate": 30.0, "delay": 500.0}


def test_reservations_are_shown_with_their_jobs(taskq, app):
    queue = app.queue("email")
    slots = [queue.reserve(("tenant", n), max_concurrency=3) for n in range(2)]
    job = queue.bind(slots[1].token, app.by_name("a.b", queue="email").call())
    page = json.loads(taskq("queue", "reservations", "email", "--json").stdout)
    assert page == queue.reservations()
    assert [(each["key"], each["state"], each["job"]) for each in page["data"]] == [
        ("tenant/0", "reserved", None),
        ("tenant/1", "available", job.id),
    ]
    lines = taskq("queue", "reservations", "email", "--limit", "1").stdout.splitlines()
    assert lines[1].split()[:2] == ["tenant/0", "reserved"]
    mistyped = taskq("queue", "reservations", "emial")
    assert mistyped.exit_code == 1
    assert "did you mean 'email'" in mistyped.stderr
