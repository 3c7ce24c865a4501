"""`taskq lock …`: list, release."""

from __future__ import annotations

import click

from taskq.cli import output
from taskq.cli.options import Noun, confirm, json_option, page_options, server_options, yes_option
from taskq.cli.place import app
from taskq.cli.refusal import checked_values, refuse
from taskq.errors import did_you_mean, shown
from taskq.locks.names import checked_lock_name


@click.group(
    cls=Noun,
    examples=("taskq lock list",),
)
@server_options
def lock() -> None:
    """Named locks (`app.lock("report")`): who holds them; take one away."""


@lock.command(
    "list",
    short_help="The locks that are held, and by whom.",
    examples=("taskq lock list --json",),
)
@page_options("Locks", 50)
@json_option
@server_options
def list_(*, limit: int, offset: int, json_: bool) -> None:
    """The locks that are held, those that end first before the others. A holder that lives renews its lock."""
    page = app().inspector.locks(limit=limit, offset=offset)
    if json_:
        output.document(page)
        return
    rows = [
        (
            each["name"],
            each["owner"],
            each["job"],
            output.instant(each["acquired_at"]),
            output.instant(each["ends_at"]),
            each["waiting"],
            each["fence"],
        )
        for each in page["data"]
    ]
    output.table(
        ("name", "owner", "job", "acquired at", "ends at", "waiting", "fence"),
        rows,
        numbers=("waiting", "fence"),
        spare={"fence": 0, "acquired at": 0, "job": 12, "owner": 12},
    )
    output.next_page(len(rows), page["total"], offset)


@lock.command(
    short_help="Take a lock away from its holder.",
    examples=(
        "taskq lock release report",
        "taskq lock release report --yes",
    ),
)
@click.argument("name", metavar="NAME")
@yes_option
@server_options
def release(*, name: str, yes: bool) -> None:
    """Take a lock away from whoever holds it, for a holder that hangs. The next in line gets it at once.

    The holder is told (LockLost) when it next renews, after at most a third of the lock's ttl; until then both may
    work. Off a terminal --yes is needed. If somebody else has taken the lock meanwhile, nothing is done.
    """
    with checked_values(name="NAME"):
        checked_lock_name(name)
    place = app()
    found = place.inspector.locks(name=name)["data"]
    if not found:
        held = [str(each["name"]) for each in place.inspector.locks(limit=1000)["data"]]
        refuse(f"nobody holds a lock {shown(name)}{did_you_mean(name, held)}: see `taskq lock list`")
    (holder,) = found
    job = f" for job {holder['job']}" if holder["job"] else ""
    output.note(f"{name}: {holder['owner']} holds it{job} since {output.instant(holder['acquired_at'])}")
    confirm("take it away?", yes=yes, does="takes a lock from its holder")
    if holder["fence"] is None or not place.client.release_lock(name, fence=holder["fence"]):
        refuse(f"the lock {shown(name)} was given back meanwhile, and nothing was done")
    output.put(f"{name}: released")
