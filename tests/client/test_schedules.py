"""`app.schedules` and what code declares: both colours say the same, and what can't be is refused where it is said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from taskq import InvalidTransition, ScheduleNotFound, TaskQ
from taskq.node.worker.load import greeting


@pytest.fixture
def app(server_url, namespace):
    app = TaskQ(server_url, namespace=namespace)
    yield app
    app.close()


@pytest.fixture
def send(app):
    @app.task(name="send", queue="email", max_attempts=7)
    def send(to: str = "me") -> None: ...

    return send


# --- by hand


@pytest.mark.parametrize(
    "rule",
    [
        {"cron": "* * * * *"},
        {"cron": "30 * * * * *", "tz": "Asia/Kolkata"},
        {"cron": "@daily", "jitter": "1h"},
        {"cron": "@every 90s"},
        {"every": 30, "jitter": 5},
        {"every": "1h", "start": datetime(2030, 1, 1, tzinfo=UTC), "end": datetime(2031, 1, 1, tzinfo=UTC)},
        {"every": "1h", "max_runs": 1, "missed": "all", "overlap": "queue-one"},
    ],
)
async def test_every_kind_of_rule_is_put_and_has_a_next_time(app, send, rule):
    made = app.schedules.put("s", send.call("a"), **rule)
    assert made.next is not None
    assert made.next > datetime.now(UTC)
    same = await app.schedules.aput("s", send.call("a"), **rule)
    assert (same.rule, same.created_at, same.declared_at) == (made.rule, made.created_at, made.declared_at)
    assert app.schedules.get("s") == await app.schedules.aget("s")
    await app.aclose()


async def test_both_colours_do_the_same(app, send):
    s = app.schedules
    app.schedules.put("s", send, every="1h")
    seen = []
    app.on_schedule(seen.append)

    @app.on_schedule
    async def later(run):
        seen.append(run)

    assert (s.pause("s"), await s.apause("s"), s.get("s").paused) == (True, False, True)
    assert (await s.aresume("s"), s.resume("s"), (await s.aget("s")).state) == (True, False, "active")
    first, second = s.run("s"), await s.arun("s")
    assert first.job != second.job
    assert [run.job for run in seen] == [first.job, second.job, second.job]
    assert [run.job for run in s.get("s").runs] == [second.job, first.job]
    assert app.job(first.job).refresh().record.max_attempts == 7
    assert [each.name for each in s.list()] == [each.name for each in await s.alist()] == ["s"]
    assert s.count() == await s.acount() == 1
    assert (s.remove("s"), await s.aremove("s")) == (True, False)
    with pytest.raises(ScheduleNotFound):
        s.get("s")
    with pytest.raises(ScheduleNotFound):
        await s.arun("s")
    await app.aclose()


def test_an_observer_that_raises_hinders_nobody(app, send, caplog):
    @app.on_schedule
    def bad(run):
        raise SystemExit(run.job)

    seen = []
    app.on_schedule(seen.append)
    app.schedules.put("s", send, every="1h")
    assert app.schedules.run("s") == seen[0]


@pytest.mark.parametrize(
    "given, why",
    [
        ({}, "give cron= or every="),
        ({"cron": "@daily", "every": 5}, "give cron= or every="),
        ({"cron": "0 0 30 2 *"}, "never fires"),
        ({"cron": "* * * * *", "tz": "Berlin"}, "no time zone"),
        ({"every": 0.1}, "too often"),
        ({"every": 5, "tz": "Europe/Berlin"}, "no time zone"),
        ({"every": 5, "missed": "some"}, "missed="),
    ],
)
def test_a_rule_that_cannot_be_is_refused(app, send, given, why):
    with pytest.raises(ValueError, match=why):
        app.schedules.put("s", send, **given)
    assert app.schedules.list() == []


def test_what_a_schedule_has_not_is_refused_with_the_nearest_name(app, send):
    with pytest.raises(TypeError, match=r"no 'mised' \(did you mean 'missed'\?\)"):
        app.schedules.put("s", send, every=5, mised="all")
    with pytest.raises(TypeError, match=r"no 'evry' \(did you mean 'every'\?\): it has cron, every, tz, start, end"):
        app.schedules.put("s", send, evry=5)
    with pytest.raises(TypeError, match=r"^priority= is an option of .*: give the task as task.using\(priority=2\)$"):
        app.schedules.put("s", send, every=5, priority=2)
    for declare in (lambda **given: app.every(5, **given), lambda **given: app.cron("@daily", **given)):
        with pytest.raises(TypeError, match=r"no option 'overlp' \(did you mean 'overlap'\?\)"):
            declare(overlp="skip")


def test_options_of_one_job_are_refused(app, send):
    for options in (
        {"id": "x"},
        {"at": datetime(2030, 1, 1, tzinfo=UTC)},
        {"expires": datetime(2030, 1, 1, tzinfo=UTC)},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(options))}="):
            app.schedules.put("s", send.using(**options), every=5)
        with pytest.raises(ValueError, match=f"{next(iter(options))}="):
            app.every(5, **options)
    with pytest.raises(ValueError, match="65,536 are the most"):
        app.schedules.put("s", send.call("x" * 70_000), every=5)
    with pytest.raises(TypeError, match="a task or a call"):
        app.schedules.put("s", print, every=5)


# --- by code


def plain(n: int = 1) -> int:
    return n


def needy(x: int) -> None: ...


def test_code_declares_above_a_task_or_a_plain_function(app):
    @app.cron("0 9 * * *", name="morning", priority=3)
    @app.every("30s", queue="other")
    @app.every("1h")
    @app.task(queue="email", name="report")
    async def report() -> None: ...

    @app.on_schedule
    def seen(run): ...

    made = app.cron("@daily")(plain)
    assert made(2) == 2
    assert list(app.scheduled) == ["report", "report#2", "morning", made.name]
    hello = greeting(app, [])
    assert hello.queues == ["default", "email", "other"]
    assert [(row[0], row[3]) for row in hello.schedules] == [
        ("report", "email"),
        ("report#2", "other"),
        ("morning", "email"),
        (made.name, "default"),
    ]
    assert hello.observes


def test_a_function_loaded_again_replaces_what_it_declared(app):
    def load(interval):
        @app.every(interval)
        @app.task(name="t")
        def again() -> None: ...

    load("10s")
    load("20s")
    assert [each.rule.every_ms for each in app.scheduled.values()] == [20_000]


def test_what_needs_arguments_or_cannot_be_found_is_refused(app):
    with pytest.raises(ValueError, match="a schedule gives no arguments"):
        app.every("5s")(needy)
    with pytest.raises(ValueError, match="can't be scheduled: a lambda has no name"):
        app.every("5s")(lambda: None)
    with pytest.raises(TypeError, match="no function"):
        app.every("5s")(5)


def test_a_name_stands_for_one_schedule(app):
    app.every("5s", name="n")(plain)
    with pytest.raises(ValueError, match="two schedules would be 'n'"):
        app.every("6s", name="n")(app.task(name="other")(plain))
    with pytest.raises(ValueError, match="no schedule's name"):
        app.every("5s", name="a b")


def test_what_code_declares_is_not_removed_by_hand(app, send, run):
    from taskq import commands, keys

    app.every("1h", name="s")(plain)
    run(commands.declare_schedules(keys.cluster(app.settings.namespace), app.declared()))
    with pytest.raises(InvalidTransition, match="workers' code declares"):
        app.schedules.remove("s")


def test_no_name_is_no_schedule_whatever_there_is(app, send):
    app.schedules.put("?", send.call(), every="1h")
    with pytest.raises(ScheduleNotFound):
        app.schedules.get("")
