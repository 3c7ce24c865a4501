"""Each script's header is its contract: the names it lists are the names its code binds, in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

LUA = Path(__file__).parents[2] / "lua"
SCRIPTS = sorted(LUA.glob("*.lua"))
TYPES = {"string", "hash", "zset", "stream", "list", "set"}

_ROW = re.compile(r"--   (\S+)(?: +(.+))?")
_MORE = re.compile(r"-- {4,}\S.*")


def rows(text: str, section: str) -> list[tuple[str, str]]:
    """(name, rest of the line) of each row of a section of the header; a deeper indented line continues a row."""
    found: list[tuple[str, str]] = []
    inside = False
    for line in text.splitlines():
        if not line.startswith("--") or line.startswith("-- @include"):
            if inside:
                break
            continue
        if line == f"-- {section}":
            inside = True
        elif inside and (row := _ROW.fullmatch(line)) is not None:
            found.append((row[1], row[2] or ""))
        elif inside and _MORE.fullmatch(line) is None:
            break
    return found


def bound(text: str, opening: str) -> list[str]:
    """Names in the call that starts with `opening`, which stands at the start of a line exactly once."""
    calls = re.findall(rf"^{re.escape(opening)}\(([^)]*)\)$", text, re.MULTILINE)
    assert len(calls) == 1, f"one line `{opening}(...)`, found {len(calls)}"
    names = [word.strip() for word in calls[0].split(",")]
    assert all(re.fullmatch(r"'\w+'", name) for name in names), names
    return [name.strip("'") for name in names]


@pytest.fixture(params=SCRIPTS, ids=lambda path: path.stem)
def text(request: pytest.FixtureRequest) -> str:
    return request.param.read_text()


def test_there_are_scripts() -> None:
    assert SCRIPTS


def test_keys_are_the_keys_bound(text: str) -> None:
    assert [name for name, _ in rows(text, "KEYS")] == bound(text, "keys.bind")


def test_the_prefix_comes_first_and_never_alone(text: str) -> None:
    """With the prefix alone a script would run on half a keyspace while its slot moves."""
    names = bound(text, "keys.bind")
    assert names[0] == "prefix"
    assert len(names) >= 2


def test_each_key_has_a_type_and_a_meaning(text: str) -> None:
    for name, rest in rows(text, "KEYS"):
        kind, _, meaning = rest.partition(" ")
        assert kind in TYPES, name
        assert meaning.strip(), name


def test_arguments_are_the_arguments_bound(text: str) -> None:
    listed = [name for name, _ in rows(text, "ARGV") if name != "..."]
    assert listed == bound(text, "local arg = args.bind")


def test_the_time_is_the_first_argument(text: str) -> None:
    """Tests pass the time to the same scripts that read the server's clock."""
    assert bound(text, "local arg = args.bind")[0] == "now"


def test_a_repeated_part_is_told_last_and_only_where_it_is_read(text: str) -> None:
    names = [name for name, _ in rows(text, "ARGV")]
    assert "..." not in names[:-1]
    assert (names[-1] == "...") == any(part in text for part in ("arg.rest", "lease.gather", "args.groups"))


def test_each_argument_has_a_meaning(text: str) -> None:
    assert all(rest for _, rest in rows(text, "ARGV"))


def test_a_reply_is_told(text: str) -> None:
    assert rows(text, "REPLY")
