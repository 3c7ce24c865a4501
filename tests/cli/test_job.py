"""`taskq job list | show | retry | cancel`."""

from __future__ import annotations

import json

import pytest

from taskq import TaskQError, Unavailable
from taskq.client import Client

HOSTILE = "\x1b]0;owned\x07<b>[red]x[/red]\u202e"


def listed(taskq, *words):
    result = taskq("job", "list", *words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_list_is_a_page_and_pages_make_up_the_whole(taskq, add):
    ids = add(7)
    assert listed(taskq)["total"] == 7
    pages = [listed(taskq, "--limit", "3", "--offset", str(at)) for at in (0, 3, 6, 9)]
    assert [len(page["data"]) for page in pages] == [3, 3, 1, 0]
    assert [each["id"] for page in pages for each in page["data"]] == ids
    assert (pages[1]["limit"], pages[1]["offset"], pages[1]["total"]) == (3, 3, 7)


def test_a_list_can_be_of_one_state_or_one_queue(taskq, add, finish, app):
    add(3)
    (failed,) = finish(1, "fail")
    app.by_name("x.y", queue="email").enqueue()
    assert [each["id"] for each in listed(taskq, "--state", "failed")["data"]] == [failed]
    assert listed(taskq, "--state", "available")["total"] == 3
    assert listed(taskq, "--queue", "email")["total"] == 1
    assert listed(taskq, "--state", "completed", "--queue", "email") == {
        "data": [], "total": 0, "limit": 50, "offset": 0,
    }  # fmt: skip


@pytest.mark.parametrize("more", [[], ["--json"], ["--state", "failed"]])
def test_a_list_of_a_queue_that_never_was_is_one_line(taskq, app, more):
    app.by_name("x.y", queue="email").enqueue()
    result = taskq("job", "list", "-q", "emial", *more)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "taskq: there is no queue 'emial' (did you mean 'email'?): nothing was ever enqueued in it\n"
    )


def test_the_table_says_what_comes_next(taskq, add):
    add(3)
    result = taskq("job", "list", "--limit", "2")
    assert result.stdout.splitlines()[0].split() == ["id", "task", "state", "attempt", "since", "note"]
    assert len(result.stdout.splitlines()) == 3
    assert "1–2 of 3" in result.stderr
    assert "--offset 2" in result.stderr


def test_a_page_too_deep_among_those_that_wait_says_how_far_it_goes(taskq, app):
    app.enqueue_many([app.by_name("x.y", queue="deep").call(n) for n in range(2100)])
    assert len(listed(taskq, "--offset", "2000")["data"]) == 50
    for state in ([], ["--state", "available"]):
        result = taskq("job", "list", "--offset", "2050", *state)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == (
            "taskq: of the jobs that wait in a lane the first 2,000 can be shown, and this page is deeper:"
            " give a smaller offset\n"
        )
    with pytest.raises(ValueError, match=r"the first 2,000 can be shown") as refused:
        app.inspector.jobs(offset=2050)
    assert isinstance(refused.value, TaskQError)


def test_show_prints_the_json_that_python_gives(taskq, app):
    job = app.by_name("a.b", queue="email").using(tags=["x"], meta={"k": "v"}, priority=5).enqueue(1, b"\x00", k=[2])
    result = taskq("job", "show", job.id, "--json")
    assert json.loads(result.stdout) == job.to_dict()
    text = taskq("job", "show", job.id).stdout
    assert "email" in text
    assert '{"k": [2]}' in text
    assert '{"$type": "bytes", "value": "AA=="}' in text


def test_stored_text_steers_no_terminal(taskq, app, finish):
    id = app.by_name("shop.add", queue="default").using(tags=[HOSTILE], meta={"k": HOSTILE}).enqueue(HOSTILE).id
    error = {"type": HOSTILE, "message": HOSTILE, "traceback": f"{HOSTILE}\n{HOSTILE}", "at": 1, "worker": HOSTILE}
    finish(1, "fail", json.dumps(error), HOSTILE)
    for words in (("list",), ("list", "--json"), ("show", id), ("show", id, "--json")):
        shown = taskq("job", *words).stdout
        assert "owned" in shown
        assert all(line.isprintable() for line in shown.split("\n")), words
    assert json.loads(taskq("job", "show", id, "--json").stdout)["args"] == [HOSTILE]


