"""`taskq dev APP [-- COMMAND…]`: a server, a worker that starts again when a source file changes, and your program."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import click

from taskq.cli import child, output, sources
from taskq.cli.options import Verb, flags
from taskq.cli.refusal import WrongUsage, refuse
from taskq.cli.serve import app_argument, chosen_app, node_options, node_options_of
from taskq.cli.signals import handled

_LOOK_S = 0.4


class _Apart(Verb):
    """What stands after `--` is the command, whether APP stands before it or in the environment."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, without what comes after `--`."""
        cut = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(ctx, args[:cut])
        ctx.params["command"] = (*ctx.params["command"], *args[cut + 1 :])
        return rest


@click.command(
    cls=_Apart,
    examples=(
        "taskq dev shop.app",
        "taskq dev shop.app -w 2 -- flask --app shop.web run",
    ),
)
@app_argument
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]")
@click.option("--dir", "folder", type=click.Path(file_okay=False, path_type=Path), help="Keep the data here [nowhere].")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The server's port [any free one].")
@node_options("5")
def dev(*, app: str | None, command: tuple[str, ...], folder: Path | None, port: int, **given: Any) -> None:
    """Develop APP (or that of TASKQ_APP): an embedded server, a worker, and COMMAND with TASKQ_URL; all end together.

    When a Python file under the current folder changes, the worker starts again. With --url that server is used
    instead of an embedded one.
    """
    app = chosen_app(app)
    node_options_of(flags(), given)  # refuses what is wrong before anything is started
    if "url" in flags().settings and (folder or port):
        raise WrongUsage("--dir and --port are the embedded server's: leave them out, or --url")
    program = shutil.which(command[0]) if command else None
    if command and program is None:
        raise WrongUsage(f"there is no program {command[0]!r}")
    end = threading.Event()
    with contextlib.ExitStack() as things:
        things.enter_context(handled(lambda *_: end.set(), signal.SIGINT, signal.SIGTERM))
        url = flags().settings.get("url") or things.enter_context(_server(folder, port))
        output.note(f"Redis is {_shown(url)}; for another terminal: export TASKQ_URL={_shown(url)}")
        environ = {**os.environ, "TASKQ_URL": url, **_namespace()}
        arguments = _worker_arguments(app, url, given)
        with _Node(arguments) as node, _companion(command, program, environ) as companion:
            code = _watch(node, companion, end)
    click.get_current_context().exit(code)


@contextlib.contextmanager
def _server(folder: Path | None, port: int) -> Iterator[str]:
    from taskq.embedded import Embedded, PortTaken

    server = Embedded(folder, port)
    try:
        server.start()
    except PortTaken:
        refuse(f"port {port} is taken: leave --port out for any free one")
    with server:
        yield server.url


def _shown(url: str) -> str:
    from taskq.settings import mask_url

    return mask_url(url)


def _namespace() -> dict[str, str]:
    namespace = flags().settings.get("namespace")
    return {} if namespace is None else {"TASKQ_NAMESPACE": namespace}


def _worker_arguments(app: str, url: str, given: dict[str, Any]) -> list[str]:
    said = {
        "--url": url,
        "--namespace": flags().settings.get("namespace"),
        "--log-format": flags().log.get("format"),
        "--log-level": flags().log.get("level"),
        # All of a node's options: one that is added to them is handed on too.
        **{
            each.opts[-1]: given[each.name] for each in click.get_current_context().command.params if each.name in given
        },
    }
    words = ["worker", app]
    for name, value in said.items():
        for each in value if isinstance(value, tuple) else (value,):
            if each is not None:
                words += [name, str(each)]
    return words


class _Node:
    """`taskq worker` as a child, started again at will. It may have ended: an app that can't be imported ends it."""

    def __init__(self, arguments: list[str]) -> None:
        self._command = child.taskq(*arguments)
        self._process = child.start(self._command)
        self._told = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        child.stop(self._process, patience_s=60.0)

    def restart(self) -> None:
        """End it within its grace, and start it with the code as it is now."""
        child.stop(self._process, patience_s=60.0)
        self._process = child.start(self._command)
        self._told = False

    def look(self) -> None:
        """Say it once if it has ended by itself."""
        if self._process.poll() is not None and not self._told:
            self._told = True
            output.note("the worker has ended; it starts again when a source file changes")


@contextlib.contextmanager
def _companion(
    command: tuple[str, ...], program: str | None, environ: dict[str, str]
) -> Iterator[subprocess.Popen[bytes] | None]:
    """COMMAND: it is the user's, so it may read the terminal, and hears Ctrl-C itself."""
    if program is None:
        yield None
        return
    process = child.start([program, *command[1:]], environ=environ, theirs=True)
    try:
        yield process
    finally:
        child.stop(process, patience_s=5.0)


def _watch(node: _Node, companion: subprocess.Popen[bytes] | None, end: threading.Event) -> int:
    """Until a signal or COMMAND's end; gives the exit code, COMMAND's own if it ended by itself."""
    before = sources.stamp(Path.cwd())
    while not end.wait(_LOOK_S):
        if companion is not None and companion.poll() is not None:
            return companion.returncode if companion.returncode >= 0 else 128 - companion.returncode
        node.look()
        after = sources.stamp(Path.cwd())
        found = sources.changed(before, after)
        if found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            output.note(f"{os.path.relpath(found[0])} changed{more}: the worker starts again")
            before = after
            node.restart()
    return 0
