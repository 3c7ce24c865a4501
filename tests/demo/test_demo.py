"""`taskq demo` as a real program, on a small tree that has everything that goes wrong in life."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from tests.family import children, gone
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
FILES = 400
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "tree"
    place.mkdir()
    for at in range(FILES - 5):
        (place / f"{at}.txt").write_text(f"line {at}\n" * (at * 37 % 3000))
    (place / "link").symlink_to(place / "gone")
    (place / "binary").write_bytes(b"\xff\xfe" * 1000)
    (place / "half").write_bytes("ä".encode()[:1])
    (place / "empty").write_bytes(b"")
    Path(os.fsdecode(os.fsencode(place) + b"/n\xe4me")).write_text("x")
    return place


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    begun: list[subprocess.Popen[str]] = []

    def run(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "taskq.cli", "demo", *words],
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        begun.append(process)
        return process

    yield run
    for process in begun:
        process.kill()
        process.communicate()


def test_it_loses_nothing_and_says_so(start, folder, tmp_path):
    process = start(str(folder))
    out, told = process.communicate(timeout=60)
    assert process.returncode == 0, out + told
    assert f"{FILES} files" in out
    assert "lost 0  wrong 0" in out.splitlines()
    assert f"{FILES - 3} files read, 3 unreadable or no UTF-8" in out
    assert re.search(r"^rate [\d,]+ jobs/s", out, re.MULTILINE)
    retries = int(re.search(r"^retries ([\d,]+)$", out, re.MULTILINE)[1].replace(",", ""))
    assert retries >= 6  # three files, two more attempts each, and what the kill cut short
    assert "with SIGKILL" in out
    assert re.search(r"the killed worker held \d+ jobs", out)
    assert "next:\n  taskq demo --keep" in out
    assert "jobs  400 of 400" in out
    assert told == ""
    assert list(tmp_path.glob("taskq-*")) == []


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are read from /proc")
@pytest.mark.parametrize("keep", [(), ("--keep",)])
def test_killed_it_leaves_no_process_behind(start, folder, keep):
    process = start(str(folder), *keep)
    family = wait_until(lambda: len(found := children(process.pid)) >= 4 + len(keep) and found, timeout=30)
    process.kill()
    process.communicate(timeout=30)
    wait_until(lambda: all(gone(pid) for pid in family))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are read from /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("keep", [(), ("--keep",)])
def test_interrupted_it_leaves_nothing_behind(start, folder, tmp_path, number, keep):
    process = start(str(folder), *keep)
    # A server (with its keeper, if it may stay), a node, two workers.
    family = wait_until(lambda: len(found := children(process.pid)) >= 4 + len(keep) and found, timeout=30)
    process.send_signal(number)
    out, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "lost" not in out
    assert told.strip() == "interrupted"
    wait_until(lambda: all(gone(pid) for pid in family))
    assert list(tmp_path.glob("taskq-*")) == []


def test_keep_leaves_the_server_up_and_says_how_to_stop_it(start, folder):
    process = start(str(folder), "--keep")
    out, told = process.communicate(timeout=60)
    assert process.returncode == 0, out + told
    url, pid = re.search(r"the server stays up at (\S+); stop it with: kill (\d+)", out).groups()
    try:
        with redis.Redis.from_url(url) as client:
            assert client.zcard("taskq:{files}:completed") == FILES - 3
        assert f"export TASKQ_URL={url}" in out
        shown = re.search(r"taskq job show (\S+)", out)[1]
        done = subprocess.run(
            [sys.executable, "-m", "taskq.cli", "--url", url, "job", "show", shown],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        assert "demo.read" in done.stdout
    finally:
        os.kill(int(pid), signal.SIGTERM)
    wait_until(lambda: gone(int(pid)))
    with redis.Redis.from_url(url) as client, pytest.raises(redis.ConnectionError):
        client.ping()


def test_an_empty_folder_is_one_line(start, tmp_path):
    (tmp_path / "nothing").mkdir()
    process = start(str(tmp_path / "nothing"))
    out, told = process.communicate(timeout=30)
    assert (process.returncode, out) == (1, "")
    assert told.startswith("taskq: there is no file under")


def test_without_a_server_program_it_says_what_to_install(start, folder, monkeypatch):
    monkeypatch.setenv("TASKQ_SERVER_BINARY", "no-such-program")
    for keep in ((), ("--keep",)):
        process = start(str(folder), *keep)
        _, told = process.communicate(timeout=30)
        assert process.returncode == 1
        assert "TASKQ_SERVER_BINARY" in told
        assert told.count("\n") == 1


SPOILED = """
import sys
from taskq.cli.main import main
from taskq.demo import run

real = run._records

def spoiled(place, jobs):
    records = real(place, jobs)
    records[3] = {"lost": None, "wrong": records[4]}[sys.argv[2]]
    return records

run._records = spoiled
main(["demo", sys.argv[1]])
"""


@pytest.mark.parametrize("broken, told", [("lost", "lost 1  wrong 0"), ("wrong", "lost 0  wrong 1")])
def test_a_number_that_differs_is_exit_code_1(folder, broken, told):
    """The verdict itself, with the run's records spoiled before they are compared."""
    words = [sys.executable, "-c", SPOILED, str(folder), broken]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1, done.stderr
    assert told in done.stdout.splitlines()
    assert "expected {'sha256'" in done.stdout
