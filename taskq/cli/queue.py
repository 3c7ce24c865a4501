"""`taskq queue …`: list, pause, resume, purge, reservations; `show`, `limit` and `weights` stand in `limits`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from taskq.cli import output, scope
from taskq.cli.limits import key_shown, limit, show, weights
from taskq.cli.options import Noun, confirm, json_option, page_options, server_options, states_option, yes_option
from taskq.cli.place import app
from taskq.cli.refusal import WrongUsage
from taskq.commands import WAITING

key_option = click.option("--key", metavar="KEY", help="Only the jobs of this fairness key.")

COUNTED = ("pending", "scheduled", "available", "running", "retryable", "completed", "failed", "cancelled")


@click.group(
    cls=Noun,
    examples=("taskq queue pause email",),
)
@server_options
def queue() -> None:
    """Queues: look at them, pause, resume, limit, purge."""


for _verb in (show, limit, weights):
    queue.add_command(_verb)


def queue_table(rows: Sequence[dict[str, Any]]) -> None:
    """A row a queue, with its counts."""
    shown = [(each["queue"], *(each[state] for state in COUNTED), _paused(each)) for each in rows]
    unused = [state for state in COUNTED if not any(each[state] for each in rows)]
    spare = dict.fromkeys(unused if any(_paused(each) for each in rows) else [*unused, "paused"], 0)
    output.table(("queue", *COUNTED, "paused"), shown, numbers=COUNTED, spare=spare)


def _paused(each: dict[str, Any]) -> str:
    return "paused" if each["paused"] else "in part" if each["pauses"] else ""


@queue.command(
    "list",
    short_help="Every queue, with its counts.",
    examples=("taskq queue list --json",),
)
@page_options("Queues")
@json_option
@server_options
def list_(*, limit: int, offset: int, json_: bool) -> None:
    """Every queue of the namespace, with how many jobs are in each state."""
    queues = app().inspector.queues()
    page = queues[offset : offset + limit]
    if json_:
        output.document({"data": page, "total": len(queues), "limit": limit, "offset": offset})
    else:
        queue_table(page)
        output.next_page(len(page), len(queues), offset)


@queue.command(
    short_help="Stop handing out jobs.",
    examples=("taskq queue pause email", "taskq queue pause email --key acme"),
)
@click.argument("names", nargs=-1, required=True, metavar="QUEUE…")
@key_option
@server_options
def pause(*, names: tuple[str, ...], key: str | None) -> None:
    """Stop handing out the jobs of a queue, on every node. Running jobs go on, new ones may be added."""
    place = app()
    for name in scope.known_queues(place, names):
        of = "" if key is None else f" {key_shown(key)}"
        output.put(f"{name}{of}: {'paused' if place.queue(name).pause(key=key) else 'is paused already'}")


@queue.command(
    short_help="Hand out jobs again.",
    examples=("taskq queue resume email", "taskq queue resume email --key acme"),
)
@click.argument("names", nargs=-1, required=True, metavar="QUEUE…")
@key_option
@server_options
def resume(*, names: tuple[str, ...], key: str | None) -> None:
    """Hand out the jobs of a paused queue again, or of a paused fairness key."""
    place = app()
    for name in scope.known_queues(place, names):
        of = "" if key is None else f" {key_shown(key)}"
        output.put(f"{name}{of}: {'resumed' if place.queue(name).resume(key=key) else 'was not paused'}")


@queue.command(
    short_help="Cancel all waiting jobs.",
    examples=(
        "taskq queue purge email",
        "taskq queue purge email --state scheduled,retryable --yes",
        "taskq queue purge --all --yes",
    ),
)
@click.argument("names", nargs=-1, metavar="QUEUE…")
@click.option("--all", "every", is_flag=True, help="Every queue of the namespace.")
@states_option(f"Only these [{','.join(WAITING)}].")
@yes_option
@server_options
def purge(*, names: tuple[str, ...], every: bool, states: str | None, yes: bool) -> None:
    """Cancel the waiting jobs of queues: they stay, as cancelled, until their retention ends. Running jobs go on.

    What will be purged is printed first; off a terminal --yes is needed.
    """
    chosen = scope.state_list(states, WAITING, "purged")
    if every == bool(names):
        raise WrongUsage("name the queues to purge, or give --all for every queue of the namespace")
    place = app()
    known = scope.known_queues(place, None if every else names)
    if not scope.announce(place.settings.namespace, scope.counted(place, known, chosen), "cancel"):
        return
    confirm("cancel them?", yes=yes)
    done: dict[str, int] = {}
    try:
        for name in known:
            done[name] = place.client.purge(name, states=chosen)
    finally:  # what is done is told, whatever became of the rest
        scope.tell(done, "cancelled")


@queue.command(
    short_help="Slots that are taken for jobs to come.",
    examples=("taskq queue reservations email --json",),
)
@click.argument("name", metavar="QUEUE")
@page_options("Reservations", 50)
@json_option
@server_options
def reservations(*, name: str, limit: int, offset: int, json_: bool) -> None:
    """The reservations that hold a slot of a queue: those that wait to be bound, then those that have their job.

    A reservation's slot is free once its job's first attempt is over, or when it lapses unbound.
    """
    place = app()
    (known,) = scope.known_queues(place, (name,))
    page = place.queue(known).reservations(limit=limit, offset=offset)
    if json_:
        output.document(page)
        return
    rows = [
        (
            each["key"] or "",
            each["state"] or "",
            each["job"] or "",
            output.instant(each["created_at"]),
            output.instant(each["expires_at"]),
            each["token"],
        )
        for each in page["data"]
    ]
    columns = ("key", "state", "job", "created at", "expires at", "token")
    output.table(columns, rows, spare={"created at": 0, "expires at": 0, "token": 12, "job": 12})
    output.next_page(len(rows), page["total"], offset)
