"""`TaskQ`: configuration until first use, no I/O before it, and what importing it costs."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import taskq
from taskq import Options, Retention, TaskQ
from taskq.app import load_app


def at_module_level(): ...


NOWHERE = "redis://127.0.0.1:1/0"


def run_python(code: str) -> str:
    root = str(Path(taskq.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": root}
    )
    return done.stdout.strip()


# --- the package


def test_every_public_name_is_there_and_in_the_list():
    for name in taskq.__all__:
        assert getattr(taskq, name) is not None
    assert set(taskq.__all__) <= set(dir(taskq))
    everything: dict[str, object] = {}
    exec("from taskq import *", everything)  # noqa: S102 (as a user would, in a module)
    assert set(taskq.__all__) <= set(everything)


def test_every_error_is_exported():
    errors = {name for name, value in vars(taskq.errors).items() if isinstance(value, type)}
    assert {name for name in errors if issubclass(getattr(taskq.errors, name), taskq.TaskQError)} <= set(taskq.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Tasks'"):
        taskq.Tasks  # noqa: B018 (the look is what raises)


def test_current_stays_the_function_whoever_imports_its_module():
    assert run_python("import taskq.current, taskq.app; print(type(taskq.current).__name__)") == "function"


def test_neither_importing_nor_declaring_loads_redis_or_what_only_workers_need():
    code = (
        "import sys, taskq; app = taskq.TaskQ()\n"
        "@app.task\ndef f(): ...\n"
        "heavy = {'redis', 'taskq.node', 'taskq.cli', 'structlog', 'click', 'rich', 'croniter'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run_python(code) == "[]"


def test_importing_the_package_alone_loads_next_to_nothing():
    assert run_python("import sys, taskq; print(sorted(m for m in sys.modules if m.startswith('taskq')))") == str(
        ["taskq", "taskq.current", "taskq.errors"]
    )


# --- configuration


def test_the_constructor_does_no_io_and_neither_do_handles():
    app = TaskQ(NOWHERE, deadline=0.2)
    app.job("default:x")
    app.queue("email")
    app.by_name("x").using(delay=1)
    with pytest.raises(taskq.Unavailable):
        app.ping()


def test_an_argument_beats_the_environment_and_a_flag_beats_both(monkeypatch):
    monkeypatch.setenv("TASKQ_NAMESPACE", "environment")
    assert TaskQ().settings.namespace == "environment"
    app = TaskQ(namespace="argument")
    assert app.settings.namespace == "argument"
    app.override(namespace="flag", url=None)
    assert app.settings.namespace == "flag"
    app.configure(namespace="later")
    assert app.settings.namespace == "flag"


def test_configure_keeps_what_it_is_not_given():
    app = TaskQ(namespace="shop", lease="9s", defaults=Options(priority=1))
    app.configure(deadline=2, retention=Retention(completed="1h"), include=(name for name in ["a", "b.*"]))
    app.configure(max_payload="1KiB")
    settings = app.settings
    assert (settings.namespace, settings.lease_ms, settings.deadline_ms, settings.max_payload) == (
        "shop",
        9000,
        2000,
        1024,
    )
    assert (settings.retention.completed_ms, settings.include, app.defaults.priority) == (3_600_000, ("a", "b.*"), 1)


def test_a_value_that_is_refused_changes_nothing():
    app = TaskQ(namespace="shop")
    with pytest.raises(ValueError, match="namespace"):
        app.configure(namespace="Not A Name", lease="9s")
    assert (app.settings.namespace, app.settings.lease_ms) == ("shop", 8000)


def test_after_first_use_the_settings_stay():
    app = TaskQ(NOWHERE)
    app.client  # noqa: B018 (using it is the point)
    with pytest.raises(RuntimeError, match="configure it before its first use"):
        app.configure(namespace="shop")


def test_a_task_declared_before_configure_follows_it():
    app = TaskQ()
    task = app.task(name="x", queue="email")(at_module_level)
    app.configure(namespace="shop", defaults=Options(priority=7))
    job = task.plan().new_job(b"")
    assert (task.plan().q.prefix, job.priority) == ("shop:{email}:", 7)


def test_closing_what_was_never_opened_does_nothing():
    TaskQ().close()


async def test_aclosing_what_was_never_opened_does_nothing():
    await TaskQ().aclose()


# --- loading


@pytest.fixture
def module(monkeypatch):
    made = types.ModuleType("shopapp")
    made.app, made.other, made.number = TaskQ(), TaskQ(), 7
    monkeypatch.setitem(sys.modules, "shopapp", made)
    return made


def test_an_app_is_found_by_module_and_attribute(module):
    assert load_app("shopapp") is module.app
    assert load_app("shopapp:other") is module.other


def test_what_is_no_app_is_refused(module):
    with pytest.raises(ImportError, match="'shopapp:number' is a int, not a TaskQ"):
        load_app("shopapp:number")


def test_load_imports_what_include_names(monkeypatch, tmp_path):
    (tmp_path / "shopmail.py").write_text("loaded = True")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "shopmail", raising=False)
    TaskQ(include=("shopmail",)).load()
    assert sys.modules.pop("shopmail").loaded


def test_calls_are_checked_before_anything_is_sent():
    app = TaskQ(NOWHERE)
    with pytest.raises(TypeError, match="enqueue_many takes calls"):
        app.enqueue_many([("x", 1)])
    with pytest.raises(ValueError, match="exists='maybe' is none"):
        app.enqueue_many([], exists="maybe")