def test_a_damaged_record_is_one_line_and_hides_no_other(taskq, add, raw, q):
    bad, good = add(2)
    raw.hset(q.job(bad), "attempt", "many")
    assert listed(taskq)["total"] == 2
    assert good in taskq("job", "list").stdout
    result = taskq("job", "show", bad)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "attempt" in result.stderr


@pytest.mark.parametrize("id", ["default:missing", "no-queue", "UPPER:1"])
@pytest.mark.parametrize("verb", ["show", "retry", "cancel"])
def test_an_unknown_job_is_one_line_and_exit_code_1(taskq, verb, id):
    result = taskq("job", verb, id)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert id in result.stderr


def test_retry_runs_an_ended_job_again(taskq, add, finish, app):
    add(2)
    ids = finish(2, "fail")
    result = taskq("job", "retry", *ids)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [f"{id}: runs again" for id in ids]
    assert app.inspector.counts("default").available == 2


def test_retry_is_all_or_nothing_unless_partial(taskq, add, finish, app):
    ended, waiting = add(2)
    assert finish(1, "complete") == [ended]
    refused = taskq("job", "retry", ended, waiting)
    assert refused.exit_code == 1
    assert waiting in refused.stderr
    assert app.job(ended).refresh().state == "completed"
    some = taskq("job", "retry", "--partial", ended, waiting, "default:none")
    assert some.exit_code == 1
    assert some.stdout == f"{ended}: runs again\n"
    assert some.stderr.splitlines() == [
        f"taskq: {waiting}: is available already",
        "taskq: default:none: there is no such job",
    ]


def test_each_queue_says_what_became_of_it(taskq, app, add, finish):
    """A refusal in one queue says nothing of the others, whose jobs are done."""
    (ended,) = add()
    assert finish(1, "complete") == [ended]
    other, third = (app.by_name("x.y", queue=name).enqueue().id for name in ("email", "third"))
    result = taskq("job", "cancel", other, "nosuch:x", ended, third)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [f"{other}: cancelled", f"{third}: cancelled"]
    assert result.stderr.splitlines() == [
        "taskq: there is no job nosuch:x; nothing was done in queue nosuch",
        f"taskq: job {ended} has ended already: it is completed; nothing was done in queue default",
    ]
    again = taskq("job", "retry", other, "nosuch:x")
    assert (again.exit_code, again.stdout) == (1, f"{other}: runs again\n")
    assert taskq("job", "cancel", other, "nonsense").stdout == ""
    assert app.job(other).refresh().state == "available"


def test_beyond_250_jobs_each_part_says_what_became_of_it(taskq, add, app):
    ids = add(260)
    taskq("job", "cancel", ids[255])
    result = taskq("job", "cancel", "--no-running", *ids)
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 250
    assert result.stderr == (
        f"taskq: job {ids[255]} has ended already: it is cancelled;"
        " nothing was done with it and 9 more of queue default\n"
    )


def test_retry_of_what_runs_is_told_so(taskq, add, finish):
    add()
    (id,) = finish(1, "leave it")
    told = f"taskq: {id}: is running: it can't be made available before it has ended\n"
    assert taskq("job", "retry", "--partial", id).stderr == told


def test_retry_says_who_owns_a_unique_key_and_what_has_not_ended(taskq, app):
    once = app.by_name("x.y", queue="default").using(unique="1h")
    first = once.enqueue(1)
    first.cancel()
    owner = once.enqueue(1)
    later = app.by_name("x.y", queue="default").using(delay="1h").enqueue(2)
    assert taskq("job", "retry", "--partial", first.id, later.id).stderr.splitlines() == [
        f"taskq: {first.id}: job {owner.id} owns its unique key",
        f"taskq: {later.id}: is scheduled: it can't be made available before it has ended",
    ]
    assert taskq("job", "retry", later.id).stderr == (
        f"taskq: job {later.id} is scheduled: it can't be made available before it has ended; nothing was done\n"
    )


