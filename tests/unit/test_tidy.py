"""The rules of the house that no linter knows: sizes, names, openings, rooms."""

from __future__ import annotations

import ast
import re
import statistics
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = sorted((ROOT / "taskq").rglob("*.py"))
LUA = sorted((ROOT / "lua").rglob("*.lua"))
SOURCES = [*PYTHON, *LUA]
LINES_MAX = 400
LINES_MEDIAN_MAX = 120
BANNED_NAMES = {"utils", "util", "helpers", "helper", "manager", "base", "core", "common", "misc"}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_no_file_is_a_warehouse() -> None:
    big = {_name(path): _lines(path) for path in SOURCES if _lines(path) > LINES_MAX}
    assert not big, f"over {LINES_MAX} lines, each wants a second room: {big}"


def test_the_usual_file_is_read_in_one_sitting() -> None:
    assert statistics.median(_lines(path) for path in SOURCES) < LINES_MEDIAN_MAX


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_names_say_what_is_inside(path: Path) -> None:
    names = {path.stem, *path.relative_to(ROOT).parent.parts}
    assert not names & BANNED_NAMES, "a name that says nothing gathers everything"


@pytest.mark.parametrize("path", PYTHON, ids=_name)
def test_a_module_opens_by_saying_its_task(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring, "what is this file for?"
    assert "." in docstring, "a sentence, not a headline"


@pytest.mark.parametrize("path", LUA, ids=_name)
def test_a_script_opens_with_a_sentence(path: Path) -> None:
    opening = re.match(r"(?:-- .*\n)+", path.read_text())
    assert opening, "what does this script do?"
    first = opening[0].removeprefix("-- ")
    assert first[0].isupper(), first
    assert "." in first, first


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_nothing_is_left_for_later(path: Path) -> None:
    marks = re.findall(r"\b(?:TODO|FIXME|XXX|HACK)\b", path.read_text())
    assert not marks


def test_every_room_is_told_of() -> None:
    """ARCHITECTURE.md's table has each room once, and no other."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    rooms = set(re.findall(r"\w+", " ".join(layers))) - {"__main__"}
    table = (ROOT / "ARCHITECTURE.md").read_text().partition("| room |")[2].partition("\n\n")[0]
    told = [room for row in table.splitlines()[2:] for room in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(told) == sorted(rooms)


def test_every_module_has_a_room() -> None:
    """The rooms are the layers that import-linter holds; a new module is placed in pyproject.toml before it grows."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    rooms = set(re.findall(r"\w+", " ".join(layers)))
    modules = {
        path.stem for path in (ROOT / "taskq").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert modules - {"__init__"} == rooms
