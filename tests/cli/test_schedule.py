"""`taskq schedule list | show | run | pause | resume | remove`, and `cron`, its other name."""

from __future__ import annotations

import json

import pytest

from taskq import commands, keys
from taskq.commands import Declared
from taskq.schedules.template import Template


@pytest.fixture
def schedules(app):
    call = app.by_name("shop.send", queue="email").call("a@b.c", subject="hi")
    app.schedules.put("report", call, cron="0 9 * * 1-5", tz="Europe/Berlin", overlap="skip")
    app.schedules.put("poll", app.by_name("shop.add", queue="default"), every="30s", jitter="5s")
    return app.schedules


def declare(app, run):
    c = keys.cluster(app.settings.namespace)
    template = Template("t", "async", 0, "", "", {}).pack()
    run(commands.declare_schedules(c, [Declared("of-code", '{"every_ms":60000}', "allow", "default", "t", template)]))


def test_list_has_every_schedule_with_its_next_time(taskq, schedules):
    page = json.loads(taskq("schedule", "list", "--json").stdout)
    assert (page["total"], page["limit"], page["offset"]) == (2, 1000, 0)
    rows = {each["name"]: each for each in page["data"]}
    assert rows["report"]["expression"] == "0 9 * * 1-5"
    assert rows["report"]["tz"] == "Europe/Berlin"
    assert rows["poll"]["next"] is not None
    assert "runs" not in rows["poll"]
    lines = taskq("cron", "list").stdout.splitlines()
    assert lines[0].split("  ")[0] == "name"
    assert any("0 9 * * 1-5, Europe/Berlin" in line and "active" in line for line in lines)
    assert any("@every 30s, jitter 5s" in line for line in lines)
    assert taskq("schedule", "list", "--limit", "1").stderr == "1–1 of 2; the next page: --offset 1\n"
    assert taskq("schedule", "list").stderr == ""


def test_run_fires_now_and_show_has_the_run(taskq, schedules):
    result = taskq("schedule", "run", "report")
    assert result.exit_code == 0
    id = result.stdout.strip()
    assert id.startswith("email:m-")
    shown = json.loads(taskq("schedule", "show", "report", "--json").stdout)
    assert shown["args"] == ["a@b.c"]
    assert shown["kwargs"] == {"subject": "hi"}
    (run,) = shown["runs"]
    assert (run["job"], run["state"], run["manual"], run["term"]) == (id, "fired", True, 0)
    job = json.loads(taskq("job", "show", id, "--json").stdout)
    assert (job["schedule"], job["scheduled_for"]) == ("report", run["nominal"])
    text = taskq("schedule", "show", "report").stdout
    assert "fired, by hand" in text
    again = taskq("schedule", "run", "report")
    assert again.exit_code == 1
    assert again.stderr == f"taskq: report: skipped: job {id} has not ended\n"


def test_pause_and_resume_say_whether_they_changed_anything(taskq, schedules):
    assert taskq("schedule", "pause", "report", "poll").stdout == "report: paused\npoll: paused\n"
    assert taskq("schedule", "pause", "report").stdout == "report: is paused already\n"
    assert json.loads(taskq("schedule", "show", "report", "--json").stdout)["state"] == "paused"
    assert taskq("schedule", "resume", "report").stdout == "report: resumed\n"
    assert taskq("schedule", "resume", "report").stdout == "report: was not paused\n"


def test_remove_asks_and_what_code_declares_stays(taskq, schedules, app, run):
    declare(app, run)
    assert taskq("schedule", "remove", "report").exit_code == 2
    assert taskq("schedule", "remove", "report", "--yes").stdout == "report: removed\n"
    result = taskq("schedule", "remove", "of-code", "--yes")
    assert result.exit_code == 1
    assert "workers' code declares schedule of-code" in result.stderr
    assert {each.name for each in schedules.list()} == {"poll", "of-code"}


@pytest.mark.parametrize("verb", ["show", "run", "pause", "resume", "remove"])
def test_a_schedule_that_is_none_is_refused_with_the_nearest(taskq, schedules, verb):
    more = ["--yes"] if verb == "remove" else []
    result = taskq("schedule", verb, "reprot", *more)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "taskq: there is no schedule 'reprot' (did you mean 'report'?)\n"
    far = taskq("schedule", verb, "nothing-like-it", *more)
    assert far.stderr == "taskq: there is no schedule 'nothing-like-it': see `taskq schedule list`\n"
