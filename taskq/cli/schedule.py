"""`taskq schedule …`: list, show, run, pause, resume, remove."""

from __future__ import annotations

import click

from taskq.cli import output
from taskq.cli.options import Noun, confirm, json_option, page_options, server_options, yes_option
from taskq.cli.place import app
from taskq.cli.refusal import refuse
from taskq.schedules import Run, Schedule
from taskq.schedules.schedule import in_words
from taskq.units import duration_text


@click.group(
    cls=Noun,
    examples=("taskq schedule list",),
)
@server_options
def schedule() -> None:
    """Recurring work (`@app.cron`, `@app.every`, `app.schedules`): what fires when, and what became of it."""


@schedule.command(
    "list",
    short_help="Every schedule, with its next time.",
    examples=("taskq schedule list --json",),
)
@page_options("Schedules")
@json_option
@server_options
def list_(*, limit: int, offset: int, json_: bool) -> None:
    """Every schedule of the namespace, those whose time comes first before the others. Times are in UTC."""
    schedules = app().schedules
    page = schedules.list(limit=limit, offset=offset)
    if json_:
        data = [_listed(each) for each in page]
        output.document({"data": data, "total": schedules.count(), "limit": limit, "offset": offset})
        return
    rows = [_row(each) for each in page]
    output.table(
        ("name", "when", "next", "last", "fired", "state", "task", "queue"),
        rows,
        numbers=("fired",),
        spare={"queue": 0, "last": 0, "task": 12, "fired": 0, "when": 12},
    )
    if len(page) == limit:
        output.next_page(len(page), schedules.count(), offset)


def _row(each: Schedule) -> tuple[object, ...]:
    shown = each.to_dict()
    times = (output.instant(shown["next"]), output.instant(shown["last"]))
    return (each.name, in_words(each), *times, each.fired, each.state, each.task, each.queue)


def _listed(each: Schedule) -> dict[str, object]:
    """Without what only `show` reads."""
    return {name: value for name, value in each.to_dict().items() if name not in {"runs", "args", "kwargs"}}


@schedule.command(
    short_help="One schedule and its last runs.",
    examples=(
        "taskq schedule show shop.report",
        "taskq schedule show shop.report --json",
    ),
)
@click.argument("name", metavar="NAME")
@json_option
@server_options
def show(*, name: str, json_: bool) -> None:
    """One schedule: its rule, its next time, and its last runs with what became of each."""
    found = app().schedules.get(name)
    shown = found.to_dict()
    if json_:
        output.document(shown)
        return
    rule = found.rule
    rest = {
        **{key: value for key, value in shown.items() if key not in {"runs", "jitter"}},
        "jitter": duration_text(rule.jitter_ms) if rule and rule.jitter_ms else None,
    }
    output.pairs(rest.items())
    if found.runs:
        output.put("")
        output.table(
            ("nominal", "fired at", "state", "job", "error", "term"),
            [_run_row(run) for run in found.runs],
            numbers=("term",),
            spare={"term": 0, "fired at": 0, "error": 12},
        )


def _run_row(run: Run) -> tuple[object, ...]:
    shown = run.to_dict()
    state = f"{run.state}, by hand" if run.manual else run.state
    term = run.term or None
    return (output.instant(shown["nominal"]), output.instant(shown["fired_at"]), state, run.job, run.error, term)


@schedule.command(
    short_help="Fire it now.",
    examples=("taskq schedule run shop.report",),
)
@click.argument("name", metavar="NAME")
@json_option
@server_options
def run(*, name: str, json_: bool) -> None:
    """Fire a schedule now, beside its times, and print the job's id. Its `overlap` holds; a pause doesn't."""
    fired = app().schedules.run(name)
    if json_:
        output.document(fired.to_dict())
    elif fired.job is not None:
        output.put(fired.job)
    elif fired.state == "queued":
        output.note(f"{name}: the last run's job hasn't ended; this one runs after it")
    elif fired.state == "sent":
        output.note(f"{name}: fired, but its queue can't be reached now; the leader goes on trying")
    else:
        refuse(f"{name}: {fired.state}: {fired.error}")


@schedule.command(
    short_help="Let it fire no more.",
    examples=("taskq schedule pause shop.report",),
)
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@server_options
def pause(*, names: tuple[str, ...]) -> None:
    """Let schedules fire no more until they are resumed; a deploy doesn't resume them. Jobs that were fired go on."""
    schedules = app().schedules
    for name in names:
        output.put(f"{name}: {'paused' if schedules.pause(name) else 'is paused already'}")


@schedule.command(
    short_help="Let it fire again.",
    examples=("taskq schedule resume shop.report",),
)
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@server_options
def resume(*, names: tuple[str, ...]) -> None:
    """Let paused schedules fire again, from now on: times that passed meanwhile aren't made up for."""
    schedules = app().schedules
    for name in names:
        output.put(f"{name}: {'resumed' if schedules.resume(name) else 'was not paused'}")


@schedule.command(
    short_help="Remove it.",
    examples=("taskq schedule remove report --yes",),
)
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@yes_option
@server_options
def remove(*, names: tuple[str, ...], yes: bool) -> None:
    """Remove schedules that were put by hand (`app.schedules.put`), and their runs. Jobs that were fired stay.

    What workers' code declares is refused: take it out there, or pause it. Off a terminal --yes is needed.
    """
    schedules = app().schedules
    for name in names:
        schedules.get(name)
    confirm(f"remove {', '.join(names)}?", yes=yes, does="removes schedules")
    for name in names:
        output.put(f"{name}: {'removed' if schedules.remove(name) else 'is gone already'}")
