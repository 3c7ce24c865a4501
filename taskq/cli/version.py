"""`taskq version`."""

from __future__ import annotations

import platform

import click

from taskq.cli import output
from taskq.cli.options import Verb, hidden_server_options, json_option


@click.command(
    cls=Verb,
    examples=("taskq version --json",),
)
@json_option
@hidden_server_options
def version(*, json_: bool) -> None:
    """The version of taskq, and of the Python it runs on."""
    import taskq

    if json_:
        output.document({"version": taskq.__version__, "python": platform.python_version()})
    else:
        output.put(f"taskq {taskq.__version__} (Python {platform.python_version()})")
