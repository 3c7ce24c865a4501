"""`taskq task …`: list, show."""

from __future__ import annotations

import click

from taskq.cli import output
from taskq.cli.options import Noun, json_option, page_options, server_options
from taskq.cli.place import app
from taskq.cli.refusal import checked_values
from taskq.options import checked_task_name


@click.group(
    cls=Noun,
    later=("pause", "resume"),
    examples=("taskq task list",),
)
@server_options
def task() -> None:
    """Tasks that nodes know: their queues, parameters and options, and who serves them."""


@task.command(
    "list",
    short_help="The tasks that nodes serve now.",
    examples=("taskq task list --json",),
)
@page_options("Tasks")
@json_option
@server_options
def list_(*, limit: int, offset: int, json_: bool) -> None:
    """The tasks that living nodes know, by name."""
    page = app().inspector.tasks(limit=limit, offset=offset)
    if json_:
        output.document(page)
        return
    rows = [
        (each["name"], each["queue"], each["executor"], each["parameters"], len(each["nodes"])) for each in page["data"]
    ]
    output.table(
        ("name", "queue", "executor", "parameters", "nodes"),
        rows,
        numbers=("nodes",),
        spare={"parameters": 12, "executor": 0, "nodes": 0},
    )
    output.next_page(len(rows), page["total"], offset)


@task.command(
    short_help="Everything about a task.",
    examples=("taskq task show shop.mail.send --json",),
)
@click.argument("name", metavar="NAME")
@json_option
@server_options
def show(*, name: str, json_: bool) -> None:
    """What nodes said of a task within the last day, and which of them serve it now."""
    with checked_values(name="NAME"):
        checked_task_name(name)
    found = app().inspector.task(name)
    if json_:
        output.document(found)
        return
    output.pairs((key, output.in_a_line(key, value)) for key, value in found.items())
    if not found["nodes"]:
        output.note(f"no node serves {name!r} now: its jobs wait until one does")
