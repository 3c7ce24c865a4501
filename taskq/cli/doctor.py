"""`taskq doctor`: whether the server, and the way to it, are as taskq needs them."""

from __future__ import annotations

import sys

import click

from taskq.cli import output
from taskq.cli.options import Verb, json_option, server_options
from taskq.cli.place import settings

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(
    cls=Verb,
    examples=(
        "taskq doctor",
        "taskq doctor --url rediss://user:secret@db:6379/0?ssl_ca_certs=ca.pem",
        "taskq doctor --json | jq '.findings[] | select(.level != \"ok\")'",
    ),
)
@json_option
@server_options
def doctor(*, json_: bool) -> None:
    """Look at the server: version, persistence, eviction, memory, clock, scripts, permissions, speed.

    Each line is ok, warn or fail, with what to do. Exit code 1 only if one is a fail.
    """
    from taskq.doctor import examine

    known = settings()
    findings = examine(known)
    failed = any(each.level == "fail" for each in findings)
    if json_:
        rows = [
            {"name": each.name, "level": each.level, "found": each.found, "advice": each.advice or None}
            for each in findings
        ]
        output.document({"ok": not failed, "findings": rows})
    else:
        width = max(len(each.name) for each in findings)
        for each in findings:
            level = each.level.ljust(4)
            shown = click.style(level, fg=_COLOURS[each.level]) if sys.stdout.isatty() else level
            told = output.one_line(each.found + (f": {each.advice}" if each.advice else ""))
            click.echo(f"{shown}  {each.name.ljust(width)}  {told}")
    click.get_current_context().exit(1 if failed else 0)
