"""What is printed, and how: tables for people, one JSON document for programs, a line on stderr for the rest.

Stored bytes are data: whatever a job carries, no control character of it reaches
a terminal, and nothing of it is read as rich's markup. Results go to stdout,
everything said besides them to stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

_LINE = 400  # characters of one line on stderr: an error's text may hold a payload


def clean(value: object) -> str:
    """Text that may be shown: what isn't printable stands as an escape, as in Python; None is empty."""
    text = "" if value is None else str(value)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def _escape(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")


def one_line(value: object) -> str:
    """As `clean`, on one line of bounded length."""
    text = clean(" ".join(str(value).split()))
    return text if len(text) <= _LINE else text[: _LINE - 1] + "…"


def note(text: object) -> None:
    """A line on stderr for whoever reads along."""
    click.echo(one_line(text), err=True)


def put(text: object) -> None:
    """A line of the result."""
    click.echo(clean(text))


def as_json(value: Any, *, indent: int | None = 2) -> str:
    """A JSON document that is safe on a terminal: other scripts are readable, control characters are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else _json_escape(each) for each in text)


def _json_escape(sign: str) -> str:
    # What isn't printable stands inside a string, where JSON's own escape means the same.
    return json.dumps(sign)[1:-1] if sign.isascii() is False else f"\\u{ord(sign):04x}"


def document(value: Any) -> None:
    """The one document of a command with `--json`."""
    click.echo(as_json(value))


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[str] = ()) -> None:
    """Rows under headings: a rich table on a terminal, else plain columns that other programs can read.

    Args:
        headings: the columns.
        rows: one value a column; None is shown as nothing on a terminal, as `-` otherwise.
        numbers: the headings whose columns are aligned to the right.
    """
    shown = [[clean(value) for value in row] for row in rows]
    if sys.stdout.isatty():
        _rich_table(headings, shown, numbers)
        return
    filled = [list(headings), *([each or "-" for each in row] for row in shown)]
    widths = [max(len(row[at]) for row in filled) for at in range(len(headings))]
    for row in filled:
        cells = [
            cell.rjust(width) if heading in numbers else cell.ljust(width)
            for cell, width, heading in zip(row, widths, headings, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def _rich_table(headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        right = heading in numbers
        drawn.add_column(heading, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console().print(drawn)


_STYLES = {
    "completed": "green",
    "failed": "red",
    "cancelled": "dim",
    "running": "cyan",
    "retryable": "yellow",
    "paused": "yellow",
}


def pairs(rows: Iterable[tuple[str, object]]) -> None:
    """Names and values, one pair a line, values below one another; what is empty is left out."""
    shown = [(name, clean(value)) for name, value in rows if value not in (None, "", [], {}, ())]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{name.ljust(width)}  {value}")


def block(text: str, indent: str = "    ") -> None:
    """Several lines of stored text, such as a traceback: each made safe, each under the same indent."""
    for line in text.splitlines():
        click.echo(indent + clean(line.expandtabs(4)))


def instant(text: object) -> str:
    """An RFC 3339 instant as tables show it: without the T, to the second."""
    return "" if text is None else str(text).replace("T", " ")[:19]
