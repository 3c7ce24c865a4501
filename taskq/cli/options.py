"""Options that many commands share: where Redis is, how to log, JSON instead of a table, asking before deleting.

`--url` and `--namespace` may stand before or after the verb; the one nearer to
the verb's arguments counts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from taskq.cli.refusal import WrongUsage, refuse
from taskq.errors import did_you_mean, shown


class _Told:
    """Help that ends with examples, printed as they are typed."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)

    def format_epilog(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples."""
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            for example in self.examples:
                formatter.write(f"{' ' * formatter.current_indent}{example}\n")


class Verb(_Told, click.Command):
    """A command. `examples`: command lines that its help shows."""


class Noun(_Told, click.Group):
    """A group of commands. `examples` as for Verb; `later`: words of a later version, refused as "not yet"."""

    command_class = Verb

    def __init__(self, *args: Any, later: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.later = tuple(later)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; a word that is no command is answered with the nearest."""
        word = args[0]
        known = self.list_commands(ctx)
        if word in self.later:
            raise click.UsageError(f"`{ctx.command_path} {word}` isn't here yet", ctx)
        if word not in known and not word.startswith("-") and self.get_command(ctx, word) is None:
            raise click.UsageError(f"there is no command {shown(word)}{did_you_mean(word, known)}", ctx)
        return super().resolve_command(ctx, args)


F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True)
class Flags:
    """What was said on the command line, wherever it stood: `settings` as `settings.resolve` takes flags."""

    settings: dict[str, str] = field(default_factory=dict)
    log: dict[str, str] = field(default_factory=dict)


def flags() -> Flags:
    """Those of the command that runs."""
    return click.get_current_context().ensure_object(Flags)


def log_words() -> dict[str, Any]:
    """What was said of logs, as the keywords of `log.setup`: the options' choices are its words."""
    return dict(flags().log)


def _keep(group: str, name: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def callback(context: click.Context, _: click.Parameter, value: str | None) -> None:
        if value is not None:
            getattr(context.ensure_object(Flags), group)[name] = value

    return callback


def server_options(command: F, *, hidden: bool = False) -> F:
    """`--url` and `--namespace`."""
    url = click.option(
        "--url",
        metavar="URL",
        expose_value=False,
        hidden=hidden,
        callback=_keep("settings", "url"),
        help="Which Redis [TASKQ_URL].",
    )
    namespace = click.option(
        "--namespace",
        metavar="NAME",
        expose_value=False,
        hidden=hidden,
        callback=_keep("settings", "namespace"),
        help="First part of every key [TASKQ_NAMESPACE].",
    )
    return url(namespace(command))


def hidden_server_options(command: F) -> F:
    """The same for a command that needs no server: taken, as every command takes them, but not offered."""
    return server_options(command, hidden=True)


def log_options(command: F) -> F:
    """`--log-format` and `--log-level`."""
    how = click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        expose_value=False,
        callback=_keep("log", "format"),
        help="How logs are written to stderr [readable on a terminal, else JSON].",
    )
    level = click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error", "critical"], case_sensitive=False),
        expose_value=False,
        callback=_keep("log", "level"),
        help="The least level that is written [info].",
    )
    return how(level(command))


def only_one(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The callback of an option that takes one name, declared as `multiple`: a second one would replace the first."""
    if len(values) > 1:
        raise WrongUsage(f"{parameter.opts[-1]} is given {len(values)} times, and takes one: {', '.join(values)}")
    return values[0] if values else None


def together(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The callback of an option that takes A,B, declared as `multiple`: -q a -q b is -q a,b."""
    return ",".join(values) if values else None


def queue_option(help: str, *, default: str | None = None) -> Callable[[F], F]:
    """`--queue`, one; None, or the default, where none is said."""
    unsaid: dict[str, Any] = {} if default is None else {"default": [default]}
    return click.option("-q", "--queue", metavar="QUEUE", multiple=True, callback=only_one, help=help, **unsaid)


def states_option(help: str, *, default: str | None = None) -> Callable[[F], F]:
    """`--state A,B`, as one text; None, or the default, where none is said."""
    unsaid: dict[str, Any] = {} if default is None else {"default": [default]}
    names = ("--state", "--states", "states")
    return click.option(*names, metavar="A,B", multiple=True, callback=together, help=help, **unsaid)


def page_options(what: str, most: int = 1000) -> Callable[[F], F]:
    """`--limit` and `--offset` of a list. `what` it lists, in the plural; `most`: on a page unless it is said."""
    limit = click.option(
        "--limit", type=click.IntRange(1, 1000), default=most, show_default=True, help=f"{what} a page."
    )
    offset = click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="How many to skip.")
    return lambda command: limit(offset(command))


json_option = click.option("--json", "json_", is_flag=True, help="One JSON document on stdout.")
yes_option = click.option("--yes", is_flag=True, help="Don't ask.")


def on_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty()


def confirm(question: str, *, yes: bool, does: str = "deletes or cancels jobs") -> None:
    """Ask on a terminal; off it `--yes` is needed. Ends the command if the answer is no. `does`: what is asked for."""
    if yes:
        return
    if not on_terminal():
        raise WrongUsage(f"nothing was done: this {does}, and nobody can be asked here; add --yes")
    if not click.confirm(question, err=True):
        refuse("nothing was done")
