"""`taskq queue show | limit | weights`: what holds a queue's jobs up, changed while programs run."""

from __future__ import annotations

from typing import Any

import click

from taskq.cli import output, scope
from taskq.cli.options import Verb, json_option, server_options
from taskq.cli.place import app
from taskq.cli.refusal import WrongUsage, checked_values, refuse
from taskq.errors import did_you_mean
from taskq.errors import shown as quoted

_NUMBERS = ("running", "reserved", "free", "waiting")


def limit_table(rows: list[dict[str, Any]]) -> None:
    """A row a limit, task or fairness key."""
    shown = [
        (
            each["kind"] if each["name"] is None else f"{each['kind']} {each['name']}",
            None if each["key"] is None else key_shown(each["key"]),
            each["concurrency"],
            each["rate"] and f"{each['rate']} burst {each['burst']}",
            each["running"],
            each["reserved"] or None,
            each["free"],
            each["waiting_lanes"],
            ", ".join(_states(each)),
        )
        for each in rows
    ]
    headings = ("of", "key", "concurrency", "rate", "running", "reserved", "free", "waiting", "state")
    output.table(headings, shown, numbers=("concurrency", *_NUMBERS), spare={"rate": 0, "waiting": 0, "reserved": 0})


def key_shown(key: str) -> str:
    """A fairness key or a limit's, as a line has it: the empty one is not to be taken for none."""
    return key or "''"


def _states(each: dict[str, Any]) -> list[str]:
    words = ["paused"] if each["paused"] else []
    if each["blocked_until"]:
        words.append(f"blocked until {output.instant(each['blocked_until'])}")
    if each["by_calls"]:
        words.append("said by calls")
    if each["overridden"] and not each["paused"]:
        words.append("overridden" if any(each["declared"].values()) else "set here")
    if each["age"]:
        words.append(f"a level every {each['age']:g} s")
    return words


@click.command(
    cls=Verb,
    short_help="Limits: look at them, or change one while programs run.",
    examples=(
        "taskq queue limit email",
        "taskq queue limit email crm --key acme",
        "taskq queue limit email crm --concurrency 5 --rate 100/min --key acme",
        "taskq queue limit email crm --block 30s",
        "taskq queue limit email --concurrency 40 --age 10m",
        "taskq queue limit email crm --reset",
    ),
)
@click.argument("queue", metavar="QUEUE")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--concurrency", type=int, metavar="N", help="How many run at once, from 0.")
@click.option("--rate", metavar="N/PERIOD", help="How many start in a period, such as 100/min.")
@click.option("--burst", type=int, metavar="N", help="With --rate: how many may start at once.")
@click.option("--key", metavar="KEY", help="Only this value of the limit's by=.")
@click.option(
    "--block",
    metavar="DURATION",
    help="Let nobody start for so long, with --key nobody of that; 0 opens it.",
)
@click.option("--age", metavar="DURATION", help="Without NAME: a waiting lane gains a level each time; 0: none does.")
@click.option("--reset", is_flag=True, help="What code declares holds again.")
@json_option
@server_options
def limit(
    *,
    queue: str,
    name: str | None,
    concurrency: int | None,
    rate: str | None,
    burst: int | None,
    key: str | None,
    block: str | None,
    age: str | None,
    reset: bool,
    json_: bool,
) -> None:
    """Look at a queue's limits, or change one at once, on every node. Without NAME it is the queue as a whole.

    What is said here beats code, until --reset. Running jobs go on: lowering lets nobody start until enough have ended.
    """
    place = app()
    scope.known_queues(place, [queue])
    handle = place.queue(queue)
    changes = concurrency is not None or rate is not None or burst is not None or reset
    if not changes and block is None and age is None:
        _list(_chosen(handle.limits(), queue, name, key), json_=json_)
        return
    if json_:
        raise WrongUsage("--json lists the limits: it goes with nothing that changes one")
    if reset and not {concurrency, rate, burst, block, age} <= {None}:
        raise WrongUsage("--reset stands alone, with --key or without: give the new numbers in another call")
    if age is not None and name is not None:
        raise WrongUsage("--age is of the queue as a whole: leave NAME out")
    before = handle.limits()
    with checked_values(name="NAME", duration="--block"):
        changed = []
        if changes:
            told = handle.limit(name, concurrency=concurrency, rate=rate, burst=burst, key=key, reset=reset)
            changed.append(told)
        if block is not None:
            changed.append(handle.block(name, block, key=key))
        if age is not None:
            changed.append(handle.age(age))
    after = handle.limits()
    what = ", ".join(_changes(_numbers_of(before, name, key), _numbers_of(after, name, key)))
    done = f"changed{': ' if what else ''}{what}" if any(changed) else "it is so already"
    named = [queue, *([] if name is None else [f"limit {name}"]), *([] if key is None else [f"key {key_shown(key)}"])]
    output.put(f"{', '.join(named)}: {done}")
    if reset and key is None and (left := _keys_set(after, name)):
        output.note(f"keys still set here: {', '.join(left)} (--reset --key {left[0]})")
    if name is not None and not reset and not any(each["name"] == name for each in _declared(after)):
        hint = did_you_mean(name, _limit_names(before) - {name})
        output.note(f"no code that runs declares a limit {quoted(name)}{hint}: it holds for jobs that name it")


