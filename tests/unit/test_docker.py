"""The container files: valid, and true to what taskq asks of a server. No engine runs here, so nothing is built."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPOSE = shutil.which("docker-compose")


@pytest.mark.skipif(COMPOSE is None, reason="docker-compose is not installed here; CI installs it")
@pytest.mark.parametrize("profile", ["", "valkey"])
def test_compose_accepts_the_file(profile):
    chosen = ["--profile", profile] if profile else []
    done = subprocess.run([COMPOSE, *chosen, "config", "-q"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(COMPOSE is None, reason="docker-compose is not installed here; CI installs it")
def test_valkey_starts_only_when_it_is_asked_for():
    def services(*options: str) -> set[str]:
        command = [COMPOSE, *options, "config", "--services"]
        return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())

    assert services("--profile", "valkey") == {"redis", "worker", "valkey"}
    text = (ROOT / "docker-compose.yml").read_text()
    assert "profiles: [valkey]" in text


def test_the_server_keeps_what_it_accepts():
    text = (ROOT / "docker-compose.yml").read_text()
    words = re.findall(r"- \"?([^\s\"]+)\"?", text)
    for option, value in [
        ("--appendonly", "yes"),
        ("--maxmemory-policy", "noeviction"),
        ("--hash-max-listpack-value", "1024"),
    ]:
        assert words[words.index(option) + 1] == value
    assert "/data" in text
    assert "healthcheck" in text


def test_a_worker_has_an_init_that_reaps_orphans():
    _, _, worker = (ROOT / "docker-compose.yml").read_text().partition("\n  worker:\n")
    assert "\n    init: true\n" in worker


def test_what_the_image_copies_exists_and_is_not_ignored():
    copied = re.findall(r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    sources = {source for line in copied for source in line.split()}
    admitted = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert sources == admitted
    assert all((ROOT / source).exists() for source in sources)
