"""The package itself: what the wheel holds, what it says of itself, and that the scripts are found either way."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIND_LUA = "from taskq import scripts; print(scripts.folder(), scripts.load('enqueue').sha)"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # With this environment's hatchling: an isolated build would go to an index.
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def names(wheel) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_is_pure_and_named_after_the_distribution(wheel):
    assert wheel.name == "taskq_redis-0.1.0-py3-none-any.whl"


def test_every_module_and_every_script_is_in_the_wheel(names):
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "taskq").rglob("*.py")}
    scripts = {f"taskq/{path.relative_to(ROOT)}" for path in (ROOT / "lua").rglob("*.lua")}
    assert scripts
    assert modules | scripts | {"taskq/py.typed"} <= names


def test_nothing_else_is_in_the_wheel(names):
    assert {name.partition("/")[0] for name in names} == {"taskq", "taskq_redis-0.1.0.dist-info"}


def test_it_says_what_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        said = Parser().parsestr(archive.read("taskq_redis-0.1.0.dist-info/METADATA").decode())
    assert (said["Name"], said["Version"], said["Requires-Python"]) == ("taskq-redis", "0.1.0", ">=3.11")
    assert said["License-Expression"] == "MIT"
    assert set(said.get_all("Provides-Extra")) == {"all", "dev", "embedded", "uvloop"}
    needed = {line.partition(">")[0] for line in said.get_all("Requires-Dist") if "extra ==" not in line}
    assert {name.partition("<")[0] for name in needed} == {
        "click", "croniter", "hiredis", "msgpack", "redis", "rich", "structlog", "tzdata",
    }  # fmt: skip


def test_the_installed_one_has_the_same_version_and_a_command():
    import taskq

    assert metadata.version("taskq-redis") == taskq.__version__ == "0.1.0"
    (command,) = metadata.entry_points(group="console_scripts", name="taskq")
    assert callable(command.load())


def test_the_scripts_are_found_in_a_wheel_and_in_a_checkout(wheel, tmp_path):
    """Inside the package or beside it, and the same ones: one hash, or old and new nodes would not share them."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    installed, installed_sha = find_lua(tmp_path)
    checkout, checkout_sha = find_lua(ROOT)
    assert Path(installed) == tmp_path / "taskq" / "lua"
    assert Path(checkout) == ROOT / "lua"
    assert installed_sha == checkout_sha


def find_lua(place: Path) -> list[str]:
    program = f"import sys; sys.path.insert(0, {str(place)!r}); {FIND_LUA}"
    return subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()


def test_a_producer_loads_neither_redis_nor_the_node_nor_the_command_line():
    heavy = ("redis", "hiredis", "click", "rich", "taskq.node", "taskq.cli", "taskq.connection")
    program = f"import sys, taskq; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