def _chosen(rows: list[dict[str, Any]], queue: str, name: str | None, key: str | None) -> list[dict[str, Any]]:
    """All; of a limit it and its keys; or the one key. A key of which nothing is said has its limit's numbers."""
    if name is None and key is None:
        return rows
    kind = "limit" if name is not None else "fairness key"
    mine = [each for each in rows if (each["kind"], each["name"]) == (kind, name)]
    found = [each for each in mine if key is None or each["key"] == key]
    if not found and name is not None and (of := [each for each in mine if each["key"] is None]):
        own = {"key": key, "running": None, "waiting_lanes": None, "free": None, "overridden": False}
        found = [{**each, **own} for each in of]
    if not found:
        what = f"limit {name!r}" if name is not None else f"fairness key {key!r}"
        near = did_you_mean(name or "", _limit_names(rows))
        refuse(f"nothing is said of a {what}{near} in queue {queue}: see `taskq queue limit {queue}`")
    return found


def _numbers_of(rows: list[dict[str, Any]], name: str | None, key: str | None) -> dict[str, Any]:
    """The numbers that hold for what is changed: the row's, else those of its limit."""
    kind = "limit" if name is not None else "queue" if key is None else "fairness key"
    mine = [each for each in rows if (each["kind"], each["name"]) == (kind, name) and each["key"] in (key, None)]
    row = max(mine, key=lambda each: each["key"] is not None, default=None) or {}
    rate = row.get("rate")
    return {
        "concurrency": row.get("concurrency"),
        "rate": rate and f"{rate} burst {row['burst']}",
        "blocked until": output.instant(row.get("blocked_until")) or None,
        "age": row.get("age"),
    }


def _changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    def word(value: Any) -> str:
        return "none" if value is None else f"{value:g} s" if isinstance(value, float) else str(value)

    return [f"{what} {word(old)} → {word(after[what])}" for what, old in before.items() if old != after[what]]


def _keys_set(rows: list[dict[str, Any]], name: str | None) -> list[str]:
    """The keys of a limit that have numbers of their own, or are blocked: a reset of the limit leaves them."""
    mine = [each for each in rows if (each["kind"], each["name"]) == ("limit", name) and each["key"] is not None]
    return [key_shown(each["key"]) for each in mine if each["overridden"] or each["blocked_until"]]


def _limit_names(rows: list[dict[str, Any]]) -> set[str]:
    return {each["name"] for each in rows if each["kind"] == "limit"}


def _declared(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in rows if any(each["declared"].values())]


def _list(rows: list[dict[str, Any]], *, json_: bool) -> None:
    if json_:
        output.document({"data": rows, "total": len(rows), "limit": len(rows), "offset": 0})
    else:
        limit_table(rows)


@click.command(
    cls=Verb,
    short_help="How many turns fairness keys get.",
    examples=("taskq queue weights email acme=3 bolt=2", "taskq queue weights email acme="),
)
@click.argument("queue", metavar="QUEUE")
@click.argument("weights", nargs=-1, metavar="[KEY=N]…")
@json_option
@server_options
def weights(*, queue: str, weights: tuple[str, ...], json_: bool) -> None:
    """Give fairness keys so many turns for one of another's, or look at what was given. `KEY=` takes it back."""
    said: dict[str, int | None] = {}
    for each in weights:
        key, equals, number = each.rpartition("=")
        if not equals or not key or not (number == "" or number.isdigit()):
            raise WrongUsage(f"{each!r} is no weight: give KEY=N, such as acme=3")
        said[key] = int(number) if number else None
    place = app()
    scope.known_queues(place, [queue])
    with checked_values():
        found = place.queue(queue).weights(said)
    if json_:
        output.document(found)
    else:
        output.table(("key", "weight"), [(key_shown(key), n) for key, n in found.items()], numbers=("weight",))


@click.command(
    cls=Verb,
    short_help="Everything about a queue.",
    examples=("taskq queue show email",),
)
@click.argument("queue", metavar="QUEUE")
@json_option
@server_options
def show(*, queue: str, json_: bool) -> None:
    """A queue's counts, whether it is paused, its limits, what of it is paused or blocked, and weights.

    `pauses` in --json: how many of its tasks and fairness keys are paused alone.
    """
    place = app()
    scope.known_queues(place, [queue])
    handle = place.queue(queue)
    counts, rows, weights_ = handle.counts()._asdict(), handle.limits(), handle.weights()
    if json_:
        output.document({"queue": queue, **counts, "limits": rows, "weights": weights_})
        return
    counts["paused tasks and keys"] = counts.pop("pauses")
    output.pairs([("queue", queue), *counts.items(), *((f"weight of {key}", n) for key, n in weights_.items())])
    if rows:
        limit_table(rows)
