"""How a command says no: one line on stderr that says what to do, and exit code 1, or 2 for wrong usage.

Errors of taskq come here too, so that no mistake of a user ever ends in a traceback.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NoReturn

import click


class Refused(click.ClickException):
    """It can't be done; the message says why and what to do instead."""

    exit_code = 1


class WrongUsage(click.ClickException):
    """The command line makes no sense; the message says what to write."""

    exit_code = 2


def refuse(message: str) -> NoReturn:
    """End the command with exit code 1."""
    raise Refused(message)


def not_yet(what: str) -> NoReturn:
    """End the command, because this version would have to ignore what was asked."""
    raise WrongUsage(f"{what} isn't here yet: this version of taskq would ignore it, so it refuses it")


@contextlib.contextmanager
def checked_values() -> Iterator[None]:
    """What users write is checked by the rooms below, with ValueErrors that say the rule: that is wrong usage here."""
    try:
        yield
    except (ValueError, NotImplementedError) as error:
        from taskq.errors import TaskQError

        if isinstance(error, TaskQError):
            raise
        raise WrongUsage(str(error)) from error
