"""`taskq leader`: the node that leads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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

    Every node would lead, but for those that drain. One that dies is followed within six seconds, one that is stopped
    at once.
    """
    found = app().inspector.leader()
    if json_:
        output.document(found)
    elif found["node"] is None:
        why = all_drain(app().inspector.nodes()) or "no node is running, or the leader was lost within the last seconds"
        output.put(f"nobody leads: {why}")
    else:
        output.pairs(found.items())


def all_drain(nodes: Sequence[dict[str, Any]]) -> str:
    """What it means that every node that lives drains; '' if one doesn't, or none lives."""
    if not nodes or any(each["state"] != "draining" for each in nodes):
        return ""
    who, until = (
        ("the only node drains", "it resumes") if len(nodes) == 1 else (f"all {len(nodes)} nodes drain", "one resumes")
    )
    return f"{who}: no schedule fires until {until}"
