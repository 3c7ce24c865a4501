"""How stored values are shown as JSON: the `$type` forms, one by one."""

import json
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from taskq import codec
from taskq.errors import InvalidPayload, Unencodable

HERE = __name__


class Colour(Enum):
    RED = "r"


class Level(IntEnum):
    HIGH = 3


@dataclass
class Line:
    sku: str
    colour: Colour


class Money:
    def __init__(self, cents):
        self.cents = cents


TYPES = codec.Types()
TYPES.register(
    Money, "shop:money", lambda money: {"cents": money.cents, "of": {1}}, lambda state: Money(state["cents"])
)

PLAIN = [None, True, 0, -1, 2**64, 1.5, "text", "a\0b", [], [1, [2]], {}, {"a": {"b": [None]}}]


@pytest.mark.parametrize("value", PLAIN)
def test_what_json_holds_stays_as_it_is(value):
    shown = codec.to_json(value)
    assert json.dumps(shown) == json.dumps(value)


@pytest.mark.parametrize(
    "value, type_, shown",
    [
        (b"\x00\xff", "bytes", "AP8="),
        (b"", "bytes", ""),
        (datetime(2024, 5, 1, 12, tzinfo=UTC), "datetime", "2024-05-01T12:00:00+00:00"),
        (datetime(2024, 5, 1, 12, 0, 0, 5, UTC).replace(tzinfo=None), "datetime", "2024-05-01T12:00:00.000005"),
        (datetime(2024, 5, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")), "datetime", "2024-05-01T12:00:00+02:00"),
        (date(2024, 5, 1), "date", "2024-05-01"),
        (time(1, 2, 3, fold=1), "time", "01:02:03"),
        (timedelta(minutes=1), "timedelta", 60),
        (timedelta(seconds=-1.5), "timedelta", -1.5),
        (timedelta(microseconds=1), "timedelta", 1e-06),
        (UUID(int=1), "uuid", "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.10"), "decimal", "1.10"),
        (Decimal("NaN"), "decimal", "NaN"),
        ({1}, "set", [1]),
        (frozenset(), "frozenset", []),
        ((1, (2,)), "tuple", [1, {"$type": "tuple", "value": [2]}]),
        (complex(1, -2), "complex", [1.0, -2.0]),
        (complex(0, math.inf), "complex", [0.0, {"$type": "float", "value": "inf"}]),
        (math.nan, "float", "nan"),
        (math.inf, "float", "inf"),
        (-math.inf, "float", "-inf"),
        ({1: "a", "b": (2,)}, "dict", [[1, "a"], ["b", {"$type": "tuple", "value": [2]}]]),
        ({"$type": "bytes", "value": "AA=="}, "dict", [["$type", "bytes"], ["value", "AA=="]]),
    ],
)
def test_what_json_cannot_hold_is_named(value, type_, shown):
    assert codec.to_json(value) == {"$type": type_, "value": shown}
    assert codec.to_json([value]) == [{"$type": type_, "value": shown}]
    json.dumps(codec.to_json(value), allow_nan=False)


def test_instances_are_shown_with_the_name_of_their_class():
    red = {"$type": "enum", "value": "r", "name": f"{HERE}.Colour"}
    assert codec.to_json(Colour.RED) == red
    assert codec.to_json(Level.HIGH) == {"$type": "enum", "value": 3, "name": f"{HERE}.Level"}
    assert codec.to_json(Line("a", Colour.RED)) == {
        "$type": "dataclass",
        "value": {"sku": "a", "colour": red},
        "name": f"{HERE}.Line",
    }
    assert codec.to_json(Money(5), TYPES) == {
        "$type": "object",
        "value": {"cents": 5, "of": {"$type": "set", "value": [1]}},
        "name": "shop:money",
    }


def test_a_negative_zero_and_a_lone_surrogate_survive_json():
    assert json.dumps(codec.to_json([-0.0, "\udcff"])) == '[-0.0, "\\udcff"]'


def test_stored_bytes_are_shown_without_their_classes():
    stored = codec.encode((Line("a", Colour.RED),), {"money": Money(1)}, TYPES)
    stored = stored.replace(HERE.encode(), b"x" * len(HERE))
    args, kwargs = codec.call_to_json(stored)
    assert args[0]["name"] == "x" * len(HERE) + ".Line"
    assert kwargs["money"]["name"] == "shop:money"
    assert codec.value_to_json(codec.encode_value((1,))) == {"$type": "tuple", "value": [1]}
    assert codec.call_to_json(b"") == ([], {})
    assert codec.value_to_json(b"") is None


def test_keyword_arguments_with_the_name_of_the_mark_are_shown():
    assert codec.call_to_json(codec.encode((), {"$type": 1}))[1] == {"$type": "dict", "value": [["$type", 1]]}


def test_what_cannot_be_shown():
    with pytest.raises(Unencodable, match="the type object can't be stored"):
        codec.to_json(object())
    for damaged in (b"\xc1", codec.encode_value([1, 2])):
        with pytest.raises(InvalidPayload):
            codec.call_to_json(damaged)
