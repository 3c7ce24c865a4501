"""`taskq stats`: how many jobs are in each state, queue by queue."""

from __future__ import annotations

from typing import Any

import click

from taskq.cli import output
from taskq.cli.options import Verb, json_option, server_options
from taskq.cli.place import app
from taskq.cli.queue import COUNTED, queue_table
from taskq.cli.refusal import not_yet


@click.command(
    cls=Verb,
    examples=(
        "taskq stats",
        "taskq stats --json",
    ),
)
@click.option("--watch", is_flag=True, hidden=True)
@json_option
@server_options
def stats(*, watch: bool, json_: bool) -> None:
    """How many jobs are in each state: for every queue, and in all."""
    if watch:
        not_yet("--watch")
    place = app()
    queues = place.inspector.queues()
    total = {state: sum(each[state] for each in queues) for state in COUNTED}
    if json_:
        output.document({"namespace": place.settings.namespace, "queues": queues, "total": total})
        return
    whole = {"queue": "all", "paused": False, "pauses": 0, **total}
    rows: list[dict[str, Any]] = queues if len(queues) == 1 else [*queues, whole]
    queue_table(rows)
