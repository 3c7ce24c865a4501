"""Needs: what users say, the text it travels as, and which worker fits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq import needs
from taskq.needs import Needs, Place

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}", fullmatch=True)
WORDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=40)
LABELS = st.dictionaries(NAMES, WORDS, max_size=4)
TAKES = st.dictionaries(NAMES, st.integers(1, 8 * 10**15), max_size=4)


@given(LABELS, TAKES, st.none() | WORDS)
def test_a_text_says_it_all_and_in_one_way(labels, takes, target):
    text = needs.text_of(labels, takes, target)
    found = needs.parsed(text)
    assert found == Needs(tuple(sorted(labels.items())), tuple(sorted(takes.items())), target or "")
    assert needs.text_of(dict(reversed(labels.items())), dict(reversed(takes.items())), target) == text
    assert text.isascii()
    assert not {" ", "~", ":"} & set(text)
    assert (text == "") == (not labels and not takes and not target)


@pytest.mark.parametrize("text", ["?", "gpu=1", "label.a", "takes.a=x", "takes.a=-1", "takes.a=1e9", "target=", ";"])
def test_what_cannot_be_read_is_nothing_that_anybody_could_have(text):
    assert needs.parsed(text) is None


@pytest.mark.parametrize(
    "klass, field, found",
    [
        ("async", "", Needs()),
        ("thread;label.gpu=a100", "", Needs((("gpu", "a100"),))),
        ("async;" + "0" * 40, "target=web-1", Needs(target="web-1")),
        ("async;" + "0" * 40, "", None),
    ],
)
def test_a_record_says_what_its_job_needs(klass, field, found):
    assert needs.of_class(klass, field) == found


@pytest.mark.parametrize(
    "value, counted",
    [(2, 2000), (0.5, 500), ("0.5", 500), ("2", 2000), ("4GiB", 4 * 2**30 * 1000), (0, 0), (0.001, 1), (2.0, 2000)],
)
def test_amounts_are_counted_in_thousandths(value: Any, counted: int) -> None:
    assert needs.amount(value, name="cpu") == counted


@pytest.mark.parametrize("value", [-1, True, None, "x", "-1", [], 9e12, "1e3", float("nan"), float("inf"), 0.0001])
def test_what_is_no_amount_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="cpu="):
        needs.amount(value, name="cpu")


@pytest.mark.parametrize(
    "check, value, words",
    [
        (needs.checked_labels, ["gpu"], "is no mapping"),
        (needs.checked_labels, {"a b": "c"}, "a name is 1 to 64"),
        (needs.checked_labels, {"a": ""}, "a value is text of 1 to 128"),
        (needs.checked_labels, {"a": 1}, "a value is text"),
        (needs.checked_labels, {str(n): "x" for n in range(17)}, "at most 16"),
        (needs.checked_resources, 7, "is no mapping"),
        (needs.checked_resources, {"": 1}, "a name is 1 to 64"),
        (needs.checked_resources, {"gpu": "many"}, "is no amount: give a number such as 2"),
        (needs.checked_target, "", "give the id of a node"),
        (needs.checked_target, "a b", "give the id of a node"),
    ],
)
def test_options_say_their_rule(check: Any, value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check(value)


def test_a_worker_fits_with_every_label_every_amount_and_the_target():
    place = Place({"gpu": "a100", "zone": "eu"}, {"gpu": 2000, "cpu": 8000}, {"web-1", "web"})
    for text in ("", "label.gpu=a100", "takes.gpu=2;takes.cpu=8", "target=web", "label.zone=eu;takes.cpu=0.5"):
        assert needs.fits(needs.parsed(text) or Needs(target="?"), place), text
    for text in ("label.gpu=h100", "label.disk=ssd", "takes.gpu=2.001", "takes.cpu=1;takes.fpga=1", "target=web-2"):
        assert not needs.fits(needs.parsed(text) or Needs(), place), text
    assert not needs.fits(Needs(takes=(("cpu", 1),)), place._replace(capacity=None))


def test_there_is_room_for_so_many_as_the_scarcest_allows():
    takes = needs.pools("async", Needs(takes=(("gpu", 1000), ("cpu", 500))))
    assert takes == {"async": 1, "+gpu": 1000, "+cpu": 500}
    assert needs.room(takes, {"async": 9, "+gpu": 3999, "+cpu": 1000}) == 2
    assert needs.room(takes, {"async": 9, "+gpu": 3999}) == 0
    assert needs.room(takes, {"async": -1, "+gpu": 3999, "+cpu": 1000}) == 0
