"""`taskq queue …`: list, pause, resume, purge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from taskq.app import TaskQ
from taskq.cli import output
from taskq.cli.options import Noun, confirm, json_option, server_options, yes_option
from taskq.cli.place import app
from taskq.cli.refusal import WrongUsage, checked_values, refuse
from taskq.commands import WAITING

COUNTED = ("pending", "scheduled", "available", "running", "retryable", "completed", "failed", "cancelled")


@click.group(
    cls=Noun,
    later=("show", "limit", "reservations"),
    examples=("taskq queue pause email",),
)
@server_options
def queue() -> None:
    """Queues: list, pause, resume, purge."""


def queue_table(rows: Sequence[dict[str, Any]]) -> None:
    """A row a queue, with its counts."""
    shown = [(each["queue"], *(each[state] for state in COUNTED), "paused" if each["paused"] else "") for each in rows]
    output.table(("queue", *COUNTED, "paused"), shown, numbers=COUNTED)


@queue.command(
    "list",
    short_help="Every queue, with its counts.",
    examples=("taskq queue list --json",),
)
@click.option("--limit", type=click.IntRange(1, 1000), default=1000, help="Queues a page.")
@click.option("--offset", type=click.IntRange(0), default=0, help="How many to skip.")
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


@queue.command(
    short_help="Stop handing out jobs.",
    examples=("taskq queue pause email",),
)
@click.argument("names", nargs=-1, required=True, metavar="QUEUE…")
@server_options
def pause(*, names: tuple[str, ...]) -> None:
    """Stop handing out the jobs of a queue, on every node. Running jobs go on, new ones may be added."""
    place = app()
    for name in known_queues(place, names):
        output.put(f"{name}: {'paused' if place.client.pause(name) else 'is paused already'}")


@queue.command(
    short_help="Hand out jobs again.",
    examples=("taskq queue resume email",),
)
@click.argument("names", nargs=-1, required=True, metavar="QUEUE…")
@server_options
def resume(*, names: tuple[str, ...]) -> None:
    """Hand out the jobs of a paused queue again."""
    place = app()
    for name in known_queues(place, names):
        output.put(f"{name}: {'resumed' if place.client.resume(name) else 'was not paused'}")


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
@click.option("--state", "--states", "states", metavar="A,B", help=f"Only these [{','.join(WAITING)}].")
@yes_option
@server_options
def purge(*, names: tuple[str, ...], every: bool, states: str | None, yes: bool) -> None:
    """Cancel the waiting jobs of queues: they stay, as cancelled, until their retention ends. Running jobs go on.

    What will be purged is printed first; off a terminal --yes is needed.
    """
    chosen = state_list(states, WAITING, "purged")
    if every == bool(names):
        raise WrongUsage("name the queues to purge, or give --all for every queue of the namespace")
    place = app()
    known = known_queues(place, None if every else names)
    if not announce(place, known, chosen, "cancel"):
        return
    confirm("cancel them?", yes=yes)
    tell({name: place.client.purge(name, states=chosen) for name in known}, "cancelled")


def announce(place: TaskQ, queues: Sequence[str], states: Sequence[str], verb: str, which: str = "") -> int:
    """Says what would be done, where, before anything is; gives how many jobs that is at most."""
    counted = {name: place.inspector.counts(name) for name in queues}
    total = 0
    for name, counts in counted.items():
        here = {state: getattr(counts, state) for state in states if getattr(counts, state)}
        total += sum(here.values())
        if not here and len(counted) > 1:
            continue
        told = ", ".join(f"{count} {state}" for state, count in here.items()) or "nothing"
        output.note(f"{verb} in {place.settings.namespace}/{name}: {told}{which}")
    if not total:
        output.put(f"nothing to {verb}: no job is {' or '.join(states)}")
    return total


def tell(done: dict[str, int], participle: str) -> None:
    """How many jobs it was in the end, queue by queue: by then there may be more or fewer than were announced."""
    for name, count in done.items():
        if count or len(done) == 1:
            output.put(f"{name}: {count} {participle}")
    if len(done) > 1:
        output.put(f"in all: {sum(done.values())} {participle}")


def state_list(text: str | None, allowed: Sequence[str], participle: str) -> tuple[str, ...]:
    """`--state a,b`, checked; all that are allowed if it isn't given."""
    if text is None:
        return tuple(allowed)
    from taskq.errors import did_you_mean

    states = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
    for each in states:
        if each not in allowed:
            hint = did_you_mean(each, allowed)
            raise WrongUsage(f"jobs in state {each!r} can't be {participle}{hint}: only {', '.join(allowed)}")
    if not states:
        raise WrongUsage(f"--state names no state: give {', '.join(allowed)}")
    return states


def known_queues(place: TaskQ, names: Sequence[str] | None) -> list[str]:
    """The names, each once; None means every queue of the namespace.

    One that was never used is refused: it is a slip that would otherwise look like success.
    """
    from taskq.errors import did_you_mean
    from taskq.settings import checked_name

    there = [str(each["queue"]) for each in place.inspector.queues()]
    if names is None:
        return there
    with checked_values():
        asked = list(dict.fromkeys(checked_name(name, name="queue") for name in names))
    for name in asked:
        if name not in there:
            refuse(f"there is no queue {name!r}{did_you_mean(name, there)}: nothing was ever enqueued in it")
    return asked
