"""`taskq enqueue TASK [ARG…]`: one job of a task, by its name alone."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

import click

from taskq.app import TaskQ
from taskq.cli import output
from taskq.cli.argument import read_args, read_pair, read_payload
from taskq.cli.options import Verb, queue_option, server_options
from taskq.cli.place import app
from taskq.cli.refusal import WrongUsage, checked_values, refuse
from taskq.cli.tasks import check_arguments, queue_for
from taskq.errors import JobCancelled, JobFailed, shown
from taskq.options import Options, Vocabulary


@click.command(
    cls=Verb,
    examples=(
        "taskq enqueue shop.mail.send a@b.c subject=hi",
        "taskq enqueue shop.sums.add 2 3 --wait",
        "taskq enqueue shop.sums.add --delay 5m -- -2 3",
        "taskq enqueue shop.video.encode clip.mp4 --resource gpu=1 --label gpu=a100",
        'taskq enqueue shop.mail.send --payload \'{"args": ["a@b.c"], "kwargs": {"subject": "hi"}}\'',
    ),
)
@click.argument("task", metavar="TASK")
@click.argument("args", nargs=-1, metavar="[ARG… k=v…]")
@click.option("--payload", metavar="JSON", help='All arguments at once: {"args": [], "kwargs": {}}.')
@queue_option("Where it waits [where the workers serve the task from].")
@click.option("--delay", metavar="TIME", help="Start it so much later: 30, 5m, 1h30m.")
@click.option("--at", metavar="TIME", help="Start it then: 2030-01-31T09:00:00+01:00.")
@click.option("--expires", metavar="TIME", help="Cancel it if it hasn't started by then: 1h, or an instant.")
@click.option("--priority", type=int, help="-512 … 511, higher first [the task's, else 0].")
@click.option("--id", metavar="ID", help="An own id, for which a second enqueue adds nothing.")
@click.option("--unique", metavar="KEY", help="While a job of the task has this key, nothing is added.")
@click.option(
    "--debounce",
    metavar="TIME",
    help="Start it once no further call came for so long; the last one of the task counts.",
)
@click.option("--throttle", metavar="TIME", help="The first call of the task counts; for so long no other makes a job.")
@click.option("--lock", metavar="NAME", help="One job with this lock at a time; the others wait.")
@click.option("--label", "labels", multiple=True, metavar="K=V", help="Only on workers labelled so. Several times.")
@click.option("--resource", "resources", multiple=True, metavar="K=V", help="What it takes: gpu=1, memory=4GiB.")
@click.option("--target", metavar="NODE", help="Only on this node, by its id or host's name.")
@click.option("--on-target-lost", metavar="any|fail", help="What becomes of it once its target is gone [any].")
@click.option("--strict", is_flag=True, default=None, help="Refuse it where no live node could run it now.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="May be given several times.")
@click.option("--meta", multiple=True, metavar="K=V", help="May be given several times.")
@click.option("--max-attempts", type=int, metavar="N", help="How many times it is run at most [the task's, else 3].")
@click.option("--timeout", metavar="TIME", help="How long an attempt may take.")
@click.option("--wait", is_flag=True, help="Wait until it ends, and print its result as JSON.")
@click.option("--wait-timeout", metavar="TIME", help="How long to wait, with --wait.")
@server_options
def enqueue(
    *,
    task: str,
    args: tuple[str, ...],
    payload: str | None,
    wait: bool,
    wait_timeout: str | None,
    **given: Any,
) -> None:
    """Add a job of TASK, and print its id.

    An ARG is JSON if it parses, else text; k=v is a keyword argument if k is an identifier. -- ends options. What the
    task's code says of attempts, priority and the like holds, unless an option says otherwise.
    """
    if payload is not None and args:
        raise WrongUsage("give ARGs or --payload, not both")
    if wait_timeout is not None and not wait:
        raise WrongUsage("--wait-timeout goes with --wait")
    with checked_values():
        positional, keywords = read_args(args) if payload is None else read_payload(payload)
        options = _options(given)
        Options(**options)
    place = app()
    queue = queue_for(place, task, options.pop("queue", None))
    check_arguments(place, task, positional, keywords)
    with checked_values():
        job = place.by_name(task, queue=queue).using(**options).enqueue(*positional, **keywords)
    if not job.created:
        output.note(f"{job.id} exists already: nothing was added")
    if not wait:
        output.put(job.id)
        return
    output.note(job.id)
    _print_result(place, job.id, wait_timeout)


def _options(given: dict[str, Any]) -> Vocabulary:
    """The options as `using` takes them."""
    options = {name: value for name, value in given.items() if value is not None and value != ()}
    for name in ("at", "expires"):
        if name in options:
            options[name] = _instant(options[name], name)
    for name, option in (("meta", "--meta"), ("labels", "--label"), ("resources", "--resource")):
        if name in options:
            options[name] = dict(read_pair(each, option) for each in options[name])
    return cast("Vocabulary", options)  # its names are this command's options


def _instant(text: str, name: str) -> datetime | str:
    """An instant; for `expires` a duration too, which is left as text."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        if name == "expires":
            return text
        raise ValueError(f"--{name} {shown(text)} is no instant: give such as 2030-01-31T09:00:00Z") from None
    if found.utcoffset() is None:
        raise ValueError(f"--{name} {shown(text)} has no time zone: give such as {found.isoformat()}Z or +01:00")
    return found


def _print_result(place: TaskQ, id: str, timeout: str | None) -> None:
    from taskq.client.ending import result_of

    try:
        with checked_values(timeout="--wait-timeout"):
            record = place.client.wait(id, timeout=timeout)
    except KeyboardInterrupt:
        output.note(f"job {id} goes on; how it stands: taskq job show {id}")
        raise
    if record is None:
        refuse(f"job {id} ended, and is no longer kept: its result can't be read")
    shown = record.to_dict()
    if record.state != "completed":
        try:
            result_of(record, place.types)
        except (JobFailed, JobCancelled) as error:
            refuse(str(error))
    output.put(output.as_json(shown["result"], indent=None))
