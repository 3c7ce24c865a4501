"""`taskq job …`: list, active, show, why, retry, cancel, clear."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from taskq import keys
from taskq.app import TaskQ
from taskq.cli import output, scope
from taskq.cli.options import Noun, confirm, json_option, page_options, server_options, yes_option
from taskq.cli.place import app
from taskq.cli.refusal import WrongUsage, checked_values, refuse
from taskq.client.sweep import CLEARABLE
from taskq.commands import BATCH_MAX
from taskq.errors import DuplicateJob, InvalidTransition, JobNotFound
from taskq.state import State, valid


@click.group(
    cls=Noun,
    later=("logs", "watch"),
    examples=("taskq job list --state failed",),
)
@server_options
def job() -> None:
    """Jobs: list, active, show, why, retry, cancel, clear."""


@job.command(
    "list",
    short_help="A page of jobs.",
    examples=(
        "taskq job list --state failed --queue email",
        "taskq job list --limit 200 --offset 200 --json",
    ),
)
@click.option("--state", metavar="STATE", help=f"One of {', '.join(State)} [all, state after state].")
@click.option("-q", "--queue", metavar="QUEUE", help="Only this queue [all].")
@page_options("Jobs", 50)
@json_option
@server_options
def list_(*, state: str | None, queue: str | None, limit: int, offset: int, json_: bool) -> None:
    """Jobs, newest first by entry into their state, without --state one state after another. Available ones come in the
    order in which they will be claimed, one queue after another.
    """
    if state is not None and not valid(state):
        from taskq.errors import did_you_mean, shown

        raise WrongUsage(f"there is no state {shown(state)}{did_you_mean(state, State)}: one of {', '.join(State)}")
    only = None if state is None else State(state)
    place = app()
    with checked_values():
        page = place.inspector.jobs(state=only, queue=queue, limit=limit, offset=offset)
    if json_:
        output.document(page)
        return
    rows = [
        (each["id"], each["task"], each["state"], f"{each['attempt']}/{each['max_attempts']}", *_when_and_why(each))
        for each in page["data"]
    ]
    spare = {"note": 16, "since": 0, "attempt": 0, "task": 12}
    output.table(("id", "task", "state", "attempt", "since", "note"), rows, spare=spare)
    if only is State.RUNNING and rows:
        output.note("who holds them, and how long ago each was heard of: taskq job active")
    output.next_page(len(rows), page["total"], offset)


@job.command(
    short_help="What runs, and who holds it.",
    examples=("taskq job active --queue email",),
)
@click.option("-q", "--queue", metavar="QUEUE", help="Only this queue [all].")
@page_options("Attempts", 50)
@json_option
@server_options
def active(*, queue: str | None, limit: int, offset: int, json_: bool) -> None:
    """What runs or is offered, who holds it, and how long ago that one was heard of; those nearest to being lost first.

    Nobody's presence ends an attempt, only a lease that has run out.
    """
    place = app()
    with checked_values():
        page = place.inspector.active(queue=queue, limit=limit, offset=offset)
    if json_:
        output.document(page)
        return
    rows = [
        (*(each[name] for name in ("id", "task", "attempt", "worker")), f"{each['age']:.1f} s", *_who_and_what(each))
        for each in page["data"]
    ]
    spare = {"node": 0, "attempt": 0, "task": 12, "worker": 12}
    headings = ("id", "task", "attempt", "worker", "heard", "node", "note")
    output.table(headings, rows, numbers=("attempt", "heard"), spare=spare)
    output.next_page(len(rows), page["total"], offset)


def _who_and_what(each: dict[str, Any]) -> tuple[str, str]:
    notes = {"offered": each["offered"], "stale": each["stale"], "asked to stop": each["cancel_requested"]}
    return each["node_state"] or "", ", ".join(note for note, so in notes.items() if so)


def _when_and_why(each: dict[str, Any]) -> tuple[str, str]:
    since = each["finished_at"] or each["started_at"] or each["scheduled_at"] or each["created_at"]
    errors = each["errors"]
    why = each["reason"] or (f"{errors[-1]['type']}: {errors[-1]['message']}" if errors else "")
    return output.instant(since), output.one_line(why)[:80]


@job.command(
    short_help="Everything about a job.",
    examples=("taskq job show email:019b2c3e-7d1a-7000-8000-6f1b2c3d4e5f --json",),
)
@click.argument("id", metavar="ID")
@json_option
@server_options
def show(*, id: str, json_: bool) -> None:
    """Everything that is stored of a job: arguments, result, errors, times."""
    record = app().client.job(id).to_dict()
    if json_:
        output.document(record)
        return
    output.pairs((name, _shown(name, value)) for name, value in record.items() if name != "errors")
    for error in record["errors"]:
        who = f" on {error['worker']}" if error.get("worker") else ""
        output.put(f"attempt {error['attempt']}, {output.instant(error['at'])}{who}: {error['type']}")
        output.block(error.get("traceback") or error["message"])


def _shown(name: str, value: Any) -> Any:
    if name.endswith("_at"):
        return output.instant(value)
    return output.as_json(value, indent=None) if isinstance(value, dict | list) and value else value


@job.command(
    short_help="Why a job isn't running.",
    examples=("taskq job why email:019b2c3e-7d1a-7000-8000-6f1b2c3d4e5f",),
)
@click.argument("id", metavar="ID")
@json_option
@server_options
def why(*, id: str, json_: bool) -> None:
    """The first thing that holds a job back: its time, a pause, a limit, a lock, no worker, its turn."""
    found = app().inspector.why(id)
    if json_:
        output.document(found.to_dict())
    else:
        output.put(found.text)


@job.command(
    short_help="Run jobs again.",
    examples=("taskq job retry email:019b2c3e-7d1a-7000-8000-6f1b2c3d4e5f",),
)
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--partial", is_flag=True, help="Do what can be done; without it all or nothing for each queue.")
@server_options
def retry(*, ids: tuple[str, ...], partial: bool) -> None:
    """Run completed, failed, cancelled or retryable jobs again as if new: attempt 0, errors and result cleared."""
    place = app()
    done = {"available": "runs again"}
    if partial:
        _report(list(zip(ids, place.client.retry_many(ids, partial=True), strict=True)), [], done, _AGAIN)
    else:
        _report(*_by_queue(place, ids, place.client.retry_many), done)


@job.command(
    short_help="Give a waiting job another priority.",
    examples=("taskq job reprioritise email:019b2c3e-7d1a-7000-8000-6f1b2c3d4e5f 10",),
)
@click.argument("id", metavar="ID")
@click.argument("priority", metavar="N", type=int)
@server_options
def reprioritise(*, id: str, priority: int) -> None:
    """Give a job another priority, from -512 to 511, higher first. A running job keeps it for its next attempt.

    A priority below 0 stands after `--`: taskq job reprioritise ID -- -5
    """
    with checked_values(priority="N"):
        state = app().client.reprioritise(id, priority)
    output.put(f"{id}: priority {priority}, {state}")


@job.command(
    short_help="Cancel jobs.",
    examples=(
        "taskq job cancel email:019b2c3e-7d1a-7000-8000-6f1b2c3d4e5f",
        "taskq job cancel --no-running email:7 email:8",
    ),
)
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option(
    "--running/--no-running", default=True, show_default=True, help="Ask the workers of running ones to stop."
)
@click.option("--force", is_flag=True, help="A worker may be replaced to stop a job that can't be interrupted.")
@click.option("--partial", is_flag=True, help="Do what can be done; without it all or nothing for each queue.")
@server_options
def cancel(*, ids: tuple[str, ...], running: bool, force: bool, partial: bool) -> None:
    """Cancel jobs: a waiting one is cancelled at once, the worker of a running one is asked to stop it."""
    place = app()
    client = place.client
    done = {"removed": "cancelled", "requested": "its worker was asked to stop it"}
    if len(ids) == 1 and not partial:
        try:
            words = [client.cancel(ids[0], running=running, force=force)]
        except InvalidTransition as error:
            words = [str(error.from_state)]
        _report([(ids[0], words[0])], [], done)
    elif partial:
        words = client.cancel_many(ids, running=running, force=force, partial=True)
        _report(list(zip(ids, words, strict=True)), [], done)
    else:
        _report(*_by_queue(place, ids, lambda some: client.cancel_many(some, running=running, force=force)), done)


_REFUSALS = {
    "missing": "there is no such job",
    "too_late": "has ended already",
    "running": "is running: cancel it with --running",
}
_AGAIN = {
    "missing": "there is no such job",
    "running": "is running: it hasn't ended",
}
Words = list[tuple[str, str]]
"""Each job's id, and the word that was answered of it."""


