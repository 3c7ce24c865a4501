"""`taskq server`: a Redis server of one's own, in the foreground."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import click

from taskq.cli import output
from taskq.cli.options import Verb, flags, server_options
from taskq.cli.refusal import WrongUsage, refuse
from taskq.cli.signals import handled

_LOOK_S = 0.5


@click.command(
    cls=Verb,
    examples=(
        "taskq server",
        "taskq server --dir ./data --port 6380",
    ),
)
@click.option("--dir", "folder", type=click.Path(file_okay=False, path_type=Path), help="Keep the data here [nowhere].")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=6379, show_default=True, help="On 127.0.0.1; 0 takes a free one."
)
@click.option("--leash", is_flag=True, hidden=True, help="End with stdin, unless it said stay first.")
@server_options
def server(*, folder: Path | None, port: int, leash: bool) -> None:
    """Run a server until Ctrl-C. Its URL is printed on stdout. Without --dir its data ends with it."""
    if "url" in flags().settings:
        raise WrongUsage("this server's URL follows from --port: leave --url out")
    from taskq.embedded import Embedded, PortTaken

    end = threading.Event()
    with handled(lambda *_: end.set(), signal.SIGINT, signal.SIGTERM):
        running = Embedded(folder, port)
        try:
            running.start()
        except PortTaken:
            refuse(f"port {port} is taken: stop what listens there, or give --port 0 for any free one")
        if leash:
            threading.Thread(target=_hold, args=(end,), name="leash", daemon=True).start()
        with running:
            output.put(running.url)
            kept = f"data in {folder}" if folder else "data is kept nowhere: give --dir to keep it"
            output.note(f"{kept}; Ctrl-C stops the server")
            while running.running and not end.wait(_LOOK_S):
                pass
            if not end.is_set():
                log = (folder or Path()) / "server.log"
                refuse("the server has ended by itself" + (f": see {log}" if folder else ""))


def _hold(end: threading.Event) -> None:
    """Whoever started us may die without a word; a server that it wants to leave behind is told so."""
    if sys.stdin.readline() != "stay\n":
        end.set()
