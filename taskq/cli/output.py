"""What is printed, and how: tables for people, one JSON document for programs, a line on stderr for the rest.

Stored bytes are data: whatever a job carries, no control character of it reaches
a terminal, and nothing of it is read as rich's markup. Results go to stdout,
everything said besides them to stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import click

_LINE = 400  # characters of one line on stderr: an error's text may hold a payload
_CELL = 240  # of a cell of a table; every id of ours is shorter
_VALUE = 4000  # of a value beside its name; --json has all of it
_LINES, _WIDTH = 400, 1000  # of a block, such as a traceback


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


def cut(text: str, most: int, advice: str = "") -> str:
    """Of a text that is longer than that its beginning, and how long it is."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters{advice})"


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


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Sequence[str] = (),
    spare: Mapping[str, int] | None = None,
) -> None:
    """Rows under headings: a rich table on a terminal, else plain columns that other programs can read.

    Args:
        headings: the columns. On a terminal none is wrapped: an id over two lines can't be copied.
        rows: one value a column; None is shown as nothing on a terminal, as `-` otherwise.
        numbers: the headings whose columns are aligned to the right.
        spare: what to do without on a narrow terminal, the first of them first: heading → the least width that it may
            be cut to before it is left out; 0 for not at all.
    """
    shown = [[cut(clean(value), _CELL) for value in row] for row in rows]
    if on_terminal():
        _rich_table(headings, shown, numbers, spare or {})
        return
    filled = [list(headings), *([each or "-" for each in row] for row in shown)]
    widths = [max(len(row[at]) for row in filled) for at in range(len(headings))]
    for row in filled:
        cells = [
            cell.rjust(width) if heading in numbers else cell.ljust(width)
            for cell, width, heading in zip(row, widths, headings, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def fit(widths: Mapping[str, int], room: int, spare: Mapping[str, int], *, gap: int = 2) -> dict[str, int]:
    """The columns that a room has space for, with their widths. Pure; `spare` as for `table`."""
    kept = dict(widths)
    for heading, least in spare.items():
        over = sum(kept.values()) + gap * (len(kept) - 1) - room
        if over <= 0:
            break
        if least and kept[heading] - over >= least:
            kept[heading] -= over
        else:
            del kept[heading]
    return kept


def _rich_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str], spare: Mapping[str, int]
) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    widths = {
        heading: max(cell_len(text) for text in (heading, *(row[at] for row in rows)))
        for at, heading in enumerate(headings)
    }
    kept = fit(widths, console.width, spare)
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for heading, width in kept.items():
        justify: Literal["right", "left"] = "right" if heading in numbers else "left"
        drawn.add_column(heading, justify=justify, width=width, no_wrap=True, overflow="ellipsis")
    for row in rows:
        cells = [cell for heading, cell in zip(headings, row, strict=True) if heading in kept]
        drawn.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
    needed = sum(kept.values()) + 2 * (len(kept) - 1)
    Console(width=max(console.width, needed)).print(drawn)
    if len(kept) < len(headings):
        left_out = ", ".join(heading for heading in headings if heading not in kept)
        note(f"too narrow here for {left_out}; --json shows everything")


_STYLES = {
    "completed": "green",
    "failed": "red",
    "cancelled": "dim",
    "running": "cyan",
    "retryable": "yellow",
    "paused": "yellow",
}


def on_terminal() -> bool:
    """Whether a person reads stdout."""
    return sys.stdout.isatty()


def pairs(rows: Iterable[tuple[str, object]]) -> None:
    """Names and values, one pair a line, values below one another; what is empty is left out."""
    shown = [
        (name, cut(clean(value), _VALUE, "; --json shows all"))
        for name, value in rows
        if value not in (None, "", [], {}, ())
    ]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{name.ljust(width)}  {value}")


def next_page(shown: int, total: int, offset: int) -> None:
    """Says on stderr that a list has more than the table shows, if it has."""
    last = offset + shown
    if last < total:
        note(f"{offset + 1}–{last} of {total}; the next page: --offset {last}")


def in_a_line(name: str, value: Any) -> Any:
    """A value as it stands beside its name: an instant to the second, a map as `k=v`, a list with commas."""
    if name.endswith(("_at", "_seen")):
        return instant(value)
    if isinstance(value, dict):
        words = {key: each if isinstance(each, str) else as_json(each, indent=None) for key, each in value.items()}
        return ", ".join(f"{key}={each}" for key, each in words.items())
    return ", ".join(value) if isinstance(value, list) else value


def block(text: str, indent: str = "    ") -> None:
    """Several lines of stored text, such as a traceback: each made safe, each under the same indent."""
    lines = text.splitlines()
    for line in lines[:_LINES]:
        click.echo(indent + cut(clean(line.expandtabs(4)), _WIDTH))
    if len(lines) > _LINES:
        click.echo(f"{indent}… ({len(lines):,} lines; --json shows all)")


def instant(text: object) -> str:
    """An RFC 3339 instant as tables show it: without the T, to the second; its Z says where that is."""
    return "" if text is None else f"{str(text).replace('T', ' ')[:19]}Z"
