"""The tests run on the server they were told of, in each of their processes: else `make matrix` would say nothing."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from taskq.embedded import find_binary

ROOT = Path(__file__).parents[2]


def test_on_the_server_told(embedded, server_binary):
    assert embedded.binary == (server_binary or find_binary())


def test_each_process_of_the_tests_runs_on_it(tmp_path):
    told, started = tmp_path / "some-server", tmp_path / "started"
    told.write_text(f'#!/bin/sh\necho >>{shlex.quote(str(started))}\nexec {shlex.quote(find_binary())} "$@"\n')
    told.chmod(0o755)
    words = (
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
        f"{__file__}::{test_on_the_server_told.__name__}",
    )
    environment = os.environ | {"TASKQ_TEST_SERVER": str(told), "TASKQ_TEST_CLUSTER": "0"}
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout
    assert started.exists(), done.stdout
