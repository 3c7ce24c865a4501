"""`taskq job list | show | retry | cancel | clear`."""

from __future__ import annotations

import json
import time

import pytest

from taskq import keys
from taskq.commands import Done, Failure, cancel, claim, complete, fail

HOSTILE = "\x1b]0;owned\x07<b>[red]x[/red]\u202e"


@pytest.fixture
def finish(run, q):
    """`finish(n, "complete" | "fail")`: a worker takes n jobs and ends them so."""
    requests = iter(range(1, 1000))

    def end(n, verb, error="{}", reason="broken"):
        request = next(requests)
        got = run(claim(q, worker="w.1", request=request, lease_ms=8000, limit=n, free={"async": n, "thread": n}))
        if verb == "complete":
            run(complete(q, worker="w.1", done=[Done(job.id, job.epoch, b"") for job in got.jobs]))
        elif verb == "fail":
            run(fail(q, worker="w.1", failures=[Failure(j.id, j.epoch, "fail", 0, error, reason) for j in got.jobs]))
        return [job.id for job in got.jobs]

    return end


@pytest.fixture
def add(app):
    task = app.by_name("shop.add", queue="default")

    def add(n=1, **options):
        return [job.id for job in app.enqueue_many([task.using(**options).call(i) for i in range(n)])]

    return add


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
        f"taskq: {waiting}: is waiting",
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
        f"taskq: job {ended} is completed: it can't be made cancelled; nothing was done in queue default",
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
        f"taskq: job {ids[255]} is cancelled already; nothing was done with it and 9 more of queue default\n"
    )


def test_retry_of_what_runs_is_told_so(taskq, add, finish):
    add()
    (id,) = finish(1, "leave it")
    assert taskq("job", "retry", "--partial", id).stderr == f"taskq: {id}: is running: it hasn't ended\n"


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


def test_clear_deletes_the_failed_and_the_cancelled_and_says_how_many(taskq, add, finish, raw, q):
    ids = add(600)
    taskq("job", "cancel", *ids[:300])
    finish(200, "fail")
    finish(100, "complete")
    result = taskq("job", "clear", "--yes")
    assert result.exit_code == 0
    assert f"delete in {q.namespace}/default: 200 failed, 300 cancelled" in result.stderr
    assert result.stdout == "default: 500 deleted\n"
    left = json.loads(taskq("stats", "--json").stdout)["total"]
    assert (left["failed"], left["cancelled"], left["completed"]) == (0, 0, 100)
    assert len(list(raw.scan_iter(q.job("*")))) == 100


def test_clear_by_state_queue_and_age(taskq, add, finish, app):
    add(3)
    finish(3, "complete")
    assert (
        taskq("job", "clear", "--states", "completed", "--older-than", "1h", "--yes").stdout == "default: 0 deleted\n"
    )
    assert taskq("job", "clear", "--state", "completed", "--queue", "default", "--yes").stdout == "default: 3 deleted\n"
    assert taskq("job", "clear", "--yes").stdout == "nothing to delete: no job is failed or cancelled\n"
    refused = taskq("job", "clear", "--queue", "defualt", "--yes")
    assert (refused.exit_code, "did you mean 'default'" in refused.stderr) == (1, True)


def test_clear_of_at_most_so_many(taskq, add, finish):
    add(400)
    finish(200, "fail")
    finish(200, "fail")
    assert taskq("job", "clear", "--limit", "260", "--yes").stdout == "default: 260 deleted\n"
    assert listed(taskq, "--state", "failed")["total"] == 140
    assert taskq("job", "clear", "--limit", "999", "--yes").stdout == "default: 140 deleted\n"


