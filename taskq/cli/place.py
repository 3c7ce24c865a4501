"""Where the commands work: the settings that flags and environment give, and an app on them that is closed after."""

from __future__ import annotations

import click

from taskq.app import TaskQ
from taskq.cli.options import flags
from taskq.cli.refusal import checked_values
from taskq.settings import Settings, resolve


def settings() -> Settings:
    """The settings; a value that breaks its rule is wrong usage."""
    with checked_values():
        return resolve(flags=flags().settings)


def app() -> TaskQ:
    """An app without tasks of its own, to speak to the server through; closed when the command ends."""
    known = settings()
    made = TaskQ(known.url, namespace=known.namespace)
    click.get_current_context().call_on_close(made.close)
    return made
