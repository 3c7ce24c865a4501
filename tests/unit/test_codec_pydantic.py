"""Pydantic models as arguments and results, where pydantic is installed."""

from typing import Any, Generic, TypeVar

import pytest

from taskq import codec
from taskq.errors import InvalidPayload, Unencodable

pydantic = pytest.importorskip("pydantic", minversion="2")
T = TypeVar("T")


class Line(pydantic.BaseModel):
    sku: str
    count: int = 1


class Order(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow", frozen=True)

    id: int = pydantic.Field(alias="orderId")
    lines: tuple[Line, ...] = ()
    note: Any = None


class Names(pydantic.RootModel[list[str]]):
    pass


class Even(pydantic.BaseModel):
    x: int

    @pydantic.field_validator("x")
    @classmethod
    def _even(cls, x: int) -> int:
        if x % 2:
            raise ValueError("odd")
        return x


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]


class Secret(pydantic.BaseModel):
    password: pydantic.SecretStr


def again(value):
    return codec.decode_value(codec.encode_value(value))


def test_models_come_back():
    order = Order(orderId=1, lines=(Line(sku="a"), Line(sku="b", count=2)), note={(1, 2)}, extra="kept")
    back = again([order])[0]
    assert back == order
    assert type(back.lines[0]) is Line
    assert back.extra == "kept"
    assert again(Names(["a"])) == Names(["a"])


def test_what_was_left_to_its_default_stays_so():
    assert again(Line(sku="a")).model_dump(exclude_unset=True) == {"sku": "a"}
    assert again(Line(sku="a", count=1)).model_fields_set == {"sku", "count"}


def test_stored_models_are_validated_anew():
    stored = codec.encode_value(Even.model_construct(x=3))
    with pytest.raises(InvalidPayload, match=r"Even can't be rebuilt: .*ValidationError.*"):
        codec.decode_value(stored)


def test_models_are_shown_as_objects():
    name = f"{__name__}.Line"
    assert codec.to_json(Line(sku="a")) == {"$type": "object", "value": {"sku": "a", "count": 1}, "name": name}
    assert codec.to_json(Line(sku="a", count=1)) == codec.to_json(Line(sku="a"))


def test_what_a_model_hides_is_refused_not_lost():
    with pytest.raises(Unencodable, match=r"^value\.password: the type .*SecretStr can't be stored") as caught:
        codec.encode_value(Secret(password="hush"))
    assert "hush" not in str(caught.value)


def test_a_model_without_a_name_is_refused():
    def inside():
        return Page[dict[str, int]](items=[])

    with pytest.raises(Unencodable, match=r"can't be found by its name|defined inside a function"):
        codec.encode_value(inside())


def test_a_model_is_needed_where_one_is_stored():
    stored = codec.encode_value(Line(sku="a")).replace(b":Line", b":Gone")
    with pytest.raises(InvalidPayload, match=r"\.Gone isn't loaded"):
        codec.decode_value(stored)
