"""Where functions live: the name a worker can import one by, and the modules an app asks for.

A job carries a task's name, so the name must mean the same in the producer and
in the worker: `__main__` is resolved to the module's real name, and what no
other process can import (a REPL's function, a nested one, a lambda) is told apart.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")

_MAIN = ("__main__", "__mp_main__")  # the second: what multiprocessing calls the parent's main module in a child


def task_name(fn: Callable[..., Any]) -> str:
    """The name a task has unless `name=` gives another: `module.qualname`."""
    return f"{module_name(fn.__module__)}.{fn.__qualname__}"


def module_name(name: str) -> str:
    """A module's real name: `__main__` becomes what others import the same file as."""
    module = sys.modules.get(name)
    if name not in _MAIN or module is None:
        return name
    spec = getattr(module, "__spec__", None)
    if spec is not None and spec.name not in _MAIN:  # python -m shop.mail
        return str(spec.name)
    file = getattr(module, "__file__", None)
    return name if file is None else _name_of_file(Path(file).absolute())


def _name_of_file(file: Path) -> str:
    """What a script is imported as: by its package, else as seen from the current folder, as `taskq worker` does."""
    folder, parts = file.parent, [file.stem]
    if (folder / "__init__.py").exists():
        while (folder / "__init__.py").exists():
            parts.insert(0, folder.name)
            folder = folder.parent
        return ".".join(parts)
    try:
        seen = [*file.parent.relative_to(Path.cwd()).parts, file.stem]
    except ValueError:
        return file.stem
    return ".".join(seen) if all(part.isidentifier() for part in seen) else file.stem


def origin(fn: Callable[..., Any]) -> tuple[str, str]:
    """File and qualname: the same pair is the same function, defined again.

    A notebook gives each run of a cell a file of its own, so all that is typed in counts as one file.
    """
    code = getattr(fn, "__code__", None)
    file = "<typed in>" if _typed_in(fn) else code.co_filename if code is not None else fn.__module__
    return file, fn.__qualname__


def where(fn: Callable[..., Any]) -> str:
    """A function for a message: `shop.mail.send (mail.py:12)`."""
    code = getattr(fn, "__code__", None)
    at = "" if code is None else f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"  # noqa: PTH119
    return f"{fn.__module__}.{fn.__qualname__}{at}"


def why_unimportable(fn: Callable[..., Any], *, named: bool) -> str | None:
    """Why no worker could find this function, or None if one can.

    Args:
        fn: the task's function.
        named: whether the task was given a `name=`; then it is found by its registration, wherever it stands.
    """
    if _typed_in(fn):
        return (
            "it was typed into a REPL or notebook, where no worker can import it:"
            " move it to a module, or call it by name with app.by_name(...)"
        )
    if named:
        return None
    if fn.__name__ == "<lambda>":
        return "a lambda has no name to import it by: write a def in a module, or give the task a name="
    if "<locals>" in fn.__qualname__:
        return "it is defined inside another function: move it to the module's level, or give the task a name="
    return None


def _typed_in(fn: Callable[..., Any]) -> bool:
    """Whether the function came from a prompt, a notebook's cell, `python -c` or standard input."""
    if fn.__module__ not in _MAIN:
        return False
    code = getattr(fn, "__code__", None)
    return getattr(sys.modules.get(fn.__module__), "__file__", None) is None or (
        code is not None and code.co_filename.startswith("<")
    )


def load_modules(patterns: tuple[str, ...]) -> list[ModuleType]:
    """Import every module that the patterns name, in their order; a `*` stands for one part of a name.

    Raises:
        ImportError: a pattern names no module, or one of them can't be imported.
    """
    return [importlib.import_module(name) for pattern in patterns for name in _matching(pattern)]


def _matching(pattern: str) -> list[str]:
    if "*" not in pattern:
        return [pattern]
    names = [""]
    for part in pattern.split("."):
        names = [found for name in names for found in _children(name, part)]
    if not names:
        raise ImportError(f"include={pattern!r} matches no module")
    return sorted(names)


def _children(parent: str, part: str) -> Iterator[str]:
    """The modules under a package ("" is the top) whose last part matches."""
    inside = None  # all of sys.path
    if parent:
        spec = importlib.util.find_spec(parent)
        inside = None if spec is None else spec.submodule_search_locations
        if inside is None:
            return  # a plain module beside the packages that are meant
    if "*" not in part:
        name = f"{parent}.{part}" if parent else part
        if importlib.util.find_spec(name) is not None:
            yield name
        return
    for module in pkgutil.iter_modules(inside):
        if fnmatchcase(module.name, part) and module.name != "__main__":
            yield f"{parent}.{module.name}" if parent else module.name


def load_attribute(path: str, default: str, kind: type[T]) -> T:
    """What `module[:attribute]` names, with the current folder importable.

    Args:
        path: the two names.
        default: the attribute, unless the path says one.
        kind: what it must be.

    Raises:
        ImportError: no such module or attribute, or of another kind, with what to write instead; errors inside the
            module pass as they are.
    """
    name, _, attribute = path.partition(":")
    if name.endswith(".py") or "/" in name:
        dotted = name.removesuffix(".py").strip("./").replace("/", ".")
        raise ImportError(f"{path!r} is a file: give the module's name, such as {dotted!r}")
    if not all(part.isidentifier() for part in name.split(".")):
        raise ImportError(f"{path!r} names no module: write module or module:attribute, such as shop.mail:app")
    folder = os.getcwd()  # noqa: PTH109 (sys.path holds text)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there; something that it imports is not
        raise ImportError(f"there is no module {error.name!r} here (current folder: {folder})") from error
    module = found
    for part in (attribute or default).split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ImportError(f"module {name!r} has no {attribute or default!r}: {_instead(module, kind)}") from None
    if not isinstance(found, kind):
        what = f"{path!r} is a {type(found).__name__}, not a {kind.__name__}"
        raise ImportError(f"{what}: {_instead(module, kind)}")  # noqa: TRY004 (any failure to load is an ImportError)
    return found


def _instead(module: ModuleType, kind: type) -> str:
    """What of this kind the module does have."""
    name = module.__name__
    there = [f"{name}:{each}" for each, value in vars(module).items() if isinstance(value, kind)]
    return f"write {' or '.join(there[:5])}" if there else f"it has no {kind.__name__}, write module:attribute of one"
