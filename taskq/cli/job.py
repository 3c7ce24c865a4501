"""`taskq job …`: list, active, show, why, retry, cancel, clear."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import click

from taskq.app import TaskQ
from taskq.cli import output, scope
from taskq.cli.options import (
    Noun,
    confirm,
    json_option,
    only_one,
    page_options,
    queue_option,
    server_options,
    states_option,
    yes_option,
)
from taskq.cli.place import app
from taskq.cli.refusal import WrongUsage, checked_values, refuse
from taskq.client import operations
from taskq.client.sweep import CLEARABLE
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
@click.option(
    "--state",
    metavar="STATE",
    multiple=True,
    callback=only_one,
    help=f"One of {', '.join(State)} [all, state after state].",
)
@queue_option("Only this queue [all].")
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
@queue_option("Only this queue [all].")
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

    def send(some: list[str]) -> list[str]:
        return place.client.retry_many(some, partial=partial)

    _send(place, ids, send, {"available": "runs again"}, _AGAIN, partial=partial)


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
    each = partial or len(ids) == 1

    def send(some: list[str]) -> list[str]:
        return place.client.cancel_many(some, running=running, force=force, partial=each)

    done = {"removed": "cancelled", "requested": "its worker was asked to stop it"}
    _send(place, ids, send, done, _TOO_LATE, partial=partial)


_TOO_LATE = {
    "missing": "there is no such job",
    "too_late": "has ended already",
    "running": "is running: cancel it with --running",
}
_AGAIN = {
    "missing": "there is no such job",
    "waiting": "is available already",
}


def _send(
    place: TaskQ,
    ids: tuple[str, ...],
    send: Callable[[list[str]], list[str]],
    done: Mapping[str, str],
    refusals: Mapping[str, str],
    *,
    partial: bool,
) -> None:
    """Part by part, all or nothing for each unless partial; then what became of it is told. What can be no job's id is
    refused before anything is done. If a part fails, or Ctrl-C ends it, what was done before is told nevertheless.
    """
    words = dict.fromkeys(range(len(ids)), operations.MISSING) if partial else {}
    parts = operations.parts(place.settings.namespace, ids, partial=partial)
    refused: list[str] = []
    for at, part in enumerate(parts):
        try:
            words.update(zip(part.places, send([ids[i] for i in part.places]), strict=True))
        except operations.REFUSALS as error:
            refused.append(f"{error}{part.extent}".replace("running=True", "--running"))
        except BaseException:
            left = [[ids[i] for i in each.places] for each in parts[at:]]
            for i in chain.from_iterable(each.places for each in parts[at:]):
                words.pop(i, None)
            refused = _told(ids, words, refused, done, refusals)
            for line in [*refused, *(_left(left) if len(parts) > 1 else ())]:
                output.note(f"taskq: {line}")
            raise
    refused = _told(ids, words, refused, done, refusals)
    for each in refused[:-1]:
        output.note(f"taskq: {each}")
    if refused:
        refuse(refused[-1])


def _told(
    ids: Sequence[str],
    words: Mapping[int, str],
    refused: list[str],
    done: Mapping[str, str],
    refusals: Mapping[str, str],
) -> list[str]:
    """A line for each job that is done; answers one for each part, or job, that was refused."""
    said = [(ids[i], word) for i, word in sorted(words.items())]
    for id, word in said:
        if word in done:
            output.put(f"{id}: {done[word]}")
    return refused + [f"{id}: {refusals.get(word) or _why_not(word)}" for id, word in said if word not in done]


def _left(parts: list[list[str]]) -> list[str]:
    """What became of the part that failed, whose answer may be all that was lost, and of those after it."""
    rest = [id for part in parts[1:] for id in part]
    return [f"perhaps not done: {' '.join(parts[0])}", *([f"not sent: {' '.join(rest)}"] if rest else [])]


def _why_not(word: str) -> str:
    """What forbids a retry: the state a job is in, or who owns its unique key."""
    if word.startswith("duplicate "):
        return f"job {word.partition(' ')[2]} owns its unique key"
    return f"is {word}: it can't be made available before it has ended"


@job.command(
    short_help="Delete ended jobs for good.",
    examples=(
        "taskq job clear",
        "taskq job clear --state completed --queue email --older-than 1h --yes",
        "taskq job clear --state failed --offset 100 --yes",
    ),
)
@states_option("Only these [failed,cancelled].", default="failed,cancelled")
@queue_option("Only this queue [all].")
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
    # What is kept is so by an instant: by the time it is confirmed others may have deleted what was counted.
    some, before_ms = scope.without_last(place, found, offset)
    if total and not scope.size(some):
        others = f"there are {total}" if total <= offset else "with them those of the same millisecond"
        output.put(f"nothing to delete: the {offset} that ended last are kept, and {others}")
        return
    if limit is not None:
        some, limit_ms = scope.longest_ended(place, found, some, limit)
        before_ms = min((each for each in (before_ms, limit_ms) if each is not None), default=None)
    which = f", if it ended over {older_than} ago" if older_ms else ""
    if scope.size(some) < total:
        which = f" (the {scope.size(some)} of {total} that ended first){which}"
    if not scope.announce(place.settings.namespace, some, "delete", which):
        return
    confirm("delete them for good?", yes=yes)
    done = dict.fromkeys(known, 0)
    try:
        for name, count in scope.delete(place, some, older_ms=older_ms, before_ms=before_ms):
            done[name] += count
    except BaseException:  # what is done is told, whatever became of the rest
        scope.tell({name: count for name, count in done.items() if count}, "deleted")
        raise
    scope.tell(done, "deleted")
