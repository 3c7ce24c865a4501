"""Enums, dataclasses, registered types: what comes back, and what is refused before it is stored."""

import dataclasses
import enum
import sys
import types
from collections import OrderedDict, namedtuple
from dataclasses import InitVar, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from taskq import codec
from taskq.errors import InvalidPayload, Unencodable


class Colour(enum.Enum):
    RED = "r"
    BLUE = ("b", 1)


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    YES = "yes"


class Right(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass
class Line:
    sku: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    lines: tuple[Line, ...]
    colour: Colour = Colour.RED
    total: int = field(init=False, default=0)

    class Part:
        """A name inside a class is found too."""

        @dataclass
        class Inner:
            """It holds anything."""

            x: Any

    def __post_init__(self):
        object.__setattr__(self, "total", sum(line.count for line in self.lines))


@dataclass
class NeedsMore:
    x: int
    seed: InitVar[int]

    def __post_init__(self, seed):
        self.x += seed


@dataclass(init=False)
class OwnInit:
    x: int

    def __init__(self, other):
        self.x = other


class Money:
    def __init__(self, cents):
        self.cents = cents

    def __eq__(self, other):
        return type(other) is type(self) and other.cents == self.cents

    __hash__ = None


class Euro(Money):
    pass


Point = namedtuple("Point", "x y")  # noqa: PYI024


def again(value, known=None):
    return codec.decode_value(codec.encode_value(value, known), known)


@pytest.mark.parametrize(
    "value",
    [
        Colour.RED,
        Colour.BLUE,
        Level.HIGH,
        Word.YES,
        Right.READ | Right.WRITE,
        Line("a", 2),
        Order(lines=(Line("a", 2), Line("b")), colour=Colour.BLUE),
        Order.Part.Inner([Colour.RED, {"k": Line("c")}]),
        {Colour.RED: 1, Level.HIGH: 2},
    ],
    ids=str,
)
def test_instances_come_back(value):
    back = again(value)
    assert back == value
    assert type(back) is type(value)


def test_an_enum_member_is_the_member_itself():
    back = again([Level.HIGH, 3, Word.YES, "yes"])
    assert back[0] is Level.HIGH
    assert type(back[1]) is int
    assert back[2] is Word.YES
    assert type(back[3]) is str


def test_a_field_added_since_takes_its_default(monkeypatch):
    stored = codec.encode_value(Line("a"))

    @dataclass
    class Newer:
        sku: str
        count: int = 1
        unit: str = "kg"

    Newer.__qualname__, Newer.__module__ = "Line", __name__
    monkeypatch.setattr(sys.modules[__name__], "Line", Newer)
    assert codec.decode_value(stored) == Newer("a", 1, "kg")


def test_a_field_gone_since_is_told(monkeypatch):
    stored = codec.encode_value(Line("a"))

    @dataclass
    class Older:
        sku: str

    Older.__qualname__, Older.__module__ = "Line", __name__
    monkeypatch.setattr(sys.modules[__name__], "Line", Older)
    with pytest.raises(InvalidPayload, match="has no field 'count' here: the code has changed"):
        codec.decode_value(stored)


@pytest.mark.parametrize("value", [NeedsMore(1, 2), OwnInit(3)], ids=["InitVar", "own __init__"])
def test_a_dataclass_that_its_fields_do_not_make_is_refused(value):
    with pytest.raises(Unencodable, match=r"can't be rebuilt from its fields, because of '(seed|other)'"):
        again(value)


# --- register -------------------------------------------------------------------


def test_registered_types_come_back():
    known = codec.Types()
    known.register(Money, "money", lambda money: {"cents": money.cents}, lambda state: Money(**state))
    known.register(Path, "path", str, Path)
    assert again([Money(5), (Money(6),)], known) == [Money(5), (Money(6),)]
    assert again(Euro(7), known) == Money(7), "a subclass is stored by the same pair"
    assert again({Path("/tmp/a"): 1}, known) == {Path("/tmp/a"): 1}  # noqa: S108


def test_registering_wins_over_the_built_in_form():
    known = codec.Types()
    known.register(Line, "line", lambda line: line.sku, Line)
    assert again(Line("a", 9), known) == Line("a", 1)


def test_registering_again_replaces():
    known = codec.Types()
    known.register(Money, "money", lambda money: money.cents, Money)
    assert again(Money(1), known) == Money(1)
    known.register(Money, "money", lambda money: money.cents + 1, Money)
    assert again(Money(1), known) == Money(2)


@pytest.mark.parametrize(
    "cls, name, error, says",
    [
        (Euro, "money", ValueError, "stands for .*Money already"),
        (Euro, "", ValueError, "unfit"),
        (Euro, "a b", ValueError, "unfit"),
        (Euro, "x" * 65, ValueError, "unfit"),
        (int, "int", ValueError, "has a stored form already"),
        (tuple, "tuple", ValueError, "has a stored form already"),
        (object, "all", ValueError, "has a stored form already"),
        ("Euro", "euro", TypeError, "takes a class"),
    ],
)
def test_what_cannot_be_registered(cls, name, error, says):
    known = codec.Types()
    known.register(Money, "money", str, Money)
    with pytest.raises(error, match=says):
        known.register(cls, name, str, str)


def test_a_registered_type_is_needed_on_both_sides():
    known = codec.Types()
    known.register(Money, "money", lambda money: money.cents, Money)
    stored = codec.encode([Money(1)], {}, known)
    with pytest.raises(InvalidPayload, match=r"no type is registered as 'money'.*app\.types\.register"):
        codec.decode(stored)


# --- refused, with its place ----------------------------------------------------


def refused(*args, known=None, **kwargs):
    with pytest.raises(Unencodable) as caught:
        codec.encode(args, kwargs, known)
    return str(caught.value)


@pytest.mark.parametrize(
    "args, kwargs, place",
    [
        ((1, {"when": object()}), {}, 'args[1]["when"]'),
        ((), {"to": [0, (1, object())]}, 'kwargs["to"][1][1]'),
        (({"a": {3: object()}},), {}, 'args[0]["a"][3]'),
        (({object(): 1},), {}, "args[0] (its key a object)"),
        (({frozenset({object()}): 1},), {}, "args[0] (its key a frozenset) (a member)"),
        ((Line("a", object()),), {}, "args[0].count"),
        ((["x" * 200, {"y" * 200: object()}],), {}, f'args[0][1]["{"y" * 37}..."]'),
        ((7, 1 << 9000), {}, "args[1]"),
    ],
)
def test_a_refusal_names_the_place(args, kwargs, place):
    assert refused(*args, **kwargs).startswith(place + ": ")


def test_a_refusal_says_what_to_do():
    assert refused(object()) == (
        "args[0]: the type object can't be stored: pass plain data (an id, a path, text),"
        " or register the class with app.types.register"
    )
    assert "pass dict(...) of it" in refused(OrderedDict(a=1))
    assert "pass tuple(...) of it" in refused(Point(1, 2))
    assert "register the class" in refused(PurePosixPath("/x"))
    assert "8192" in refused(1 << 9000)


def test_a_refusal_shows_no_values():
    assert "secret" not in refused({"password": [Money("secret")]})


def test_a_result_is_named_as_what_it_is():
    with pytest.raises(Unencodable, match=r"^result\[0\]: the type .*Money can't be stored"):
        codec.encode_value([Money(1)], name="result")


@pytest.mark.parametrize("encode", [lambda money: 1 / 0, lambda money: {"x": object()}, lambda money: money])
def test_an_encoder_that_fails_is_a_refusal(encode):
    known = codec.Types()
    known.register(Money, "money", encode, Money)
    text = refused([Money(1)], known=known)
    assert text.startswith("args[0]")
    assert "division by zero" in text or "can't be stored" in text or "nested deeper" in text


def test_a_class_of_the_script_is_refused_with_advice(monkeypatch):
    """SER-11: a worker could never find it."""
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    script = {"__name__": "__main__", "dataclasses": dataclasses, "enum": enum}
    exec(  # noqa: S102 (a script, as the interpreter runs it)
        "@dataclasses.dataclass\nclass Item:\n  x: int = 0\nclass Kind(enum.Enum):\n  A = 1", script
    )
    main.__dict__.update(script)
    for value in (main.Item(), main.Kind.A):
        assert "defined in the script that was started (__main__)" in refused(value)
        assert "move it to a module that both import" in refused(value)


def test_a_class_that_no_name_leads_to_is_refused():
    @dataclass
    class Local:
        x: int = 0

    assert "defined inside a function" in refused(Local())
    made = dataclasses.make_dataclass("Made", ["x"])
    made.__module__ = __name__
    assert "can't be found by its name" in refused(made(1))
