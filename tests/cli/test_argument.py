"""How the words after `taskq enqueue TASK` are read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq.cli.argument import read_args, read_pair, read_payload

READ = [
    ("5", 5),
    ("-1.5", -1.5),
    ("true", True),
    ("null", None),
    ("[1, 2]", [1, 2]),
    ('{"a": 1}', {"a": 1}),
    ('"5"', "5"),
    ("a@b.c", "a@b.c"),
    ("hello world", "hello world"),
    ("True", "True"),
    ("NaN", "NaN"),
    ("-Infinity", "-Infinity"),
    ("01", "01"),
    ("", ""),
    ("http://x/?a=b", "http://x/?a=b"),
    ('"k=v"', "k=v"),
    ("1=2", "1=2"),
    ("9" * 5000, "9" * 5000),  # Python reads no number of so many digits
    ("[" * 100_000, "[" * 100_000),
]


@pytest.mark.parametrize("word, value", READ, ids=lambda value: repr(value)[:20])
def test_a_word_is_json_if_it_parses_else_text(word, value):
    assert read_args([word]) == ([value], {})


@pytest.mark.parametrize(
    "word, kwargs",
    [
        ("n=5", {"n": 5}),
        ("subject=hi there", {"subject": "hi there"}),
        ("x=", {"x": ""}),
        ("x==1", {"x": "=1"}),
        ("ñ=1", {"ñ": 1}),
        ('where={"a": 1}', {"where": {"a": 1}}),
    ],
)
def test_k_v_is_a_keyword_if_k_is_an_identifier(word, kwargs):
    assert read_args([word]) == ([], kwargs)


def test_order_is_kept_and_keywords_may_stand_anywhere():
    assert read_args(["1", "k=v", "two"]) == ([1, "two"], {"k": "v"})


@given(st.lists(st.text(max_size=20), max_size=5))
def test_whatever_is_typed_is_read(words):
    names = [name for name, sign, _ in (word.partition("=") for word in words) if sign and name.isidentifier()]
    if len(names) == len(set(names)):
        args, kwargs = read_args(words)
        assert len(args) + len(kwargs) == len(words)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_json_comes_back_as_it_was(value):
    assert read_args([json.dumps(value)]) == ([value], {})


@pytest.mark.parametrize(
    "text, call",
    [
        ('{"args": [1], "kwargs": {"a": 2}}', ([1], {"a": 2})),
        ('{"args": [1]}', ([1], {})),
        ("{}", ([], {})),
    ],
)
def test_a_payload_may_leave_out_either(text, call):
    assert read_payload(text) == call


@pytest.mark.parametrize("text", ["", "[]", '{"args": {}}', '{"kwargs": []}', '{"arg": []}', '{"args": [NaN]}'])
def test_any_other_payload_is_refused(text):
    with pytest.raises(ValueError, match="--payload"):
        read_payload(text)


def test_a_pair_keeps_text_as_text():
    assert read_pair("n=5=6", "--meta") == ("n", "5=6")
    with pytest.raises(ValueError, match="key=value"):
        read_pair("=5", "--meta")
