"""The Lua files: finding, including, reading their headers and hashing them.

`lua/` lies at the top of the repository and ships in the wheel as `taskq/lua`. A line `-- @include lib/x.lua` stands
for that file; each is included once. A script's header names its KEYS and ARGV, by which commands pass values.
Functions that a script doesn't use aren't sent.
All files are read when the first is needed, or earlier: a process that runs while another version is installed under it
must not mix the two.
`python -m taskq.scripts DIR` writes the expanded scripts, for a linter or a reader.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_INCLUDE = re.compile(r"^-- @include (\S+)$", re.MULTILINE)
_BINDINGS = re.compile(r"^(?:local arg = )?(keys|args)\.bind\(([^)]*)\)$", re.MULTILINE | re.DOTALL)
_FUNCTION = re.compile(r"^(?:local )?function ([\w.]+)\(.*?^end\n", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"'([a-z_]+)'")


@dataclass(frozen=True, slots=True)
class Script:
    """One script, ready to send: `source` is expanded, `sha` its SHA-1 as EVALSHA wants it."""

    name: str
    source: str
    sha: str
    keys: tuple[str, ...]
    args: tuple[str, ...]


def folder() -> Path:
    """Where the Lua files are: inside the package when installed, beside it in a checkout."""
    here = Path(__file__).resolve().parent
    for place in (here / "lua", here.parent / "lua"):
        if place.is_dir():
            return place
    raise FileNotFoundError(f"taskq's Lua scripts are missing in {here} and {here.parent}: install taskq again")


@cache
def read() -> Mapping[str, str]:
    """Every file's text by its path in `lua/`, as they were at the first call: some milliseconds once in a process.

    Raises:
        FileNotFoundError: there are none.
    """
    at = folder()
    files = [*at.glob("*.lua"), *at.glob("lib/*.lua")]
    return {path.relative_to(at).as_posix(): path.read_text(encoding="utf-8") for path in files}


def names() -> list[str]:
    """Every script, in alphabetical order."""
    return sorted(path.removesuffix(".lua") for path in read() if "/" not in path)


def _text(path: str) -> str:
    try:
        return read()[path]
    except KeyError:
        raise FileNotFoundError(f"there is no Lua file {path} in {folder()}") from None


def expand(text: str, seen: set[str] | None = None) -> str:
    """Replaces each include line by its file, once, without the file's own comments."""
    seen = set() if seen is None else seen

    def one(match: re.Match[str]) -> str:
        path = match.group(1)
        if path in seen:
            return ""
        seen.add(path)
        return expand(_text(path), seen)

    return _INCLUDE.sub(one, text)


def _without_comments(source: str) -> str:
    """What the server needs; whole-line comments only, as our scripts hold no multi-line strings."""
    lines = (line for line in source.splitlines() if line.strip() and not line.lstrip().startswith("--"))
    return "\n".join(lines) + "\n"


def _without_unused(source: str) -> str:
    """Drops the functions that nothing names: each call of a script defines all of its own anew."""
    defined = {match.group(1): match.group(0) for match in _FUNCTION.finditer(source)}
    while unused := [name for name in defined if source.count(name) == 1]:
        for name in unused:
            source = source.replace(defined.pop(name), "")
    return source


@cache
def load(name: str) -> Script:
    """The script of that name.

    Raises:
        FileNotFoundError: there is no such script.
    """
    text = _text(f"{name}.lua")
    bound = {kind: tuple(_NAME.findall(listed)) for kind, listed in _BINDINGS.findall(text)}
    source = _without_unused(_without_comments(expand(text)))
    sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    return Script(name, source, sha, bound["keys"], bound.get("args", ()))


def main(argv: list[str]) -> int:
    """Writes each expanded script, comments and all, into the folder named on the command line."""
    target = Path(argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for name in names():
        text = expand(_text(f"{name}.lua"))
        (target / f"{name}.lua").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
