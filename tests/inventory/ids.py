"""Test ids as the two maps name them, `tests/unit/test_state.py::test_every_pair`: whether there is such a test.

Files are parsed, not collected: a map is checked in a moment, and also where a test can't run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


def unknown(test_ids: Iterable[str]) -> list[str]:
    """Those that name no test: no such file under `tests/`, or no such function in it."""
    return [test_id for test_id in test_ids if not _exists(test_id)]


def _exists(test_id: str) -> bool:
    file, _, name = test_id.partition("::")
    return file.startswith("tests/") and name in _tests(ROOT / file)


@cache
def _tests(path: Path) -> frozenset[str]:
    if not path.name.startswith("test_") or not path.is_file():
        return frozenset()
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    functions = (node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(name for name in functions if name.startswith("test_"))


def numbers(text: str) -> list[int]:
    """`1-3 7` is 1, 2, 3, 7."""
    found: list[int] = []
    for word in text.split():
        first, _, last = word.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
