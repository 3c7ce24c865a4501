"""The map from the inventory's rows to tests: no row asked for is missing, no test is named that isn't there."""

from __future__ import annotations

import tomllib

import pytest

from tests.inventory.ids import ROOT, numbers, unknown

MAP = tomllib.loads((ROOT / "tests" / "inventory.toml").read_text(encoding="utf-8"))
ROWS = MAP["rows"]
LAST = 485


def test_every_row_that_is_asked_for_is_mapped():
    asked = {row for rows in MAP["asked"].values() for row in numbers(rows)}
    assert asked
    assert sorted(asked - {int(row) for row in ROWS}) == []


def test_rows_are_rows_of_the_inventory():
    assert {row for row in ROWS if not (row.isdigit() and 1 <= int(row) <= LAST)} == set()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"row-{row}")
def test_a_row_names_tests_that_exist_or_says_why_there_is_none(row):
    found = ROWS[row]
    if isinstance(found, str):
        assert found.startswith(("Python needs no such thing: ", "Met by row ", "Comes with flows: ")), (
            "why does it not apply?"
        )
        assert found.endswith(".")
        return
    assert found
    assert len(set(found)) == len(found)
    assert unknown(found) == []


# --- the check itself: what it must catch


@pytest.mark.parametrize(
    "wrong",
    [
        "tests/unit/test_state.py::test_nothing_of_this_name",
        "tests/unit/test_nothing.py::test_every_pair",
        "tests/unit/test_state.py",
        "tests/unit/test_state.py::NAMES",
        "tests/waiting.py::wait_until",
        "taskq/state.py::valid",
    ],
)
def test_a_test_that_is_not_there_is_caught(wrong):
    assert unknown([wrong, "tests/unit/test_state.py::test_every_pair"]) == [wrong]


def test_ranges_are_read():
    assert numbers("1-3 7 9-10") == [1, 2, 3, 7, 9, 10]
