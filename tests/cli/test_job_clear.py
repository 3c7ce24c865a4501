"""`taskq job clear`: what it deletes, what it keeps, and what it says before and after."""

from __future__ import annotations

import json
import time

import pytest

from taskq import Unavailable, keys
from taskq.cli import scope
from taskq.commands import Failure, cancel, claim, fail


def listed(taskq, *words):
    result = taskq("job", "list", *words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


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


@pytest.fixture
def ends(app, run, namespace):
    """`ends(*seconds)`: jobs cancelled so many seconds after the first, by turns in queues a and b; their ids."""
    began, count = int(time.time() * 1000) - 600_000, iter(range(1000))

    def end(*seconds):
        made = []
        for at_s in seconds:
            queue = "ab"[next(count) % 2]
            made.append(app.by_name("x.y", queue=queue).enqueue().id)
            run(cancel(keys.queue(namespace, queue), [made[-1]], now=began + at_s * 1000))
        return made

    return end


def there(taskq):
    return {each["id"] for each in listed(taskq, "--limit", "1000")["data"]}


def test_those_that_ended_last_are_kept(taskq, ends, namespace, monkeypatch):
    monkeypatch.setattr("taskq.cli.scope._PAGE", 4)
    made = ends(*range(30))
    result = taskq("job", "clear", "--offset", "15", "--yes")
    assert result.stderr.splitlines() == [
        f"delete in {namespace}/a: 8 cancelled (the 15 of 30 that ended first)",
        f"delete in {namespace}/b: 7 cancelled (the 15 of 30 that ended first)",
    ]
    assert result.stdout.splitlines()[-1] == "in all: 15 deleted"
    assert there(taskq) == set(made[15:])
    for deleted in (2, 1):
        result = taskq("job", "clear", "--offset", "12", "--limit", "2", "--yes")
        assert result.stdout.splitlines()[-1] == f"in all: {deleted} deleted"
    kept = taskq("job", "clear", "--offset", "12", "--yes")
    assert kept.stdout == "nothing to delete: the 12 that ended last are kept, and there are 12\n"
    assert there(taskq) == set(made[18:])


def test_of_those_that_ended_at_once_all_are_kept(taskq, ends):
    made = ends(0, 1, 2, 2, 2, 3)
    assert taskq("job", "clear", "--offset", "2", "--yes").stdout.splitlines()[-1] == "in all: 2 deleted"
    assert there(taskq) == set(made[2:])
    kept = taskq("job", "clear", "--offset", "2", "--yes")
    assert kept.stdout == (
        "nothing to delete: the 2 that ended last are kept, and with them those of the same millisecond\n"
    )


@pytest.mark.parametrize("limit", [(), ("--limit", "4")])
def test_what_is_kept_is_kept_whatever_others_delete_meanwhile(taskq, app, ends, monkeypatch, limit):
    """Between the announcement and the answer to it a second clear, or retention, may take what was counted."""
    made = ends(*range(12))

    def answer(*_, **__):
        for queue in ("a", "b"):
            app.client.clear(queue, limit=3)
        made.extend(ends(100, 101))

    monkeypatch.setattr("taskq.cli.job.confirm", answer)
    result = taskq("job", "clear", "--offset", "5", *limit)
    assert result.exit_code == 0
    assert there(taskq) == set(made[7 if not limit else 6 :])


@pytest.mark.parametrize("more", [("--limit", "2"), ("--limit", "2", "--offset", "5"), ("--offset", "5")])
def test_nothing_to_clear_is_said(taskq, app, more):
    app.by_name("x.y", queue="default").enqueue()
    result = taskq("job", "clear", *more, "--yes")
    assert (result.exit_code, result.stdout) == (0, "nothing to delete: no job is failed or cancelled\n")


def test_what_was_deleted_before_the_server_was_lost_is_told(taskq, ends, monkeypatch):
    ends(*range(6))
    whole, calls = scope.run, []

    def lost(server, command):
        if command.script.name == "clear":
            calls.append(command)
            if len(calls) > 1:
                raise Unavailable
        return whole(server, command)

    monkeypatch.setattr("taskq.cli.scope.run", lost)
    result = taskq("job", "clear", "--yes")
    assert (result.exit_code, result.stdout.splitlines()) == (1, ["a: 3 deleted"])
    assert result.stderr.splitlines()[-1] == f"taskq: {Unavailable()}"


def test_a_limit_reads_page_after_page(taskq, app, add, finish, monkeypatch):
    monkeypatch.setattr("taskq.cli.scope._PAGE", 7)
    add(40)
    first, later = finish(20, "fail"), finish(20, "fail")
    assert taskq("job", "clear", "--limit", "25", "--yes").stdout == "default: 25 deleted\n"
    left = {each["id"] for each in listed(taskq)["data"]}
    assert left < set(later)
    assert not left & set(first)


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
