"""PACK-01: with warnings as errors, on every Python that is here, in our own processes too: each way to start one.

What commands do once they are imported, the other tests here show with warnings as errors on this Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.cli.conftest import ROOT
from tests.cli.test_help import PATHS

NEEDED = "import click, croniter, hiredis, msgpack, redis, rich, structlog, sys; assert sys.version_info >= (3, 11)"
HELPS = f"""
from click.testing import CliRunner
from taskq.cli.main import cli
for words in {PATHS!r}:
    told = CliRunner().invoke(cli, [*words, "--help"])
    assert told.exit_code == 0, (words, told.output)
"""
COMMANDS = [
    ("enqueue", "shop.add", "1", "2", "--queue", "default"),
    ("dispatch", "--count", "3", "--delay", "1", "--fail-rate", "0"),
    ("worker", "shop", "--burst", "--log-level", "warning"),
    ("job", "list"),
    ("doctor",),
]


def others() -> list[str]:
    """Pythons besides this one that have what taskq needs."""
    found = {shutil.which(f"python3.{minor}") for minor in range(11, 20)} - {None, sys.executable}
    return [
        path
        for path in sorted(path for path in found if path)
        if subprocess.run([path, "-c", NEEDED], check=False, capture_output=True, timeout=60).returncode == 0
    ]


@pytest.mark.timeout(300)
def test_no_command_warns(folder, server_url, namespace):
    place = {"TASKQ_URL": server_url, "TASKQ_NAMESPACE": namespace}
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **place}
    for python in [sys.executable, *others()]:
        for words in [("-c", HELPS), *(("-m", "taskq.cli", *command) for command in COMMANDS)]:
            ran = subprocess.run(
                [python, *words], check=False, cwd=folder, env=environ, capture_output=True, text=True, timeout=120
            )
            told = f"{python} {words}\n{ran.stdout}\n{ran.stderr}"
            assert ran.returncode == 0, told
            assert "Warning" not in ran.stderr, told
