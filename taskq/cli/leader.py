"""`taskq leader`: the node that leads."""

from __future__ import annotations

import click

from taskq.cli import output
from taskq.cli.options import Verb, json_option, server_options
from taskq.cli.place import app


@click.command(
    cls=Verb,
    examples=("taskq leader --json",),
)
@json_option
@server_options
def leader(*, json_: bool) -> None:
    """The node that leads: it fires schedules and looks after what no other node does.

    Every node would lead. One that dies is followed within six seconds, one that is stopped at once.
    """
    found = app().inspector.leader()
    if json_:
        output.document(found)
    elif found["node"] is None:
        output.put("nobody leads: no node is running, or the leader was lost within the last seconds")
    else:
        output.pairs(found.items())
