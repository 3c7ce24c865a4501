"""`taskq config`: every setting, its value and where it comes from. Passwords are never printed."""

from __future__ import annotations

import os
from dataclasses import replace

import click
from click.core import ParameterSource

from taskq.cli import output
from taskq.cli.options import Verb, flags, json_option, server_options
from taskq.cli.place import settings
from taskq.cli.refusal import checked_values, refuse
from taskq.cli.serve import app_argument
from taskq.settings import Settings, resolve, unread_variables


@click.command(
    cls=Verb,
    examples=(
        "taskq config",
        "TASKQ_URL=redis://db:6379/2 taskq config --json",
        "taskq config shop.app",
    ),
)
@app_argument
@json_option
@server_options
def config(*, app: str | None, json_: bool) -> None:
    """The settings that commands work with; with APP (or TASKQ_APP) also what its code says.

    Precedence: flag, argument in code, environment (TASKQ_URL, TASKQ_NAMESPACE ...), default. A TASKQ_ variable that
    nothing reads is told.
    """
    with checked_values():
        known = settings() if app is None else _of_app(app)
    explained = known.explain()
    if json_:
        values = known.to_json()
        output.document({each.name: {"value": values[each.name], "source": each.source} for each in explained})
    else:
        output.table(("setting", "value", "from"), [(each.name, each.value, each.source) for each in explained])

    for said in unread_variables(os.environ):
        output.note(said)


def _of_app(path: str) -> Settings:
    from taskq.app import load_app
    from taskq.node.worker.load import complaint

    resolve(flags=flags().settings)  # a wrong flag is told as one, not as a fault of the app
    try:
        found = load_app(path, flags().settings).settings
    except Exception as error:  # noqa: BLE001 (user code may raise anything, and it is the user's to mend)
        refuse(complaint(path, error))
    said = click.get_current_context().get_parameter_source("app") is ParameterSource.COMMANDLINE
    return replace(found, app=path, sources={**found.sources, "app": "argument" if said else "environment TASKQ_APP"})