@pytest.mark.parametrize("partial", [(), ("--partial",)])
@pytest.mark.parametrize("verb, word", [("cancel", "cancelled"), ("retry", "runs again")])
def test_what_was_done_before_the_server_was_lost_is_told(taskq, app, monkeypatch, verb, word, partial):  # noqa: PLR0917 (fixtures)
    jobs = [app.by_name("x.y", queue=name).enqueue() for name in ("a", "b", "c", "a")]
    if verb == "retry":
        for job in jobs:
            job.cancel()
    first, second, third, fourth = (job.id for job in jobs)
    whole, error = getattr(Client, f"{verb}_many"), Unavailable()

    def lost(client, ids, **options):
        if second in ids:
            raise error
        return whole(client, ids, **options)

    monkeypatch.setattr(Client, f"{verb}_many", lost)
    result = taskq("job", verb, *partial, first, second, third, fourth)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [f"{first}: {word}", f"{fourth}: {word}"]
    assert result.stderr.splitlines() == [
        f"taskq: perhaps not done: {second}",
        f"taskq: not sent: {third}",
        f"taskq: {Unavailable()}",
    ]
    error = KeyboardInterrupt()
    result = taskq("job", verb, *partial, second, third)
    assert result.exit_code == 130
    assert result.stderr.split("\n")[:2] == [f"taskq: perhaps not done: {second}", f"taskq: not sent: {third}"]
    error = Unavailable()
    alone = taskq("job", verb, *partial, second)
    assert (alone.exit_code, alone.stdout, alone.stderr) == (1, "", f"taskq: {Unavailable()}\n")


def test_cancel_takes_a_waiting_job_away(taskq, add, app):
    (id,) = add()
    assert taskq("job", "cancel", id).stdout == f"{id}: cancelled\n"
    assert app.job(id).refresh().state == "cancelled"


def test_cancelling_what_has_ended_is_too_late_and_exit_code_1(taskq, add, finish):
    add()
    (id,) = finish(1, "complete")
    result = taskq("job", "cancel", id)
    assert (result.exit_code, result.stderr) == (1, f"taskq: {id}: has ended already\n")


def test_a_running_job_is_asked_to_stop_or_refused(taskq, add, finish):
    add()
    (id,) = finish(1, "leave it")
    refused = taskq("job", "cancel", "--no-running", id)
    assert refused.exit_code == 1
    assert refused.stderr == f"taskq: {id}: is running: cancel it with --running\n"
    assert taskq("job", "cancel", id).stdout == f"{id}: its worker was asked to stop it\n"


def test_a_narrow_terminal_breaks_no_id(taskq, app, finish, monkeypatch):
    app.by_name("shop.tasks.orders.report", queue="default").enqueue()
    (id,) = finish(1, "fail", json.dumps({"type": "ValueError", "message": "a long story " * 9}), "a long story " * 9)
    monkeypatch.setattr("taskq.cli.output.on_terminal", lambda: True)
    for columns in (40, 60, 80, 100, 120, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        result = taskq("job", "list")
        heading, row = result.stdout.splitlines()
        assert id in row.split()
        assert max(len(heading), len(row.rstrip())) <= max(columns, len(id) + 2 + len("failed"))
    assert "note" in heading
    assert result.stderr == ""
    monkeypatch.setenv("COLUMNS", "80")
    assert taskq("job", "list").stderr == "too narrow here for attempt, since, note; --json shows everything\n"


def test_why_says_what_holds_a_job(taskq, app):
    job = app.by_name("shop.add", queue="default").using(delay="1h").enqueue(1, 2)
    assert "it is due at " in taskq("job", "why", job.id).stdout
    found = json.loads(taskq("job", "why", job.id, "--json").stdout)
    assert (found["id"], found["state"], found["gate"]) == (job.id, "scheduled", "due")
    assert 3590 < found["in"] <= 3600
    waiting = app.by_name("shop.add", queue="default").enqueue(1, 2)
    assert taskq("job", "why", waiting.id).stdout.strip() == (
        "no live taskq worker serves queue default: taskq worker APP -q default"
    )
    assert waiting.why().gate == "worker"


def test_why_of_a_job_that_is_not_there_is_one_line(taskq):
    result = taskq("job", "why", "default:nobody")
    assert result.exit_code == 1
    assert "there is no job default:nobody" in result.stderr
