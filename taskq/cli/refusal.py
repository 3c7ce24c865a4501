"""How a command says no: one line on stderr that says what to do, and exit code 1, or 2 for wrong usage.

Errors of taskq come here too, so that no mistake of a user ever ends in a traceback.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
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
def checked_values(**names: str) -> Iterator[None]:
    """What users write is checked by the rooms below, with ValueErrors that say the rule: that is wrong usage here.

    Args:
        names: what an argument is called on this command line, where that isn't `--` and its name.
    """
    try:
        yield
    except (ValueError, NotImplementedError) as error:
        from taskq.errors import TaskQError

        if isinstance(error, TaskQError):
            raise
        raise WrongUsage(in_words_of_the_shell(str(error), names)) from error


def in_words_of_the_shell(message: str, names: Mapping[str, str]) -> str:
    """A message of the Python side as one of the command line: `delay='soon'` is `--delay 'soon'` there."""

    def option(name: str) -> str:
        return names.get(name) or _NAMES.get(name) or "--" + name.removeprefix("--").replace("_", "-")

    message = re.sub(r"^resources\[(['\"])(.*?)\1\]=(['\"])(.*?)\3", r"--resource \2=\4", message)
    message = re.sub(r"^workers=\((\d+), (\d+)\)", r"workers=\1..\2", message)
    message = re.sub(r"^((?:--)?[a-z][a-z_-]*)=(?=\S)", lambda found: option(found[1]) + " ", message)
    message = re.sub(r"\b([a-z][a-z_]*)=(?=[\s,:;]|$)", lambda found: option(found[1]), message)
    message = re.sub(r"^(tags|meta|labels|resources) holds", lambda found: option(found[1]) + " holds", message)
    for theirs, ours in _PHRASES.items():
        message = message.replace(theirs, ours)
    return message


_NAMES = {"name": "TASK", "tags": "--tag", "labels": "--label", "resources": "--resource"}
_PHRASES = {
    "give seconds, a timedelta, or text such as": "give seconds, or such as",
    "give a duration above zero or an aware datetime": "give a duration above zero, or an instant",
    "; write str(…), or use arguments": "",
}
