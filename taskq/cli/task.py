"""`taskq task …`: list, show, pause, resume."""

from __future__ import annotations

import re
from typing import Any

import click

from taskq.cli import output, scope
from taskq.cli.options import Noun, json_option, page_options, queue_option, server_options
from taskq.cli.place import app
from taskq.cli.refusal import checked_values
from taskq.options import checked_task_name
from taskq.queue import Queue
from taskq.units import duration_text

_queue_option = queue_option("Only in this queue [those from which nodes serve it].")


@click.group(
    cls=Noun,
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
        (
            each["name"],
            each["queue"],
            each["executor"],
            each["parameters"],
            len(each["nodes"]),
            "; ".join(_words(said) for said in each["said"]),
        )
        for each in page["data"]
    ]
    output.table(
        ("name", "queue", "executor", "parameters", "nodes", "state"),
        rows,
        numbers=("nodes",),
        spare={"parameters": 12, "executor": 0, "nodes": 0} | ({} if any(row[-1] for row in rows) else {"state": 0}),
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
    said = found.pop("said")
    found["settings"] = {key: _in_words(key, each) for key, each in found["settings"].items()}
    found["keys"] = {key: _in_words(key, each) for key, each in found["keys"].items()}
    output.pairs((key, output.in_a_line(key, value)) for key, value in found.items())
    for each in said:
        output.put(f"in queue {each['queue']}: {_words(each)}")
    if not found["nodes"]:
        output.note(f"no node serves {name!r} now: its jobs wait until one does")


@task.command(
    short_help="Stop starting a task's jobs.",
    examples=("taskq task pause shop.mail.send", "taskq task pause shop.mail.send --queue email"),
)
@click.argument("name", metavar="NAME")
@_queue_option
@server_options
def pause(*, name: str, queue: str | None) -> None:
    """Stop starting the jobs of a task, on every node. Running jobs go on, new ones may be added."""
    for each, handle in _queues(name, queue):
        output.put(f"{name} in {each}: {'paused' if handle.pause(task=name) else 'is paused already'}")


@task.command(
    short_help="Start them again.",
    examples=("taskq task resume shop.mail.send",),
)
@click.argument("name", metavar="NAME")
@_queue_option
@server_options
def resume(*, name: str, queue: str | None) -> None:
    """Start the jobs of a paused task again."""
    for each, handle in _queues(name, queue):
        output.put(f"{name} in {each}: {'resumed' if handle.resume(task=name) else 'was not paused'}")


def _in_words(key: str, told: Any) -> Any:
    """A backoff or limits as people say them; anything else as it is."""
    if key == "backoff" and (parts := re.fullmatch(r"([a-z]+):([0-9]{1,13}):([0-9]{1,13})(:exact)?", str(told))):
        base, cap = duration_text(int(parts[2])), duration_text(int(parts[3]))
        exact = ", exactly" if parts[4] else ""
        return f"{parts[1]} {base}{exact}" if base == cap else f"{parts[1]} from {base} to {cap}{exact}"
    if key == "limits" and isinstance(told, list) and all(isinstance(each, dict) for each in told):
        return "; ".join(_limit_in_words(each) for each in told)
    return told


def _limit_in_words(each: dict[str, Any]) -> str:
    by = each.get("by")
    whose = f" a {', '.join(by) if isinstance(by, list) else by}" if by else ""
    most = f"{each['n']} at a time" if "n" in each else str(each.get("rate"))
    burst = f" burst {each['burst']}" if each.get("burst", 1) != 1 else ""
    return f"{each.get('name', '')}: {most}{whose}{burst}".removeprefix(": ")


def _words(said: dict[str, Any]) -> str:
    """What operators say of a task in a queue: `paused, 3 at a time`."""
    words = ["paused"] if said["paused"] else []
    if said["concurrency"] is not None:
        words.append(f"{said['concurrency']} at a time")
    if said["rate"]:
        words.append(f"{said['rate']} burst {said['burst']}")
    if said["blocked_until"]:
        words.append(f"blocked until {output.instant(said['blocked_until'])}")
    return ", ".join(words)


def _queues(name: str, queue: str | None) -> list[tuple[str, Queue]]:
    with checked_values(name="NAME"):
        checked_task_name(name)
    place = app()
    if queue is None:
        told = place.inspector.task(name)
        names = [each for each in (told["queue"], told["other_queue"]) if each]
    else:
        names = [queue]
    return [(each, place.queue(each)) for each in scope.known_queues(place, names)]
