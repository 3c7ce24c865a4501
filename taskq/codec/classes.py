"""Enums, dataclasses and pydantic models: their stored names, their state, and back.

Stored bytes name a class as `module:Class`, and bytes are data: they never make
this process import anything, call a function, or look behind an attribute. A
name is good only for a class that this process has loaded by itself, that
stands in its module under exactly that name, and that is of the stored kind.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Mapping
from enum import Enum
from types import ModuleType
from typing import Any

from taskq.errors import InvalidPayload, Unencodable

_SCRIPT = ("__main__", "__mp_main__")


def full_name(cls: type) -> str:
    """`module.Class`, for people."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def stored_name(cls: type) -> str:
    """`module:Class`, for the bytes; Unencodable where a worker could not find the class by it."""
    name = f"{cls.__module__}:{cls.__qualname__}"
    if cls.__module__ in _SCRIPT:
        raise Unencodable(
            f"the class {cls.__qualname__} is defined in the script that was started (__main__), where a worker can't"
            " find it: move it to a module that both import"
        )
    if "<locals>" in cls.__qualname__:
        raise Unencodable(
            f"the class {full_name(cls)} is defined inside a function, where a worker can't find it:"
            " move it to the top level of a module"
        )
    if _look_up(name) is not cls:
        raise Unencodable(
            f"the class {full_name(cls)} can't be found by its name: give it its own name at the top level of its"
            " module, or register it with app.types.register"
        )
    return name


def find_class(name: object, kind: type) -> type:
    """The loaded class of that stored name, a proper subclass of `kind`; else InvalidPayload."""
    if not isinstance(name, str) or len(name) > 1024:
        raise InvalidPayload("a stored value doesn't name its class")
    cls = _look_up(name)
    shown = name.replace(":", ".")
    if cls is None:
        raise InvalidPayload(
            f"the class {shown} isn't loaded in this process: import its module where the task is defined,"
            " or name it in TaskQ(include=...)",
            newer=True,
        )
    if not issubclass(cls, kind):
        raise InvalidPayload(f"the class {shown} isn't of the kind that was stored")
    return cls


def _look_up(name: str) -> type | None:
    module, _, qualname = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        # Past every __getattr__, metaclass, descriptor and lazy module: those are code.
        if isinstance(found, ModuleType):
            found = ModuleType.__getattribute__(found, "__dict__").get(part)
        elif isinstance(found, type):
            found = type.__getattribute__(found, "__dict__").get(part)
    same = isinstance(found, type) and (found.__module__, found.__qualname__) == (module, qualname)
    return found if same else None


# --- enums ----------------------------------------------------------------------


def make_enum(name: object, value: Any) -> Any:
    """The member with that value."""
    cls = find_class(name, Enum)
    if not cls.__dict__.get("_member_map_"):  # calling an Enum without members would make a new class
        raise InvalidPayload(f"the enum {full_name(cls)} has no members")
    return cls(value)


# --- dataclasses ----------------------------------------------------------------


def dataclass_fields(cls: type) -> tuple[str, ...]:
    """The names of its fields; Unencodable if its `__init__` could not be called with them."""
    fields = dataclasses.fields(cls)
    given = {field.name for field in fields if field.init}
    taken = inspect.signature(cls).parameters.values()
    needed = {p.name for p in taken if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    refused = given - {p.name for p in taken if p.kind is not p.POSITIONAL_ONLY}
    if needed - given or (refused and not any(p.kind is p.VAR_KEYWORD for p in taken)):
        odd = min((needed - given) or refused)
        raise Unencodable(
            f"the dataclass {full_name(cls)} can't be rebuilt from its fields, because of {odd!r} in its __init__:"
            " register it with app.types.register"
        )
    return tuple(field.name for field in fields)


def make_dataclass(name: object, state: Any) -> Any:
    """Built by its own `__init__`, so that its checks run and new fields take their defaults."""
    cls = find_class(name, object)
    if not dataclasses.is_dataclass(cls) or not isinstance(state, dict):
        raise InvalidPayload(f"the class {full_name(cls)} isn't a dataclass here")
    fields = {field.name: field for field in dataclasses.fields(cls)}
    unknown = [key for key in state if key not in fields]
    if unknown:
        raise InvalidPayload(
            f"the dataclass {full_name(cls)} has no field {unknown[0]!r:.80} here: the code has changed", newer=True
        )
    made = cls(**{key: value for key, value in state.items() if fields[key].init})
    for key, value in state.items():
        if not fields[key].init:
            object.__setattr__(made, key, value)  # frozen ones too
    return made


# --- pydantic models ------------------------------------------------------------


def model_base() -> type | None:
    """BaseModel of pydantic (2 or newer) if this process has loaded pydantic, else None."""
    pydantic = sys.modules.get("pydantic")
    base = getattr(pydantic, "BaseModel", None)
    return base if isinstance(base, type) and hasattr(base, "model_validate") else None


def model_state(model: Any) -> Any:
    """Its fields by name; with them, where some were left to their defaults, the names of those."""
    values: Mapping[str, Any] = model.__dict__  # not getattr: a deprecated field warns when it is read
    state = {name: values[name] for name in type(model).model_fields if name in values}
    state.update(model.model_extra or {})
    unset = sorted(set(state) - model.model_fields_set)
    return [state, unset] if unset else state


def make_model(name: object, state: Any) -> Any:
    """Validated anew: the code may have changed since the bytes were written."""
    base = model_base()
    if base is None:
        raise InvalidPayload("a stored value is a pydantic model, and pydantic isn't loaded in this process")
    cls: Any = find_class(name, base)
    values, unset = state if isinstance(state, list) else (state, [])
    if getattr(cls, "__pydantic_root_model__", False):
        model = cls.model_validate(values["root"])
    else:
        model = _validate(cls, values)
    model.model_fields_set.difference_update(unset)
    return model


def _validate(cls: Any, values: dict[str, Any]) -> Any:
    version = tuple(int(part) for part in sys.modules["pydantic"].VERSION.split(".")[:2])
    if version >= (2, 11):
        return cls.model_validate(values, by_name=True, by_alias=False)
    aliases = {name: field.validation_alias for name, field in cls.model_fields.items()}
    by_alias = {name: alias for name, alias in aliases.items() if isinstance(alias, str)}
    return cls.model_validate({by_alias.get(name, name): value for name, value in values.items()})
