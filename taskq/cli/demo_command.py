"""`taskq demo [FOLDER]`: the command; what it runs is in `taskq.demo`."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from taskq.cli.options import Verb, flags, server_options
from taskq.cli.place import settings
from taskq.cli.refusal import WrongUsage, checked_values
from taskq.cli.signals import handled


@click.command(
    cls=Verb,
    examples=(
        "taskq demo",
        "taskq demo ~/src --keep",
    ),
)
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--keep", is_flag=True, help="Leave the server up at the end, to look inside.")
@server_options
def demo(*, folder: Path | None, keep: bool) -> None:
    """A job for each file under FOLDER (the running Python's standard library), on a server of its own.

    Two workers read the files; what can't be read or decoded fails and is retried, as in life. Half way one of the
    workers is killed. At the end every result is compared with a plain single pass; exit code 1 if a number differs.
    """
    if "url" in flags().settings:
        raise WrongUsage("the demo brings a server of its own: leave --url out")
    namespace = settings().namespace
    with checked_values():
        from taskq.demo import run, tree
    with handled(signal.default_int_handler, signal.SIGTERM):  # a stop, too, cleans up
        good = run.run(folder or tree.standard_library(), namespace=namespace, keep=keep)
    click.get_current_context().exit(0 if good else 1)
