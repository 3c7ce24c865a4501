"""An exception becomes bounded, clean JSON, whatever it is."""

import json

import pytest

from taskq.record import failure


def caught(fn, *args):
    try:
        fn(*args)
    except BaseException as error:  # noqa: BLE001 (what is under test takes anything)
        return error
    raise AssertionError


def entry(error):
    told = failure.to_json(error, at_ms=5, worker="w.1")
    assert isinstance(told, bytes), "its size is what is sent"
    return json.loads(told)


def boom(text):
    raise ValueError(text)


def test_an_error_tells_type_message_traceback_time_and_worker():
    told = entry(caught(boom, "no such user"))
    assert told["type"] == "ValueError"
    assert told["message"] == "no such user"
    assert "in boom" in told["traceback"]
    assert (told["at"], told["worker"]) == (5, "w.1")


def test_causes_are_told():
    def outer():
        try:
            boom("first")
        except ValueError as error:
            raise KeyError("second") from error

    text = entry(caught(outer))["traceback"]
    assert "first" in text
    assert "second" in text


class RaisingStr(Exception):
    def __str__(self):
        raise SystemExit(3)


def test_an_error_whose_str_raises_is_survived():
    told = entry(RaisingStr())
    assert told["message"] == "<RaisingStr whose __str__ raised SystemExit>"
    assert failure.line_of(RaisingStr()).startswith("RaisingStr: ")


def test_a_huge_message_keeps_head_and_tail():
    told = entry(caught(boom, "head" + "x" * 10_000_000 + "tail"))
    assert len(told["message"].encode()) <= failure.MESSAGE_BYTES
    assert told["message"].startswith("head")
    assert told["message"].endswith("tail")
    assert len(told["traceback"].encode()) <= failure.TRACEBACK_BYTES


def test_an_endless_recursion_is_bounded():
    def down(n):
        return down(n + 1) + 1

    told = entry(caught(down, 0))
    assert told["type"] == "RecursionError"
    assert len(told["traceback"].encode()) <= failure.TRACEBACK_BYTES


def test_a_long_chain_of_causes_is_bounded():
    error = ValueError("0")
    for n in range(5000):
        following = ValueError(str(n))
        following.__cause__ = error
        error = following
    assert len(entry(error)["traceback"].encode()) <= failure.TRACEBACK_BYTES


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "\U0001f600" * 5000, "<script>", "\x1b[31m"])
def test_text_is_valid_utf8_without_nul(text):
    message = entry(ValueError(text))["message"]
    message.encode()
    assert "\0" not in message
    assert len(message.encode()) <= failure.MESSAGE_BYTES


def test_a_group_of_errors_is_told():
    assert "inner" in entry(ExceptionGroup("several", [ValueError("inner")]))["traceback"]


def test_one_line_for_logs():
    assert failure.line_of(ValueError("a\nb")) == "ValueError: a b"
    assert failure.line_of(ValueError()) == "ValueError"
