"""What the demo says at its end: the figures, what the kill cost, and what to type next."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from urllib.parse import urlsplit

from taskq import keys
from taskq.cli.output import one_line
from taskq.demo.app import QUEUE
from taskq.demo.check import Kill, Totals, Verdict
from taskq.demo.show import say
from taskq.record import JobRecord
from taskq.state import State


def figures(verdict: Verdict, records: Sequence[JobRecord | None], *, plain_s: float) -> None:
    """Lost and wrong, then the rate, the retries and the totals."""
    say()
    say(f"lost {verdict.lost}  wrong {verdict.wrong}")
    found = [record for record in records if record is not None]
    seconds = _span_s(found)
    retries = sum(max(0, record.attempt - 1) for record in found)
    rate = f"{len(found) / seconds:,.0f} jobs/s over {seconds:.1f} s" if seconds else "too quick to tell"
    say(f"rate {rate}  (a plain single pass took {plain_s:.1f} s)")
    say(f"retries {retries:,}")
    say(f"totals {_told(verdict.jobs)}")
    if verdict.good:
        say("       the same as in the plain single pass")
    else:
        say(f"plain  {_told(verdict.plain)}")
    if verdict.changed:
        say(f"{verdict.changed:,} files were changed meanwhile and are left out")
    for example in verdict.examples:
        say(f"  {one_line(example)}")


def killed(worker: str | None, kill: Kill | None) -> None:
    """What the kill half way did."""
    if worker is None or kill is None:
        say("no worker was killed: the jobs had ended before there was a moment for it; take a larger folder")
    elif kill.seconds is None:
        say(f"the killed worker held {kill.held} jobs at that moment")
    else:
        say(f"the killed worker held {kill.held} jobs; all ran again {kill.seconds:.2f} s after the kill")


def next_steps(url: str, pid: int | None, namespace: str, records: Sequence[JobRecord | None]) -> None:
    """What to type next; with a server that stays up (`pid`), also how to stop it."""
    taskq = _command()
    say()
    if pid is None:
        steps: tuple[tuple[str, str], ...] = (
            (f"{taskq} demo --keep", "the same, and the server stays up to look inside"),
            (f"{taskq} demo FOLDER", "over files of yours"),
            (f"{taskq} dev APP", "your own tasks: a server, a worker, reload"),
        )
    else:
        failed = next((each.id for each in records if each is not None and each.state is State.FAILED), None)
        shown = failed or next((each.id for each in records if each is not None), "ID")
        place = urlsplit(url)
        say(f"the server stays up at {url}; stop it with: kill {pid}")
        steps = (
            (f"export TASKQ_URL={url}", "for the commands below"),
            (f"{taskq} stats", "how many jobs are in each state"),
            (f"{taskq} job list --state failed --limit 5", "what failed, and why"),
            (f"{taskq} job show {shown}", "everything about a job"),
            (f"{taskq} job retry {shown}", "have it run again, by:"),
            (f"{taskq} worker taskq.demo.app --burst", "a worker that ends when nothing is left"),
            (f"redis-cli -p {place.port} hgetall '{keys.queue(namespace, QUEUE).job(shown)}'", "the record itself"),
        )
    say("next:")
    width = max(len(command) for command, _ in steps if len(command) < 60)
    for command, meaning in steps:
        say(f"  {command.ljust(width)}  {meaning}")


def _told(totals: Totals) -> str:
    return (
        f"{totals.read:,} files read, {totals.failed:,} unreadable or no UTF-8; {totals.size:,} bytes,"
        f" {totals.lines:,} lines, the longest {totals.longest:,}, compressed {totals.compressed:,}"
    )


def _span_s(records: Sequence[JobRecord]) -> float:
    """From the first start to the last end."""
    started = [record.started_at_ms for record in records if record.started_at_ms is not None]
    finished = [record.finished_at_ms for record in records if record.finished_at_ms is not None]
    return (max(finished) - min(started)) / 1000 if started and finished else 0.0


def _command() -> str:
    """How this shell calls us: `make demo` runs a script that isn't on PATH."""
    called = sys.argv[0]
    if shutil.which("taskq") or os.path.basename(called) != "taskq":  # noqa: PTH119 (text)
        return "taskq"
    return os.path.relpath(called)
