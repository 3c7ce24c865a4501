"""Streams that whoever starts a command has closed, or cuts: the command does its work, and shows no traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import ROOT


def run(line: str, *place: str) -> subprocess.CompletedProcess[str]:
    """A line of the shell, in which `$@` is taskq and where the server is."""
    words = [sys.executable, "-m", "taskq.cli", *place]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(["sh", "-c", line, "sh", *words], env=environ, text=True, capture_output=True, check=False)


@pytest.fixture
def place(server_url, namespace):
    return ("--url", server_url, "--namespace", namespace)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_command_works_though_a_stream_is_closed(closed, app, place):
    app.by_name("x.y", queue="email").enqueue()
    for words in ("version", "job list", "stats --json", "enqueue a.b -q email"):
        done = run(f'"$@" {words} {closed}', *place)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), words
    assert app.queue("email").counts().available == 2
    asked = run(f'"$@" queue purge email {closed}', *place)
    assert (asked.returncode, "Traceback" in asked.stderr) == (2, False)
    missing = run(f'"$@" job show email:nope {closed}', *place)
    assert (missing.returncode, "Traceback" in missing.stderr) == (1, False)
    assert app.queue("email").counts().available == 2


def test_what_the_system_refuses_is_said_in_its_words(place):
    full = run('"$@" version >/dev/full', *place)
    assert (full.returncode, full.stderr) == (1, "taskq: No space left on device\n")
    folder = run('"$@" server --dir /proc/none --port 0')
    assert (folder.returncode, folder.stderr) == (1, "taskq: /proc/none: No such file or directory\n")


def test_what_is_started_may_print_where_nobody_reads(app, place, folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "loud.py").write_text(
        "from taskq import TaskQ\n"
        "app = TaskQ()\n"
        "@app.task(queue='loud')\n"
        "def shout():\n"
        "    print('heard by nobody', flush=True)\n"
        "    return 1\n"
    )
    job = app.by_name("loud.shout", queue="loud").enqueue()
    done = run('"$@" worker loud --burst >&- 2>&-', *place)
    assert done.returncode == 0
    assert job.result(timeout=10) == 1