def _by_queue(place: TaskQ, ids: tuple[str, ...], send: Callable[[list[str]], list[str]]) -> tuple[Words, list[str]]:
    """All or nothing for each queue and each 250 of it: what was done, and why some weren't. What can be no job's id
    is refused before anything is done.
    """
    queues: dict[str, list[str]] = {}
    for id in ids:
        queues.setdefault(keys.of_job(place.settings.namespace, id).name, []).append(id)
    said: Words = []
    refused: list[str] = []
    for name, all in queues.items():
        for at in range(0, len(all), BATCH_MAX):
            some = all[at : at + BATCH_MAX]
            try:
                said += zip(some, send(some), strict=True)
            except (JobNotFound, InvalidTransition, DuplicateJob) as error:
                refused.append(f"{error}{_of(name, len(some), several=len(queues) > 1, parts=len(all) > len(some))}")
    return said, refused


def _of(queue: str, many: int, *, several: bool, parts: bool) -> str:
    """How far "nothing was done" goes."""
    if parts:
        return f" with it and {many - 1} more of queue {queue}"
    return f" in queue {queue}" if several else ""


def _report(said: Words, refused: list[str], done: dict[str, str], refusals: Mapping[str, str] = _REFUSALS) -> None:
    """A line for each job, or for each queue that refused; exit code 1 if there is such a one."""
    for id, word in said:
        if word in done:
            output.put(f"{id}: {done[word]}")
        else:
            refused = [*refused, f"{id}: {refusals.get(word, f'is {word}')}"]
    for each in refused[:-1]:
        output.note(f"taskq: {each}")
    if refused:
        refuse(refused[-1])


