"""What a job of the demo does, as a plain function: read one file and say what is in it. Also used without taskq, for
the single pass that the jobs' results are compared with.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import zlib
from typing import TypedDict

_CHUNK = 1 << 20  # however large the file: a worker's memory stays small


class Reading(TypedDict):
    """One file: its SHA-256, sizes in bytes, lines, and the longest line in characters."""

    sha256: str
    size: int
    lines: int
    longest: int
    compressed: int


def read_file(path: str | bytes) -> Reading:
    """Read a text file.

    Raises:
        OSError: it can't be read.
        UnicodeDecodeError: it isn't UTF-8.
    """
    digest, packer = hashlib.sha256(), zlib.compressobj()
    decode = codecs.getincrementaldecoder("utf-8")().decode
    lines = _Lines()
    size = compressed = 0
    with open(os.fsdecode(path), "rb") as file:  # noqa: PTH123 - a name that isn't UTF-8 comes as bytes
        while chunk := file.read(_CHUNK):
            lines.feed(decode(chunk))
            digest.update(chunk)
            compressed += len(packer.compress(chunk))
            size += len(chunk)
    lines.feed(decode(b"", final=True))
    compressed += len(packer.flush())
    return Reading(
        sha256=digest.hexdigest(), size=size, lines=lines.count, longest=lines.longest, compressed=compressed
    )


class _Lines:
    """Counts lines of text that comes in pieces; only lengths are kept. A last line may lack its end."""

    def __init__(self) -> None:
        self.longest = 0
        self._ended = 0
        self._open = 0  # characters of the line that hasn't ended yet

    @property
    def count(self) -> int:
        return self._ended + (self._open > 0)

    def feed(self, text: str) -> None:
        first, *rest = text.split("\n")
        self._open += len(first)
        self.longest = max(self.longest, self._open)
        if rest:
            self._ended += len(rest)
            self._open = len(rest[-1])
            self.longest = max(self.longest, *map(len, rest))
