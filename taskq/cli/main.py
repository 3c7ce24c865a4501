"""`taskq`: the root of the command line.

Commands are imported when they are called, so that `taskq --help` is quick; their
one line of help therefore stands here. Errors become one line on stderr, here alone.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from taskq import __version__
from taskq.cli.options import Noun, log_options, server_options
from taskq.cli.output import one_line
from taskq.errors import TaskQError, shown

_INTERRUPTED = 130


class Lazy(NamedTuple):
    """A command that isn't loaded yet: its module, and what it does in one line."""

    module: str
    help: str


COMMANDS = {
    "worker": Lazy("worker", "Run jobs of an app until a signal."),
    "dev": Lazy("dev", "A server, a worker and reload, for development."),
    "demo": Lazy("demo_command", "Watch thousands of real jobs run and survive a kill."),
    "server": Lazy("server", "A Redis server in the foreground, for development."),
    "enqueue": Lazy("enqueue", "Add a job."),
    "dispatch": Lazy("dispatch", "Add test jobs."),
    "job": Lazy("job", "List, show, retry, cancel, clear jobs."),
    "task": Lazy("task", "The tasks that nodes know, and who serves them."),
    "queue": Lazy("queue", "List, pause, resume, purge queues."),
    "node": Lazy("node", "Who runs jobs; drain a node, let it go on, stop it."),
    "schedule": Lazy("schedule", "Recurring work: list, show, run, pause, remove."),
    "leader": Lazy("leader", "The node that leads."),
    "lock": Lazy("lock", "Who holds a named lock; take it away."),
    "stats": Lazy("stats", "How many jobs are in each state."),
    "fsck": Lazy("fsck", "Is every job in one state and one place? Repairs."),
    "doctor": Lazy("doctor", "Whether the server is as taskq needs it."),
    "config": Lazy("config", "The settings, and where each comes from."),
    "version": Lazy("version", "The version."),
}
ALIASES = {"cron": "schedule"}
LATER = (
    *("flow",),
    *("top", "bench"),
)


class Root(Noun):
    """The group of all commands: loads them when they are named, and turns every error into one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's own signature)
        """In the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (as above)
        """Import the command's module; it holds a command of the same name."""
        lazy = COMMANDS.get(ALIASES.get(cmd_name, cmd_name))
        if lazy is None:
            return None
        name = ALIASES.get(cmd_name, cmd_name)
        command: click.Command = getattr(importlib.import_module(f"taskq.cli.{lazy.module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (as above)
        """From the table above, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.help) for name, lazy in COMMANDS.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 (as above)
        **extra: Any,
    ) -> Any:
        """Run a command line. Exits with 0, 1 (refused or failed), 2 (wrong usage) or 130 (Ctrl-C cut it short; what
        runs until then, as a worker does, ends with 0).
        """
        del standalone_mode  # every error is reported here
        try:
            code = super().main(args, prog_name or "taskq", complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has seen enough, as with `| head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 1
        except (click.exceptions.Abort, KeyboardInterrupt):
            click.echo("interrupted", err=True)
            code = _INTERRUPTED
        except Exception as error:  # noqa: BLE001 (what isn't a user's mistake is raised again by _explain)
            code = _explain(error, sys.argv[1:] if args is None else args)
        sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception, words: Sequence[str]) -> int:
    """Says what went wrong in one line; gives the exit code. What is nobody's mistake but ours keeps its traceback."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message())
        return 2
    if isinstance(error, click.ClickException):
        hint = ""
        if isinstance(error, click.UsageError) and error.ctx is not None:
            hint = _dashes(error, error.ctx) + f" (see {error.ctx.command_path} --help)"
        click.echo(f"taskq: {one_line(error.format_message())} {one_line(hint)}".rstrip(), err=True)
        return error.exit_code
    if isinstance(error, TaskQError | OSError):
        said: object = error
        if isinstance(error, OSError) and error.strerror:  # without Python's [Errno …]
            said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        click.echo(f"taskq: {one_line(said)}", err=True)
        return 1
    if isinstance(error, UnicodeEncodeError) and (bad := [each for each in words if not _is_text(each)]):
        click.echo(f"taskq: {shown(bad[0])} isn't UTF-8, and nothing has such a name", err=True)
        return 2
    raise error


def _is_text(word: str) -> bool:
    """Whether an argument is text at all: Python lets its bytes through if they aren't."""
    return word.isascii() or word.encode(errors="ignore").decode() == word


def _dashes(error: click.UsageError, context: click.Context) -> str:
    """A value that begins with a dash is taken for an option, unless it is told apart."""
    if not isinstance(error, click.NoSuchOption) or error.option_name.startswith("--"):
        return ""
    arguments = [each for each in context.command.params if isinstance(each, click.Argument)]
    number = error.option_name[1:2].isdigit()  # no option of ours is one
    if not any(each.nargs == -1 or number for each in arguments):
        return ""
    return f" If {error.option_name} begins a value, put -- before it: {context.command_path} … -- {error.option_name}"


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"]},
    later=LATER,
    examples=(
        "taskq demo                            see it work: nothing to set up",
        "taskq dev shop.app -- python web.py   develop with a server and a worker at hand",
        "taskq worker shop.app                 run the jobs of shop/app.py",
        "taskq enqueue shop.mail.send a@b.c subject=hi",
        "taskq job list --state failed",
    ),
)
@server_options
@log_options
@click.version_option(__version__, prog_name="taskq", message="%(prog)s %(version)s")
def cli() -> None:
    """Distributed tasks on Redis."""


def _opened() -> None:
    """A stream that whoever started us has closed (`>&-`) goes nowhere; Python has None for it, on which a command
    would end half way. Of what we start, too, no socket then takes its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 (it stays open)
            os.set_inheritable(stream.fileno(), True)  # noqa: FBT003 (the library's own signature)
            setattr(sys, name, stream)


def main(argv: Sequence[str] | None = None) -> None:
    """The `taskq` script."""
    _opened()
    # A name or a text that the terminal can't show must not end a command half way.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    cli.main(argv)