@job.command(
    short_help="Delete ended jobs for good.",
    examples=(
        "taskq job clear",
        "taskq job clear --state completed --queue email --older-than 1h --yes",
        "taskq job clear --state failed --offset 100 --yes",
    ),
)
@click.option("--state", "--states", "states", metavar="A,B", default="failed,cancelled", show_default=True)
@click.option("-q", "--queue", metavar="QUEUE", help="Only this queue [all].")
@click.option("--older-than", default="0s", metavar="TIME", show_default=True, help="Only those that ended before.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most so many, the longest ended first [all].")
@click.option("--offset", type=click.IntRange(0), default=0, metavar="N", help="Keep the N that ended last [none].")
@yes_option
@server_options
def clear(*, states: str, queue: str | None, older_than: str, limit: int | None, offset: int, yes: bool) -> None:
    """Delete ended jobs for good, by state. What will be deleted is printed first; off a terminal --yes is needed."""
    from taskq.units import duration_ms

    chosen = scope.state_list(states, CLEARABLE, "cleared")
    with checked_values():
        older_ms = duration_ms(older_than, name="--older-than")
    place = app()
    known = scope.known_queues(place, None if queue is None else (queue,))
    found = scope.counted(place, known, chosen)
    total = scope.size(found)
    if 0 < total <= offset:
        output.put(f"nothing to delete: the {offset} that ended last are kept, and there are {total}")
        return
    if limit is None:
        some = scope.without_last(place, found, offset)
    else:
        some = scope.longest_ended(place, found, min(limit, total - offset))
    which = f", if it ended over {older_than} ago" if older_ms else ""
    if some is not found:
        which = f" (the {scope.size(some)} of {total} that ended first){which}"
    if not scope.announce(place.settings.namespace, some, "delete", which):
        return
    confirm("delete them for good?", yes=yes)
    done = dict.fromkeys(known, 0)
    for name, states_here in some.items():
        for state, count in states_here.items():
            most = None if some is found else count
            if count:
                done[name] += place.client.clear(name, states=[state], older_than=older_ms / 1000, limit=most)
    scope.tell(done, "deleted")
