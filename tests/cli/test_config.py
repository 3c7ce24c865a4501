"""`taskq config` and `taskq version`."""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

from taskq.cli.main import cli


def config(*words, **environ):
    result = CliRunner().invoke(cli, ["config", *words], env=environ)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "configured.py").write_text('from taskq import TaskQ\napp = TaskQ("redis://db/1", lease="9s")\n')
    (tmp_path / "broken_one.py").write_text("raise RuntimeError('not\\x1b[31m today')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("configured", None)


def test_each_value_says_where_it_comes_from():
    said = json.loads(config("--json", "--namespace", "shop", TASKQ_URL="redis://db:6379/2", TASKQ_LEASE="10s"))
    assert said["url"] == {"value": "redis://db:6379/2", "source": "environment TASKQ_URL"}
    assert said["namespace"] == {"value": "shop", "source": "flag --namespace"}
    assert said["lease"] == {"value": 10, "source": "environment TASKQ_LEASE"}
    assert said["deadline"] == {"value": 5, "source": "default"}


def test_json_has_the_values_own_types():
    """Durations in seconds and sizes in bytes, as in a job's JSON."""
    said = json.loads(config("--json", TASKQ_LEASE="4500ms", TASKQ_MAX_PAYLOAD="2KiB"))
    assert {name: each["value"] for name, each in said.items()} == {
        "url": "redis://localhost:6379/0", "namespace": "taskq", "include": [], "lease": 4.5, "deadline": 5,
        "max_payload": 2048, "unknown_grace": 3600, "wait_replicas": 0, "app": None,
        "retention": {
            "completed": 86400, "failed": 1_209_600, "cancelled": 1_209_600, "max_completed": 10_000,
            "max_failed": 100_000,
        },
    }  # fmt: skip


def test_a_variable_that_nothing_reads_is_told():
    slips = {
        "TASKQ_LEESE": "9s",
        "TASKQ_INCLUDE": "shop",
        "TASKQ_ZZZ": "1",
        "TASKQ_SERVER_BINARY": "x",
        "TASKQ_URL": "",
    }
    for words in ((), ("--json",)):
        told = CliRunner().invoke(cli, ["config", *words], env=slips)
        assert told.exit_code == 0
        lines = [line for line in told.stderr.splitlines() if "TASKQ_TEST_" not in line]
        assert lines == [
            "TASKQ_INCLUDE is set, and no setting is read from it: give it in code, as TaskQ(include=…)",
            "TASKQ_LEESE is set, and no setting is read from it (did you mean TASKQ_LEASE?)",
            "TASKQ_ZZZ is set, and no setting is read from it",
        ]
        assert "LEESE" not in told.stdout


def test_passwords_are_never_printed():
    for words in ((), ("--json",)):
        assert "geheim" not in config(*words, "--url", "redis://me:geheim@db/0")


def test_an_app_adds_what_its_code_says(project):
    said = json.loads(config("configured", "--json", "--namespace", "x", TASKQ_URL="redis://ignored/0"))
    assert said["url"] == {"value": "redis://db/1", "source": "argument"}
    assert said["lease"] == {"value": 9, "source": "argument"}
    assert said["namespace"]["source"] == "flag --namespace"
    assert said["app"] == {"value": "configured", "source": "argument"}
    said = json.loads(config("configured", "--json", TASKQ_APP="another"))
    assert said["app"] == {"value": "configured", "source": "argument"}
    said = json.loads(config("--json", TASKQ_APP="configured"))
    assert said["app"] == {"value": "configured", "source": "environment TASKQ_APP"}
    assert said["lease"]["value"] == 9


@pytest.mark.parametrize(
    "app, told",
    [
        ("nowhere", "there is no module 'nowhere' here"),
        ("configured:nope", "module 'configured' has no 'nope': write configured:app"),
        ("broken_one", "broken_one.py:1"),
    ],
)
def test_an_app_that_cant_be_loaded_is_one_line(project, app, told):
    result = CliRunner().invoke(cli, ["config", app])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert told in result.stderr
    assert "\x1b" not in result.stderr


def test_version():
    runner = CliRunner()
    assert runner.invoke(cli, ["version"]).stdout.startswith("taskq 0.1.0 (Python 3.")
    assert json.loads(runner.invoke(cli, ["version", "--json"]).stdout)["version"] == "0.1.0"
