"""What is printed never steers a terminal, and JSON stays JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq.cli import output

HOSTILE = "a\x1b[31mred\x07\x9b2J\u202eevil\r\n\x00b\u2028"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.text())
def test_clean_text_is_printable(text):
    assert output.clean(text).isprintable()


def test_what_was_printable_stays_as_it_was():
    assert output.clean("grüße 日本 🎉") == "grüße 日本 🎉"
    assert output.clean("a\tb\x1b[1m") == "a\\tb\\x1b[1m"
    assert output.clean(None) == ""


@given(st.text())
def test_one_line_is_one_line_of_bounded_length(text):
    line = output.one_line(text * 100)
    assert line.isprintable()
    assert len(line) <= 400


@given(JSON)
def test_json_reads_back_and_holds_no_control_character(value):
    text = output.as_json(value)
    assert json.loads(text) == value
    assert all(each.isprintable() or each == "\n" for each in text)
    assert "\n" not in output.as_json(value, indent=None)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_table_shows_stored_text_as_data(terminal, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "dumb")  # so that what is left over is not rich's own
    monkeypatch.setenv("COLUMNS", "200")
    output.table(("name", "n"), [(HOSTILE, 1), ("[bold]not markup[/bold]", None)], numbers=("n",))
    shown = capsys.readouterr().out
    assert "[bold]not markup[/bold]" in shown
    assert "a\\x1b[31mred\\x07\\x9b2J\\u202eevil\\r\\n\\x00b\\u2028" in shown
    assert all(line.isprintable() for line in shown.splitlines())


WIDTHS = {"id": 44, "task": 24, "state": 9, "attempt": 7, "since": 19, "note": 80}
SPARE = {"note": 16, "since": 0, "attempt": 0, "task": 12}


@pytest.mark.parametrize(
    "room,kept",
    [
        (300, WIDTHS),
        (193, WIDTHS),
        (192, {**WIDTHS, "note": 79}),
        (129, {**WIDTHS, "note": 16}),
        (128, {"id": 44, "task": 24, "state": 9, "attempt": 7, "since": 19}),
        (110, {"id": 44, "task": 24, "state": 9, "attempt": 7}),
        (89, {"id": 44, "task": 24, "state": 9}),
        (80, {"id": 44, "task": 23, "state": 9}),
        (60, {"id": 44, "state": 9}),
        (10, {"id": 44, "state": 9}),
    ],
)
def test_a_narrow_room_keeps_what_cant_be_spared(room, kept):
    assert output.fit(WIDTHS, room, SPARE) == kept


def test_a_plain_table_is_columns(capsys):
    output.table(("name", "n"), [("a", 1), ("bcd", 200), (None, 3)], numbers=("n",))
    assert capsys.readouterr().out == "name    n\na       1\nbcd   200\n-       3\n"


def test_an_empty_table_is_its_headings(capsys):
    output.table(("name", "n"), [])
    assert capsys.readouterr().out == "name  n\n"


def test_a_block_keeps_its_lines_and_nothing_else(capsys):
    output.block("one\n\ttwo\x1b[2J\x85three")
    assert capsys.readouterr().out == "    one\n        two\\x1b[2J\n    three\n"


def test_what_is_long_is_cut_and_says_so(capsys):
    output.table(("name",), [("x" * 10_000_000,)])
    output.pairs([("args", "y" * 10_000_000)])
    output.block("z" * 10_000_000 + "\nline" * 10_000)
    shown = capsys.readouterr().out
    assert len(shown) < 12_000
    assert "x… (10,000,000 characters)" in shown
    assert "y… (10,000,000 characters; --json shows all)" in shown
    assert "… (10,001 lines; --json shows all)" in shown
