"""The Lua files of a process are all of one moment, whatever is installed under it afterwards."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from taskq import scripts


def test_what_is_read_first_is_what_is_used_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lua = tmp_path / "lua"
    shutil.copytree(scripts.folder(), lua)
    monkeypatch.setattr(scripts, "folder", lambda: lua)
    scripts.read.cache_clear()
    scripts.load.cache_clear()
    try:
        scripts.load("enqueue")
        shutil.rmtree(lua)
        assert len(scripts.names()) > 30
        for name in scripts.names():
            assert "-- @include" not in scripts.load(name).source
        with pytest.raises(FileNotFoundError, match=r"nothing\.lua"):
            scripts.load("nothing")
    finally:
        scripts.read.cache_clear()
        scripts.load.cache_clear()


def test_importing_reads_no_file() -> None:
    code = "import taskq; from taskq import commands, scripts; print(scripts.read.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "0\n"
