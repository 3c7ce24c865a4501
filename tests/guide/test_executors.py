"""docs/executors.md is run, not believed: each program prints what its comments say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = re.compile(r"^```python\n# (\w+)\.py[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAMS = dict(_PROGRAM.findall((ROOT / "docs" / "executors.md").read_text(encoding="utf-8")))

SAID = {
    "render": ["render 1"],
    "offers": ["1 True", "True", "True", "False", "available", "available 0", "available"],
    "dispatch": ["True duplicate", "bound, and its job lives", "False", "False", "0"],
}


@pytest.mark.parametrize("name", SAID)
def test_a_program_of_the_page_prints_what_it_says(name, server_url, namespace):
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAMS[name]],
        env=os.environ | {"TASKQ_URL": server_url, "TASKQ_NAMESPACE": namespace, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == SAID[name]


def test_every_program_is_run():
    assert _PROGRAMS.keys() == SAID.keys()
