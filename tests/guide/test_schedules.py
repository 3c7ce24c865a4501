"""Recurring work: README's block, and a schedule put by hand that really runs."""

from __future__ import annotations

from taskq import TaskQ, current
from tests.guide.app import app
from tests.guide.test_readme import blocks
from tests.waiting import wait_until


@app.task
def remembered(text: str) -> str:
    return f"{text} {current().scheduled_for:%S}"


def test_the_block_in_readme_declares_two_schedules() -> None:
    block = next(body for body in blocks("python") if "app.cron" in body)
    here = TaskQ()
    exec(block, {"app": here, "current": current, "__name__": "shop"})  # noqa: S102 (README is run, not believed)
    assert {name: each.rule.expression for name, each in here.scheduled.items()} == {
        "shop.report": "@every 30m",
        "shop.report#2": "0 9 * * 1-5",
    }
    assert here.scheduled["shop.report"].task.queue == "email"
    assert len(here.observers) == 1


def test_one_put_by_hand_runs_and_is_removed() -> None:
    made = app.schedules.put("by-hand", remembered.call("at"), every="1s", max_runs=2)
    assert (made.expression, made.state, made.origin) == ("@every 1s", "active", "api")
    wait_until(lambda: app.schedules.get("by-hand").state == "over")
    wait_until(lambda: all(run.job for run in app.schedules.get("by-hand").runs))
    runs = app.schedules.get("by-hand").runs
    assert len(runs) == app.schedules.get("by-hand").fired == 2
    for run in runs:
        assert app.job(run.job).result(timeout=10) == f"at {run.nominal:%S}"
    by_hand = app.schedules.run("by-hand")
    assert by_hand.manual
    assert app.job(by_hand.job).result(timeout=10) == f"at {by_hand.nominal:%S}"
    assert app.job(by_hand.job).to_dict()["schedule"] == "by-hand"
    assert app.schedules.remove("by-hand")
    assert not app.schedules.remove("by-hand")
