"""Arguments and results: plain values, times, UUIDs, Decimals, sets, dataclasses, enums, and what you register."""

import enum
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from taskq import PayloadTooLarge, Unencodable
from tests.guide.app import app


@dataclass
class Order:
    number: int
    total: Decimal


class Colour(enum.Enum):
    RED = "red"


class Point:
    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

    __hash__ = None  # type: ignore[assignment]


app.types.register(Point, "guide.point", lambda point: [point.x, point.y], lambda pair: Point(*pair))


@app.task
async def echo(value: object) -> object:
    return value


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True, "é", b"\x00\xff"]},
        2**100,
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        date(2026, 1, 2),
        timedelta(hours=1),
        UUID(int=7),
        Decimal("0.10"),
        {1, 2},
        (1, (2, 3)),
        Order(7, Decimal("9.99")),
        Colour.RED,
        Point(1, 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_it_comes_back_as_it_was(value):
    back = echo.enqueue(value).result(timeout=10)
    assert back == value
    assert type(back) is type(value)


def test_what_cannot_be_stored_is_refused_where_it_is_said():
    with pytest.raises(Unencodable, match=r"args\[0\]"):
        echo.enqueue([object()])
    with pytest.raises(PayloadTooLarge):
        echo.enqueue(b"x" * 2_000_000)
