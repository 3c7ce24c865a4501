"""Which form a Python type takes in the bytes: the built-in forms, and what users register.

A value that msgpack doesn't hold by itself is taken apart into a *state* of
simpler values under a code and a name. The form is found once a class and kept.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from enum import Enum
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from taskq.codec.classes import dataclass_fields, full_name, model_base, model_state, stored_name
from taskq.codec.scalars import SCALARS
from taskq.codec.wire import Code
from taskq.errors import InvalidPayload, Unencodable, shown

T = TypeVar("T")

PLAIN = frozenset({type(None), bool, int, float, str, bytes, bytearray, memoryview})
"""What msgpack packs by itself and has no parts; the last two arrive as bytes."""

_BUILT_IN = PLAIN | SCALARS.keys() | {list, dict, tuple, set, frozenset, object}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")


class Form(NamedTuple):
    """How values of one class are taken apart; `name` is None for a body that is the parts themselves."""

    code: Code
    name: str | None
    state: Callable[[Any], Any]


class Registered(NamedTuple):
    """One registered type."""

    cls: type
    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


class Types:
    """The types that an app can store beyond the built-in ones: `app.types`."""

    def __init__(self) -> None:
        self._by_class: dict[type, Registered] = {}
        self._by_name: dict[str, Registered] = {}
        self._forms: dict[type, Form] = {}
        self.packers: list[Any] = []  # idle ones, kept by `pack`

    def register(self, cls: type[T], name: str, encode: Callable[[T], Any], decode: Callable[[Any], T]) -> None:
        """Let values of a class be arguments and results; clients and workers both register it.

        Args:
            cls: the class; its subclasses are stored by the same pair and come back as what `decode` makes.
            name: what stands for the class in the stored bytes, 1 to 64 of `A-Z a-z 0-9 . _ : -`.
            encode: makes a value of storable parts of an object, such as `str` or `lambda o: {"x": o.x}`.
            decode: makes the object of that value again.

        Registering the same class again replaces its pair (a reload does that).

        Raises:
            ValueError: the name is unfit or another class's, or the class has a form of its own.
            TypeError: not a class, or not callables.
        """
        _check(cls, name, encode, decode)
        other = self._by_name.get(name)
        if other and full_name(other.cls) != full_name(cls):
            raise ValueError(
                f"the name {name!r} stands for {full_name(other.cls)} already; {full_name(cls)} needs its own"
            )
        entry = Registered(cls, name, encode, decode)
        self._by_class[cls] = self._by_name[name] = entry
        self._forms.clear()

    def form(self, cls: type) -> Form:
        """The form of a class; Unencodable says what to do where there is none."""
        found = self._forms.get(cls)
        if found is None:
            found = self._forms[cls] = self._find(cls)
        return found

    def revive(self, name: object, state: Any) -> Any:
        """An object of the class registered under that name."""
        entry = self._by_name.get(name) if isinstance(name, str) else None
        if entry is None:
            raise InvalidPayload(
                f"no type is registered as {str(name)[:64]!r} in this process:"
                " call app.types.register here as where it was enqueued",
                newer=True,
            )
        return entry.decode(state)

    def _find(self, cls: type) -> Form:
        for base in cls.__mro__:
            if base in self._by_class:
                return Form(Code.OBJECT, self._by_class[base].name, self._by_class[base].encode)
        if cls in _PARTS:
            return Form(_PARTS[cls], None, list)
        if issubclass(cls, Enum):
            return Form(Code.ENUM, stored_name(cls), attrgetter("value"))
        if dataclasses.is_dataclass(cls):
            names = dataclass_fields(cls)
            return Form(Code.DATACLASS, stored_name(cls), lambda value: {name: getattr(value, name) for name in names})
        model = model_base()
        if model is not None and issubclass(cls, model):
            return Form(Code.MODEL, stored_name(cls), model_state)
        raise Unencodable(_advice(cls))


def _check(cls: object, name: object, encode: object, decode: object) -> None:
    if not isinstance(cls, type) or not callable(encode) or not callable(decode):
        raise TypeError("register(cls, name, encode, decode) takes a class, text, and two callables")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"name={shown(name)} is unfit: 1 to 64 of A-Z a-z 0-9 . _ : - are taken")
    if cls in _BUILT_IN:
        raise ValueError(f"{full_name(cls)} has a stored form already; register a class of your own")


_PARTS = {tuple: Code.TUPLE, set: Code.SET, frozenset: Code.FROZENSET}


def _advice(cls: type) -> str:
    for base in cls.__mro__[1:-1]:
        if base in _BUILT_IN:
            # It would arrive as the plain type, silently: the caller shall decide that.
            kind = base.__name__
            return (
                f"the type {full_name(cls)} isn't stored as such: pass {kind}(...) of it,"
                " or register the class with app.types.register"
            )
    return (
        f"the type {full_name(cls)} can't be stored: pass plain data (an id, a path, text),"
        " or register the class with app.types.register"
    )


DEFAULT = Types()
"""The built-in types alone."""
