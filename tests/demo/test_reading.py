"""What a job of the demo says of a file, and which files there are."""

from __future__ import annotations

import hashlib
import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq import codec
from taskq.demo import reading, tree


@pytest.fixture
def file(tmp_path):
    def write(data: bytes) -> str:
        path = tmp_path / "file"
        path.write_bytes(data)
        return str(path)

    return write


@pytest.mark.parametrize(
    "data, lines, longest",
    [
        (b"", 0, 0),
        (b"\n", 1, 0),
        (b"a", 1, 1),
        (b"a\nbcd", 2, 3),
        (b"a\nbcd\n", 2, 3),
        ("äöü\nß\n".encode(), 2, 3),
        (b"\n\nab\n\n", 4, 2),
    ],
)
def test_a_file_is_summed_up(file, data, lines, longest):
    assert reading.read_file(file(data)) == {
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
        "lines": lines,
        "longest": longest,
        "compressed": len(zlib.compress(data)),
    }


@given(text=st.text(alphabet="aé\n", max_size=40), chunk=st.integers(1, 5))
def test_where_the_pieces_end_changes_nothing(tmp_path_factory, text, chunk):
    path = tmp_path_factory.mktemp("pieces") / "file"
    path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_CHUNK", chunk)
        found = reading.read_file(str(path))
    lines = text.split("\n")
    assert found["lines"] == len(lines) - (not lines[-1])
    assert found["longest"] == max(map(len, lines))
    assert found["sha256"] == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("data", [b"\xff", b"ok\n\xc3", b"\x80"])
def test_what_isnt_utf8_fails(file, data):
    with pytest.raises(UnicodeDecodeError):
        reading.read_file(file(data))


def test_the_tree_is_its_regular_files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("x")
    (tmp_path / "top").write_text("y")
    for name in ("__pycache__", "site-packages"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "z").write_text("z")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "around").symlink_to(tmp_path)
    found = tree.files(tmp_path)
    assert [Path(file.path).name for file in found] == ["x.py", "nowhere", "top"]
    assert [file.mark is None for file in found] == [False, True, False]


def test_a_name_that_isnt_utf8_travels_as_bytes(tmp_path):
    raw = os.fsencode(tmp_path) + b"/n\xe4me"
    Path(os.fsdecode(raw)).write_text("x\n")
    (file,) = tree.files(tmp_path)
    path = tree.sendable(file.path)
    assert path == raw
    assert codec.decode(codec.encode((path,), {})) == ((raw,), {})
    assert reading.read_file(path)["lines"] == 1
    assert tree.sendable("/ä") == "/ä"


def test_pythons_library_has_thousands_of_files():
    assert len(tree.files(tree.standard_library())) > 1000
