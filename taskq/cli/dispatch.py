"""`taskq dispatch`: test jobs, to try a system out."""

from __future__ import annotations

import click

from taskq.builtin import SIMULATE
from taskq.cli import output
from taskq.cli.options import Verb, queue_option, server_options
from taskq.cli.place import app
from taskq.cli.refusal import checked_values
from taskq.cli.tasks import served_queues
from taskq.errors import did_you_mean


@click.command(
    cls=Verb,
    examples=(
        "taskq dispatch",
        "taskq dispatch --count 1000 --fail-rate 0 --delay 5",
    ),
)
@click.option("--count", type=click.IntRange(1, 1_000_000), default=10, show_default=True, help="How many.")
@queue_option("Where they wait [default].", default="default")
@click.option(
    "--fail-rate", type=click.FloatRange(0, 100), default=30, show_default=True, help="How many of 100 attempts fail."
)
@click.option("--delay", type=click.FloatRange(0), default=500, show_default=True, help="How long one works, in ms.")
@server_options
def dispatch(*, count: int, queue: str, fail_rate: float, delay: float) -> None:
    """Add jobs of the built-in task taskq.simulate, which every worker knows: it works a while, and fails at times."""
    place = app()
    with checked_values():
        task = place.by_name(SIMULATE, queue=queue)
    jobs = place.enqueue_many([task.call(fail_rate=fail_rate, delay=delay)] * count)
    output.put(f"{len(jobs)} jobs added to queue {queue}")
    if queue not in (served := served_queues(place)):
        hint = did_you_mean(queue, served)
        output.note(f"no worker serves queue {queue} now{hint}; start one: taskq worker APP -q {queue}")
