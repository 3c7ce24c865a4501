"""`taskq worker APP`: a node, in this process, with its workers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import click

from taskq.cli.options import Verb, flags, log_words
from taskq.cli.refusal import checked_values, refuse
from taskq.cli.serve import app_argument, chosen_app, node_options, node_options_of
from taskq.settings import resolve


@click.command(
    cls=Verb,
    examples=(
        "taskq worker shop.app",
        "taskq worker shop.main:tasks -q email,default -w 2",
        "taskq worker shop.app --burst          run what there is, then end",
    ),
)
@app_argument
@node_options("25")
@click.option("--burst", is_flag=True, help="End when nothing is available, running or due now.")
def worker(*, app: str | None, burst: bool, **given: Any) -> None:
    """Run the jobs of APP, `module[:attribute]`, until SIGTERM or Ctrl-C; then running jobs get their grace.

    APP may stand in TASKQ_APP instead.
    A second signal ends the grace. Exit code 0 if every job ended or was given back, 1 if a process had to be killed,
    or if Redis wasn't there at the start: let a supervisor start it again. Later outages are waited out.
    """
    app = chosen_app(app)
    options = node_options_of(flags(), given, burst=burst)
    _check(app)

    from taskq import log
    from taskq.node.run import run

    log.setup(**log_words())
    click.get_current_context().exit(run(app, options))


def _check(app: str) -> None:
    """Wrong flags, variables and names are told here, in one line, before any process is started.

    APP itself isn't imported here; whether there is a module of its first name can be seen without.
    """
    with checked_values():
        resolve(app=app, flags=flags().settings)
    module = app.partition(":")[0]
    if module.endswith(".py"):
        refuse(f"{app!r} is a file: give the module's name, such as {module.removesuffix('.py')!r}")
    name = module.partition(".")[0]
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = importlib.util.find_spec(name)
    except ValueError:  # what is half imported has no spec; the worker will say more
        return
    finally:
        del sys.path[0]
    if found is None:
        refuse(f"there is no module {name!r} here (current folder: {Path.cwd()})")
