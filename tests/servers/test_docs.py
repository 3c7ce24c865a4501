"""docs/servers.md lists exactly the permissions that are needed."""

import sys
import tomllib
from pathlib import Path

import pytest

from taskq import Concurrency, TaskQ, scripts
from taskq.connection.needs import CLUSTER, DATABASE, FSCK, LOOKING, REPLICAS, called_by, rules
from tests.matrix import CLIENTS, PYTHONS, SERVERS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "servers.md").read_text()
CALLED = ("enqueue", "register_queue", "task_info", "declare")
PRODUCER = [
    *sorted(set().union(*(called_by(scripts.load(name)) for name in CALLED))),
    *("client|setname", "eval", "evalsha", "multi", "ping"),
]


@pytest.mark.parametrize(
    "user, given", [("taskq", rules("taskq")), ("producer", rules("taskq", PRODUCER))], ids=["node", "producer"]
)
def test_the_users_are_the_documented_ones(user, given):
    assert f"\nACL SETUSER {user} on >PASSWORD {given}\n" in TEXT


def test_what_only_looks_and_what_is_needed_at_times_is_told():
    assert f"`{' '.join(LOOKING)}`" in TEXT
    for commands in (DATABASE, REPLICAS, CLUSTER, FSCK):
        assert f"`{' '.join(f'+{each}' for each in commands)}`" in TEXT


def test_the_documented_producer_can_enqueue(user, namespace):
    app = TaskQ(user(rules(namespace, PRODUCER)).url, namespace=namespace)
    assert app.by_name("a.b", queue="default").enqueue().id
    assert len(app.enqueue_many([app.by_name("a.b", queue="other").call() for _ in range(300)])) == 300
    for most in (1, 2):
        assert app.by_name("a.b", queue="other").using(limits=Concurrency(most, name="x")).enqueue().id
    app.close()


def test_make_matrix_runs_both_ends_of_the_declared_range():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (wanted,) = [each for each in declared if each.startswith("redis")]
    lowest = wanted.removeprefix("redis>=").partition(",")[0]
    assert {"redis-py-oldest": f"redis=={lowest}.0.0", "redis-py-newest": wanted} == CLIENTS


def test_every_server_of_the_matrix_is_named():
    for name in SERVERS:
        product, version = name.split("-")
        assert product in TEXT.lower()
        assert version in TEXT


def test_make_matrix_runs_every_declared_python():
    declared = {
        each.rpartition(" ")[2]
        for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
        if each.startswith("Programming Language :: Python :: ")
    }
    here = ".".join(map(str, sys.version_info[:2]))
    assert {name.removeprefix("python-") for name in PYTHONS} | {here} == declared | {here}
