"""A worker's complaint about APP names the user's file and line first."""

import sys

import pytest

from taskq import Backoff, Concurrency, TaskQ, Unique
from taskq.app import load_app
from taskq.node.worker.load import complaint, greeting


@pytest.fixture
def module(tmp_path, monkeypatch):
    """`module(text)` writes a module in the current folder; gives its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    written = []

    def module(text):
        name = f"shop_{len(written)}_{tmp_path.name.replace('-', '_')}"
        (tmp_path / f"{name}.py").write_text(text)
        written.append(name)
        return name

    yield module
    for name in written:
        sys.modules.pop(name, None)


def refused(path):
    try:
        load_app(path).load()
    except BaseException as error:  # noqa: BLE001 (whatever a module raises)
        return complaint(path, error).splitlines()
    raise AssertionError


def test_a_missing_import_is_told_with_its_line(module):
    name = module("from taskq import TaskQ\napp = TaskQ()\nimport not_there_at_all\n")
    assert refused(name) == [
        f"can't load {name}: ModuleNotFoundError: No module named 'not_there_at_all'",
        f"  {name}.py:3 in <module>: import not_there_at_all",
    ]


def test_a_syntax_error_is_told_with_its_line(module):
    name = module("x = (\n")
    first, second = refused(name)
    assert "SyntaxError" in first
    assert second.startswith(f"  {name}.py:1")


def test_a_bad_option_shows_the_users_line_before_ours(module):
    name = module("from taskq import TaskQ\napp = TaskQ()\n@app.task(max_atempts=3)\ndef f(): pass\n")
    told = refused(name)
    assert "did you mean 'max_attempts'" in told[0]
    assert told[1].startswith(f"  {name}.py:3")


def test_a_module_that_exits_is_a_mistake_like_any_other(module):
    name = module("raise SystemExit(3)\n")
    assert refused(name)[0] == f"can't load {name}: SystemExit: 3"


@pytest.mark.parametrize(
    "text,attribute,why",
    [
        ("app = 5\n", "", "is a int, not a TaskQ: it has no TaskQ"),
        ("", "", "has no 'app': it has no TaskQ, write module:attribute of one"),
        ("from taskq import TaskQ\njobs = TaskQ()\nmore = TaskQ()\n", "", ":jobs or shop_"),
        ("from taskq import TaskQ\napp = TaskQ(include=['shop_nowhere.*'])\n", "", "matches no module"),
    ],
)
def test_what_is_no_app_is_told_in_one_line(module, text, attribute, why):
    told = refused(module(text) + attribute)
    assert why in told[0]


def test_no_such_module(module):
    assert refused("shop_nowhere")[0].startswith("can't load shop_nowhere: there is no module 'shop_nowhere' here")


def test_flags_are_stronger_than_the_code(module):
    name = module("from taskq import TaskQ\napp = TaskQ(url='redis://code/0', namespace='code')\n")
    app = load_app(name, {"url": "redis://flag/0"})
    assert (app.settings.url, app.settings.namespace) == ("redis://flag/0", "code")


def test_the_greeting_tells_what_the_node_must_know():
    app = TaskQ(namespace="n")

    @app.task(name="mail", queue="email", backoff=Backoff.fixed("5s", jitter=False), timeout=5)
    async def mail(to: str, *, subject="hi") -> "int":
        pass

    @app.task(name="once", max_attempts=1, priority=5, tags=["x"], meta={"k": "v"}, keep="1h", delay=0.5, expires="1d")
    async def once():
        pass

    @app.task(name="count", backoff=lambda _attempt, _error: 1)
    def count():
        pass

    class Rude:
        def __repr__(self):
            raise SystemError("no")

    @app.task(name="rude")
    def rude(x=Rude()):  # noqa: B008 (a user's own)
        pass

    hello = greeting(app, [])
    assert hello.tasks["rude"]["parameters"] == ""
    assert hello.queues == ["default", "email"]
    assert hello.settings["namespace"] == "n"
    assert hello.tasks["mail"] == {
        "queue": "email",
        "executor": "async",
        "backoff": "fixed:5000:86400000:exact",
        "parameters": "(to: str, *, subject='hi') -> int",
        "settings": {"backoff": "fixed:5000:86400000:exact", "timeout": "5s", "hard_timeout": "15s"},
        "options": {"order": ["to"]},
    }
    assert hello.tasks["rude"]["options"] == {"order": ["x"]}, "whatever stands in the parameters"
    assert hello.tasks["count"] == {
        "queue": "default", "executor": "thread", "backoff": None, "parameters": "()",
        "settings": {"backoff": "a function"},
    }  # fmt: skip
    assert hello.tasks["once"]["options"] == {
        "max_attempts": 1, "priority": 5, "tags": ("x",), "meta": {"k": "v"}, "keep": "1h", "delay": "500ms",
        "expires": "1d",
    }  # fmt: skip
    assert greeting(app, ["email"]).queues == ["email"]


def test_keys_go_with_the_options_and_where_to_find_them():
    app = TaskQ()

    @app.task(name="mail", fair="tenant", limits=Concurrency(2, by="tenant"), unique=Unique(by=lambda tenant, n: n))
    async def mail(tenant, n=1):
        pass

    hello = greeting(app, [])
    assert hello.tasks["mail"]["options"] == {
        "fair": "tenant", "limits": [{"n": 2, "by": "tenant"}], "order": ["tenant", "n"],
        "unique": {"by": False, "until": "finished", "scope": "task", "on_conflict": "existing"},
    }  # fmt: skip
    assert hello.limits == {"default": {"mail": "c=2"}}
