"""`taskq task`: list, show."""

from __future__ import annotations

import contextlib
import json

import pytest

from taskq import commands, keys
from taskq.connection import connect, run


@pytest.fixture
def knows(settings, namespace):
    """`knows("mail.send")`: a node has said that it knows this task."""
    server = connect(settings)

    def knows(*tasks, node="n", options="", about=""):
        told = [commands.KnownTask(task, "email", "async", options, about) for task in tasks]
        fields = {"state": "active", "tasks": json.dumps(tasks)}
        run(
            server,
            commands.register_node(keys.cluster(namespace), node=node, ttl_ms=60_000, fields=fields, tasks=told),
        )

    yield knows
    server.close()


def test_no_tasks(taskq):
    assert json.loads(taskq("task", "list", "--json").stdout) == {"data": [], "total": 0, "limit": 1000, "offset": 0}


def test_tasks_by_name_with_who_serves_them(taskq, knows):
    knows("mail.send", "mail.read")
    knows("mail.send", "mail.drop", node="other")
    page = json.loads(taskq("task", "list", "--json").stdout)
    assert [(each["name"], each["nodes"]) for each in page["data"]] == [
        ("mail.drop", ["other"]), ("mail.read", ["n"]), ("mail.send", ["n", "other"]),
    ]  # fmt: skip
    page = json.loads(taskq("task", "list", "--json", "--limit", "1", "--offset", "2").stdout)
    assert ([each["name"] for each in page["data"]], page["total"]) == (["mail.send"], 3)
    assert "mail.drop" in taskq("task", "list").stdout


def test_a_real_task_shows_its_parameters_options_and_settings(taskq, worker, app):
    del worker
    found = json.loads(taskq("task", "show", "shop.send", "--json").stdout)
    (node,) = app.nodes.list()["data"]
    assert (found["queue"], found["executor"], found["nodes"]) == ("email", "thread", [node["id"]])
    assert found["parameters"] == "(to, *, subject='hi')"
    assert found["settings"]["backoff"].startswith("exponential")
    assert json.loads(taskq("task", "show", "shop.boom", "--json").stdout)["options"] == {"max_attempts": 1}
    told = taskq("task", "show", "shop.boom").stdout
    assert "max_attempts=1" in told
    assert "(text)" in told


def test_a_task_that_nobody_serves_any_more_is_shown_with_a_word(taskq, knows, settings, namespace):
    knows("mail.send", about='{"parameters": "(to)"}')
    with contextlib.closing(connect(settings)) as server:
        run(server, commands.depart(keys.cluster(namespace), "n"))
    shown = taskq("task", "show", "mail.send")
    assert "(to)" in shown.stdout
    assert "no node serves 'mail.send' now" in shown.stderr


def test_damaged_words_are_nothing(taskq, knows):
    knows("mail.send", options="{", about='["x"]')
    found = json.loads(taskq("task", "show", "mail.send", "--json").stdout)
    assert (found["options"], found["settings"], found["keys"], found["parameters"]) == ({}, {}, {}, None)


def test_an_unknown_task_is_one_line_with_the_nearest(taskq, knows):
    knows("mail.send")
    result = taskq("task", "show", "mail.sned")
    assert result.exit_code == 1
    assert result.stderr.strip() == (
        "taskq: no node has known a task 'mail.sned' within the last day (did you mean 'mail.send'?)"
    )


async def test_the_async_twins_do_the_same(app, knows):
    knows("mail.send")
    assert await app.inspector.atasks() == app.inspector.tasks()
    assert await app.inspector.atask("mail.send") == app.inspector.task("mail.send")
    assert (await app.inspector.anodes())[0]["id"] == "n"
    await app.aclose()


def test_what_operators_say_of_a_task_is_shown(taskq, knows, app):
    knows("mail.send", "mail.read")
    app.client.register("email")
    taskq("task", "pause", "mail.send")
    app.queue("email").limit(task="mail.send", concurrency=3)
    read, send = json.loads(taskq("task", "list", "--json").stdout)["data"]
    assert (read["paused"], read["said"], send["paused"]) == (False, [], True)
    assert [(said["queue"], said["concurrency"]) for said in send["said"]] == [("email", 3)]
    assert "paused, 3 at a time" in taskq("task", "list").stdout
    assert "in queue email: paused, 3 at a time" in taskq("task", "show", "mail.send").stdout
    assert json.loads(taskq("task", "show", "mail.send", "--json").stdout)["said"] == send["said"]


def test_backoff_and_limits_are_told_in_words(taskq, knows):
    limits = [{"n": 2, "by": "tenant", "name": "crm"}, {"rate": "100/1m", "name": "crm", "burst": 20}]
    about = {"settings": {"backoff": "exponential:15000:3600000"}}
    knows("mail.send", options=json.dumps({"limits": limits}), about=json.dumps(about))
    told = taskq("task", "show", "mail.send").stdout
    assert "backoff=exponential from 15s to 1h" in told
    assert "limits=crm: 2 at a time a tenant; crm: 100/1m burst 20" in told
    assert json.loads(taskq("task", "show", "mail.send", "--json").stdout)["keys"]["limits"] == limits
