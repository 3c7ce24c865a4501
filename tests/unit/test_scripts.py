"""The Lua files of a process are all of one moment, whatever is installed under it afterwards."""

import re
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


@pytest.mark.parametrize("name", scripts.names())
def test_what_a_script_uses_is_sent_and_nothing_else(name: str) -> None:
    source = scripts.load(name).source
    defined = set(re.findall(r"^(?:local )?function ([\w.]+)\(", source, re.MULTILINE))
    wrapped = set(re.findall(r"^(\w+\.\w+) = \w+\(function\(", source, re.MULTILINE))  # sent in any case
    libraries = {each.partition(".")[0] for each in defined if "." in each} - {"redis"}  # pcall is the server's own
    used = {f"{of}.{what}" for of, what in re.findall(r"\b(\w+)\.(\w+)\(", source) if of in libraries}
    assert used <= defined | wrapped
    assert not [each for each in defined if source.count(each) == 1]
