"""Help: every command has an example, takes the server's options, and costs little to be told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from taskq.cli.main import COMMANDS, cli
from taskq.cli.options import Noun

PLACE = ("--url", "redis://elsewhere:1/0", "--namespace", "other")


def paths() -> Iterator[tuple[str, ...]]:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        yield (name,)
        if isinstance(command, Noun):
            yield from ((name, verb) for verb in command.list_commands(context))


PATHS = list(paths())
READING = [("job", "list"), ("job", "show"), ("queue", "list"), ("stats",), ("config",), ("version",)]


def help_of(*words: str) -> str:
    result = CliRunner().invoke(cli, [*words, "--help"])
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize("path", [(), *PATHS], ids=" ".join)
def test_every_help_has_an_example_of_that_command(path):
    _, heading, examples = help_of(*path).rpartition("Example")
    assert heading
    assert f"  {' '.join(('taskq', *path))}" in examples or f" taskq {' '.join(path)}" in examples


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_the_servers_options_stand_before_or_after_the_verb(path):
    help_of(*PLACE, *path)
    help_of(*path, *PLACE)
    assert ("--url" in help_of(*path)) == (path != ("version",)), "which needs no server"


@pytest.mark.parametrize("path", READING, ids=" ".join)
def test_what_reads_has_json(path):
    assert "--json" in help_of(*path)


def test_the_list_of_commands_says_what_the_commands_say():
    context = click.Context(cli)
    listed = help_of()
    for name in COMMANDS:
        assert cli.get_command(context, name).name == name
        assert f"  {name} " in listed


def test_help_loads_no_command():
    program = (
        "import sys\n"
        "from taskq.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = ('redis', 'rich', 'msgpack', 'structlog', 'asyncio', 'taskq.app', 'taskq.node', 'taskq.cli.job')\n"
        "print('loaded', [name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("loaded []\n")


@pytest.mark.parametrize("module", ["taskq", "taskq.cli"])
def test_it_runs_as_a_module_too(module):
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == "taskq 0.1.0\n"
