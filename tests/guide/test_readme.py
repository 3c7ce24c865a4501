"""README is run, not believed: its program, its session and its commands, against a real server and a real worker."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TASKQ = [sys.executable, "-m", "taskq.cli"]


def blocks(kind: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [body for language, body in _BLOCK.findall(text) if language == kind]


@pytest.fixture
def shop(tmp_path: Path, server_url: str, settings) -> dict[str, str]:
    """The environment in which README's shop.py can be imported, on the tests' server."""
    (tmp_path / "shop.py").write_text(blocks("python")[0], encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    return os.environ | {"TASKQ_URL": server_url, "TASKQ_NAMESPACE": settings.namespace, "PYTHONPATH": paths}


@pytest.fixture
def worker(shop: dict[str, str], tmp_path: Path):
    process = subprocess.Popen([*_TASKQ, "worker", "shop"], env=shop, cwd=tmp_path, stderr=subprocess.DEVNULL)
    yield process
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=40) == 0


def test_the_quick_start_and_the_commands_do_what_they_say(shop, worker, tmp_path, server_url, settings) -> None:
    session = subprocess.run(
        [sys.executable, "-c", blocks("python")[1]],
        env=shop,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert session.returncode == 0, session.stderr
    first, total = session.stdout.splitlines()
    assert re.fullmatch(r"default:[0-9a-f-]{36} 5", first)
    assert total == "999000"

    with redis.Redis.from_url(server_url, decode_responses=True) as client:
        email = f"{settings.namespace}:{{email}}:completed"
        assert wait_until(lambda: client.zcard(email) == 1, timeout=20)
        for line in next(body for body in blocks("sh") if "redis-cli" in body).splitlines():
            words = shlex.split(line.replace("taskq:{", settings.namespace + ":{"))
            assert words[0] == "redis-cli"
            answer = client.execute_command(*words[1:])
            assert answer or "leases" in line or "body" in line, f"README shows {line}, which answers nothing"

    for line in next(body for body in blocks("sh") if "taskq enqueue" in body).splitlines():
        done = subprocess.run(
            [*_TASKQ, *shlex.split(line)[1:]],
            env=shop,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"
        assert done.stdout, f"{line} prints nothing"
        if "--wait" in line:
            assert done.stdout.strip() == "5"


def test_the_picture_of_states_is_drawn_from_the_table() -> None:
    from taskq.state import picture

    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- states: begin -->\n```mermaid\n(.*?)```\n<!-- states: end -->", text, re.DOTALL)
    assert shown, "ARCHITECTURE.md has lost its picture"
    assert shown.group(1).strip() == picture().strip()
