"""`taskq worker APP`: a node, in this process, with its workers."""

from __future__ import annotations

from typing import Any

import click

from taskq.cli.options import Verb, flags, log_words
from taskq.cli.serve import node_options, node_options_of


@click.command(
    cls=Verb,
    examples=(
        "taskq worker shop.app",
        "taskq worker shop.main:tasks -q email,default -w 2",
        "taskq worker shop.app --burst          run what there is, then end",
    ),
)
@click.argument("app", envvar="TASKQ_APP", metavar="APP")
@node_options("25")
@click.option("--burst", is_flag=True, help="End when nothing is available, running or due now.")
def worker(*, app: str, burst: bool, **given: Any) -> None:
    """Run the jobs of APP, `module[:attribute]`, until SIGTERM or Ctrl-C; then running jobs get their grace.

    A second signal ends the grace. Exit code 0 if every job ended or was given back, 1 if a process had to be killed.
    """
    options = node_options_of(flags(), given, burst=burst)
    _check_settings(app)

    from taskq import log
    from taskq.node.run import run

    log.setup(**log_words())
    click.get_current_context().exit(run(app, options))


def _check_settings(app: str) -> None:
    """Wrong flags and variables are told here, in one line, before any process is started."""
    from taskq.cli.refusal import checked_values
    from taskq.settings import resolve

    with checked_values():
        resolve(app=app, flags=flags().settings)