def test_a_limit_takes_the_longest_ended_of_every_queue_and_state(taskq, app, run, namespace):
    """Two queues and two states, ended in turns; what is announced is what is done."""
    ended, began = [], int(time.time() * 1000) - 60_000
    for number in range(12):
        queue, state = ("a", "b")[number % 2], ("failed", "cancelled")[number // 2 % 2]
        q = keys.queue(namespace, queue)
        id = app.by_name("x.y", queue=queue).using(id=f"{number}").enqueue().id
        at = began + number * 1000
        if state == "cancelled":
            run(cancel(q, [id], now=at))
        else:
            (got,) = run(
                claim(q, worker="w.1", request=number + 1, lease_ms=8000, limit=1, free={"async": 1}, now=at)
            ).jobs
            run(fail(q, worker="w.1", failures=[Failure(got.id, got.epoch, "fail", 0, "{}", "no")], now=at))
        ended.append(id)
    result = taskq("job", "clear", "--limit", "7", "--yes")
    assert result.stderr.splitlines() == [
        f"delete in {namespace}/a: 2 failed, 2 cancelled (the 7 of 12 that ended first)",
        f"delete in {namespace}/b: 2 failed, 1 cancelled (the 7 of 12 that ended first)",
    ]
    assert result.stdout.splitlines() == ["a: 4 deleted", "b: 3 deleted", "in all: 7 deleted"]
    assert sorted(each["id"] for each in listed(taskq)["data"]) == sorted(ended[7:])


def test_those_that_ended_last_are_kept(taskq, add, finish, q, monkeypatch):
    monkeypatch.setattr("taskq.cli.scope._PAGE", 7)
    add(20)
    first = finish(20, "fail")
    time.sleep(0.01)  # an end is told to the millisecond
    more = add(10)
    taskq("job", "cancel", *more)
    result = taskq("job", "clear", "--offset", "15", "--yes")
    assert result.stderr == f"delete in {q.namespace}/default: 15 failed (the 15 of 30 that ended first)\n"
    assert result.stdout == "default: 15 deleted\n"
    left = {each["id"] for each in listed(taskq)["data"]}
    assert left > set(more)
    assert len(left & set(first)) == 5
    assert taskq("job", "clear", "--offset", "12", "--limit", "2", "--yes").stdout == "default: 2 deleted\n"
    assert taskq("job", "clear", "--offset", "12", "--limit", "2", "--yes").stdout == "default: 1 deleted\n"
    kept = taskq("job", "clear", "--offset", "12", "--yes")
    assert kept.stdout == "nothing to delete: the 12 that ended last are kept, and there are 12\n"
    assert len(listed(taskq)["data"]) == 12


def test_a_limit_reads_page_after_page(taskq, app, add, finish, monkeypatch):
    monkeypatch.setattr("taskq.cli.scope._PAGE", 7)
    add(40)
    first, later = finish(20, "fail"), finish(20, "fail")
    assert taskq("job", "clear", "--limit", "25", "--yes").stdout == "default: 25 deleted\n"
    left = {each["id"] for each in listed(taskq)["data"]}
    assert left < set(later)
    assert not left & set(first)


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


def test_off_a_terminal_clear_wants_yes_and_tells_its_scope_first(taskq, add, finish, app, namespace):
    add(2)
    finish(2, "fail")
    result = taskq("job", "clear")
    assert result.exit_code == 2
    first, second = result.stderr.splitlines()
    assert first == f"delete in {namespace}/default: 2 failed"
    assert "--yes" in second
    assert app.inspector.counts("default").failed == 2


@pytest.mark.parametrize("answer, left", [("y\n", 0), ("n\n", 2), ("\n", 2)])
def test_on_a_terminal_clear_asks(taskq, finish, app, monkeypatch, answer, left):  # noqa: PLR0917 (fixtures)
    app.by_name("a.b", queue="default").enqueue()
    app.by_name("a.b", queue="default").enqueue()
    finish(2, "fail")
    monkeypatch.setattr("taskq.cli.options.on_terminal", lambda: True)
    result = taskq("job", "clear", input=answer)
    assert result.exit_code == (1 if left else 0)
    assert app.inspector.counts("default").failed == left


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
