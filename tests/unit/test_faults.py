"""docs/faults.md tells of every fault that a test strikes, and of no other; the tests it names are there."""

from __future__ import annotations

import ast
import re

from tests.chaos.trial import FAULTS, Row, table
from tests.inventory.ids import ROOT, unknown

DOCUMENT = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")


def struck():
    """The faults that tests are marked with."""
    for path in (ROOT / "tests" / "chaos").glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fault":
                yield ast.literal_eval(node.args[0])


def test_every_fault_is_struck():
    assert set(struck()) == set(FAULTS)


def test_the_table_is_one_that_a_run_prints():
    """Of each fault a row, in their order, in the form of the run; and a fault that struck no job shows nothing."""
    shown = DOCUMENT.partition("<!-- table: begin -->\n")[2].partition("\n<!-- table: end -->")[0]
    rows = [Row.read(line) for line in shown.splitlines()[2:]]
    assert table(rows) == shown
    assert [row.fault for row in rows] == list(FAULTS)
    assert {(row.lost, row.stale) for row in rows} == {(0, 0)}
    assert all(row.jobs and row.recovered_s is not None for row in rows)


def test_each_fault_has_its_paragraph():
    told = re.findall(r"^\*\*(.+)\.\*\* ", DOCUMENT, re.MULTILINE)
    assert sorted(told) == sorted(FAULTS)


def test_the_tests_it_names_are_there():
    named = [f"tests/chaos/{each}" for each in re.findall(r"`(test_\w+\.py::\w+)`", DOCUMENT)]
    assert len(named) == len(FAULTS)
    assert unknown(named) == []


def test_rows_of_one_fault_become_one():
    rows = [Row("DEBUG SLEEP of the server", 1200, 1, 0, 0, 1.0), Row("DEBUG SLEEP of the server", 3, 0, 0, 0, 0.4)]
    assert table(rows).splitlines()[2:] == ["| DEBUG SLEEP of the server | 1,203 | 1 | 0 | 0 | 1.0 s |"]
