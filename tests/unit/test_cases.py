"""The map from reported failures to tests: every case stands somewhere, and no test that isn't there is named."""

from __future__ import annotations

import tomllib
from itertools import chain

import pytest

from tests.inventory.ids import ROOT, unknown

MAP = tomllib.loads((ROOT / "tests" / "cases.toml").read_text(encoding="utf-8"))
WORDS = ("reasons", "later", "open")
CASES = {
    "LOST": "01 03 05 07 08 09 11 13",
    "DUP": "01 03 05 06 07 08 09 11 13",
    "STUCK": "01 03 05 07 09 11",
    "MEM": "01 03 05 07 09 11",
    "RETRY": "01 02 03 05 07",
    "SCHED": "01 03 04 05 06 07 09 11 13 15 17 19 21 23",
    "CANCEL": "01 03 05 07 09 11",
    "LOCK": "01 02 03 05 07 09 11 13 15 16 17",
    "CONN": "01 03 04 05 06 07 09 10 11 13 15 17 19",
    "SER": "01 03 05 07 09 11 13",
    "SHUT": "01 03 05 07 09 11",
    "PERF": "01 03 05 07 09 11 13",
    "PACK": "01 03 05 07",
}
ALL = {f"{group}-{number}" for group, listed in CASES.items() for number in listed.split()}


def test_every_case_stands_somewhere():
    assert sorted(ALL - set(chain(*MAP.values()))) == []


def test_nothing_else_stands_there():
    assert set(MAP) <= {"tests", *WORDS}
    assert set(chain(*MAP.values())) - ALL == set()


def test_what_can_not_arise_stands_nowhere_else():
    for other in ("tests", "later", "open"):
        assert set(MAP["reasons"]) & set(MAP[other]) == set()


def test_what_comes_later_is_not_open_now():
    assert set(MAP["later"]) & set(MAP["open"]) == set()


@pytest.mark.parametrize("case", MAP["tests"])
def test_a_case_names_tests_that_exist(case):
    found = MAP["tests"][case]
    assert found
    assert len(set(found)) == len(found)
    assert unknown(found) == []


@pytest.mark.parametrize("table", WORDS)
def test_the_others_are_told_in_a_sentence(table):
    short = {case: text for case, text in MAP[table].items() if not (len(text) > 10 and text.endswith("."))}
    assert short == {}
