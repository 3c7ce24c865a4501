"""A task's name means the same everywhere; what no worker could import is told apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

from taskq.importing import load_attribute, load_modules, module_name, origin, task_name, why_unimportable

ROOT = Path(__file__).parents[2]
SCRIPT = """
from taskq.importing import task_name, why_unimportable
def send(): ...
if __name__ == "__main__":
    print(task_name(send), why_unimportable(send, named=False))
"""


def at_module_level(): ...


class Holder:
    @staticmethod
    def method(): ...


def python(*args, cwd, stdin=None):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *args], cwd=cwd, env=environment, input=stdin, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def shop(tmp_path):
    """shop/ with a plain script and shop/pack/ with a package."""
    for path in ("scripts/mail.py", "pack/__init__.py", "pack/sub/__init__.py", "pack/sub/mail.py", "odd-name/mail.py"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("" if path.endswith("__init__.py") else SCRIPT)
    return tmp_path


def test_a_name_is_module_and_qualname():
    assert task_name(at_module_level) == f"{__name__}.at_module_level"
    assert task_name(Holder.method) == f"{__name__}.Holder.method"


@pytest.mark.parametrize(
    "args,folder,name",
    [
        (["-m", "pack.sub.mail"], ".", "pack.sub.mail.send"),
        (["pack/sub/mail.py"], ".", "pack.sub.mail.send"),
        (["sub/mail.py"], "pack", "pack.sub.mail.send"),  # a package's name does not depend on where one stands
        (["scripts/mail.py"], ".", "scripts.mail.send"),
        (["mail.py"], "scripts", "mail.send"),
        (["odd-name/mail.py"], ".", "mail.send"),
    ],
)
def test_main_is_resolved_to_what_a_worker_imports(shop, args, folder, name):
    assert python(*args, cwd=shop / folder) == f"{name} None"


def test_a_child_of_multiprocessing_names_it_as_its_parent(shop):
    (shop / "main.py").write_text(
        "import multiprocessing\n"
        "from taskq.importing import task_name\n"
        "def send(): ...\n"
        "def show(): print(task_name(send), flush=True)\n"
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context('spawn').Process(target=show)\n"
        "    child.start(); child.join()\n"
    )
    assert python("main.py", cwd=shop) == "main.send"


@pytest.mark.parametrize("args", [["-c", SCRIPT], ["-"]])
def test_what_was_typed_in_can_not_be_imported(shop, args):
    assert "it was typed into a REPL or notebook" in python(*args, cwd=shop, stdin=SCRIPT)


def test_nested_functions_and_lambdas_need_a_name():
    def nested(): ...

    assert "inside another function" in why_unimportable(nested, named=False)
    assert "a lambda has no name" in why_unimportable(lambda: 0, named=False)
    assert why_unimportable(nested, named=True) is None
    assert why_unimportable(at_module_level, named=False) is None


def test_a_module_that_is_not_main_keeps_its_name():
    assert module_name("os.path") == "os.path"


def test_the_same_file_and_qualname_is_the_same_function():
    def make():
        def inner(): ...

        return inner

    assert origin(make()) == origin(make())
    assert origin(make()) != origin(at_module_level)


@pytest.fixture
def importable(shop, monkeypatch):
    monkeypatch.syspath_prepend(str(shop))
    monkeypatch.chdir(shop)
    yield shop
    for name in [name for name in sys.modules if name.partition(".")[0] in {"pack", "wide", "broken"}]:
        del sys.modules[name]


def test_include_takes_a_star_for_one_part_of_a_name(importable):
    for path in ("wide/__init__.py", "wide/a/__init__.py", "wide/a/tasks.py", "wide/b/__init__.py", "wide/b/tasks.py"):
        file = importable / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (importable / "wide/c").mkdir()
    (importable / "wide/c/__init__.py").touch()
    loaded = load_modules(("pack.sub.mail", "wide.*.tasks"))
    assert [module.__name__ for module in loaded] == ["pack.sub.mail", "wide.a.tasks", "wide.b.tasks"]


def test_plain_modules_beside_the_packages_of_a_pattern_are_passed_over(importable):
    for path in ("wide/__init__.py", "wide/a/__init__.py", "wide/a/tasks.py"):
        file = importable / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (importable / "wide/plain.py").write_text("raise AssertionError('no pattern names this module')")
    assert [module.__name__ for module in load_modules(("wide.*.tasks",))] == ["wide.a.tasks"]


def test_a_pattern_that_matches_nothing_is_a_slip(importable):
    with pytest.raises(ImportError, match=r"include='pack\.\*\.tasks' matches no module"):
        load_modules(("pack.*.tasks",))


def test_an_attribute_is_found_by_module_and_name(importable):
    assert load_attribute("pack.sub.mail:send", "app", FunctionType).__name__ == "send"
    assert load_attribute("pack.sub.mail", "send", FunctionType).__name__ == "send"


@pytest.mark.parametrize(
    "path,says",
    [
        ("pack/sub/mail.py", "is a file: give the module's name, such as 'pack.sub.mail'"),
        ("nowhere.mail", "there is no module 'nowhere' here"),
        ("pack.nowhere", r"there is no module 'pack\.nowhere' here"),
        ("pack.sub.mail", "has no 'app': write pack.sub.mail:[a-z_]+ or pack"),
        ("pack.sub.mail:other", "has no 'other'"),
        ("pack mail", "names no module"),
    ],
)
def test_what_is_not_there_is_said_with_what_to_write(importable, path, says):
    with pytest.raises(ImportError, match=says):
        load_attribute(path, "app", FunctionType)


def test_an_error_inside_the_module_is_not_hidden(importable):
    (importable / "broken.py").write_text("import no_such_library")
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        load_attribute("broken", "app", FunctionType)
