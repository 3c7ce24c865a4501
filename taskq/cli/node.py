"""`taskq node …`: list, show, drain, resume, scale, stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click

from taskq.app import TaskQ
from taskq.cli import output
from taskq.cli.leader import all_drain
from taskq.cli.options import Noun, confirm, json_option, page_options, server_options, yes_option
from taskq.cli.place import app
from taskq.cli.refusal import WrongUsage, checked_values, refuse
from taskq.cli.serve import worker_count
from taskq.errors import shown
from taskq.needs import WHOLE, amount_text
from taskq.nodes import EVERY

SEEN_S = 10.0
_AGAIN_S = 0.1

Seen = dict[str, Any] | None
"""A node as it is seen now; None once it is gone."""


@click.group(
    cls=Noun,
    examples=("taskq node list",),
)
@server_options
def node() -> None:
    """Nodes, each a running `taskq worker`: who is there, what each does; drain one, let it go on, stop it."""


@node.command(
    "list",
    short_help="The nodes that live.",
    examples=(
        "taskq node list",
        "taskq node list --all --json",
    ),
)
@click.option("--all", "every", is_flag=True, help="With those that died within the last five minutes.")
@page_options("Nodes")
@json_option
@server_options
def list_(*, every: bool, limit: int, offset: int, json_: bool) -> None:
    """The nodes that live: whose last beat, which comes every ten seconds, is younger than thirty."""
    page = app().nodes.list(all=every, limit=limit, offset=offset)
    if json_:
        output.document(page)
        return
    rows = [
        (
            each["id"],
            f"{each['state']}, leads" if each["leader"] else each["state"],
            each["health"],
            each["workers"],
            f"{each['stats']['busy']}/{each['stats']['slots']}",
            ",".join(each["queues"]),
            output.instant(each["last_seen"]),
        )
        for each in page["data"]
    ]
    output.table(
        ("id", "state", "health", "workers", "busy", "queues", "last seen"),
        rows,
        numbers=("workers", "busy"),
        spare={"last seen": 0, "queues": 12, "workers": 0, "health": 0},
    )
    output.next_page(len(rows), page["total"], offset)


@node.command(
    short_help="Everything about a node.",
    examples=("taskq node show web-1-4711-3fa9c1 --json",),
)
@click.argument("id", metavar="ID")
@json_option
@server_options
def show(*, id: str, json_: bool) -> None:
    """What a node says of itself, and what it runs: the longest running first."""
    found = app().nodes.get(id)
    if json_:
        output.document(found)
        return
    stats = found.pop("stats")
    found["capacity"] = {name: _amount(each) for name, each in found["capacity"].items()}
    output.pairs((name, output.in_a_line(name, value)) for name, value in found.items())
    output.put(f"{stats['busy']} of {stats['slots']} slots are busy")
    for name, each in stats.get("resources", {}).items():
        output.put(f"{name}: {_amount(each['free'])} of {found['capacity'][name]} free")
    if workers := stats.get("workers"):
        output.put(f"workers: {_range(workers)}, as needed")
    for queue, each in stats.get("queues", {}).items():
        output.put(f"{queue}: {each['busy']} of {each['slots']} slots; from {each['least']} to {each['most']}")
    if stats["running"]:
        rows = [(each["job"], each["task"], output.instant(each["started_at"])) for each in stats["running"]]
        output.table(("job", "task", "started at"), rows, spare={"task": 12})
    if stats["busy"] > len(stats["running"]):
        output.note(f"{stats['busy'] - len(stats['running'])} more, which started later")


def _amount(each: float) -> str:
    return amount_text(round(each * WHOLE))


def _range(bounds: dict[str, Any]) -> str:
    return f"{bounds['least']}..{bounds['most']}"


def _named(ids: tuple[str, ...], every: bool, place: TaskQ) -> list[str]:  # noqa: FBT001 (a flag, passed on)
    """The nodes that are meant, which are there if they are named. With --all there may be none, which is said."""
    if every == bool(ids):
        raise WrongUsage("name the nodes, or give --all for every node that lives")
    if EVERY in ids:
        raise WrongUsage(f"'{EVERY}' is no node's id: give --all for every node that lives")
    for id in ids:
        if place.nodes.get(id)["state"] == "dead":
            refuse(f"node {shown(id)} is dead; nobody was told: see `taskq node list --all`")
    named = list(ids) or [str(each["id"]) for each in place.nodes.list()["data"]]
    if not named:
        output.note("no node lives")
    return named


def _tell(
    place: TaskQ, ids: list[str], order: Callable[[str], None], done: Callable[[Seen], str], *, every: bool
) -> None:
    """Give each its order, then wait for what is to be seen of it. `done`: what to say of a node once it is; '' until
    then. Of `every` node that lives, one that dies meanwhile is passed over.
    """
    told = [id for id in ids if _ordered(id, order, every)]
    until = time.monotonic() + SEEN_S
    for id in told:
        while not (said := done(_seen(place, id))) and time.monotonic() < until:
            time.sleep(_AGAIN_S)
        output.put(f"{id}: {said or f'was told; see `taskq node show {id}`'}")


def _ordered(id: str, order: Callable[[str], None], every: bool) -> bool:  # noqa: FBT001 (a flag, passed on)
    from taskq.errors import NodeNotFound

    try:
        order(id)
    except NodeNotFound:
        if not every:
            raise
        output.note(f"{id}: died meanwhile")
        return False
    return True


def _seen(place: TaskQ, id: str) -> Seen:
    from taskq.errors import NodeNotFound

    try:
        return place.nodes.get(id)
    except NodeNotFound:
        return None


def _is(state: str) -> Callable[[Seen], str]:
    return lambda seen: state if seen is not None and seen["state"] == state else ""


_every = click.option("--all", "every", is_flag=True, help="Every node that lives.")
_ids = click.argument("ids", nargs=-1, metavar="ID…")


@node.command(
    short_help="Claim nothing more; what runs is finished.",
    examples=("taskq node drain web-1-4711-3fa9c1",),
)
@_ids
@_every
@server_options
def drain(*, ids: tuple[str, ...], every: bool) -> None:
    """Have nodes claim nothing more: running jobs are finished, the nodes stay, and lead no more. See `resume`.

    Where all of them drain nobody leads, and no schedule fires until one resumes.
    """
    place = app()
    _tell(place, _named(ids, every, place), place.nodes.drain, _is("draining"), every=every)
    if said := all_drain(place.nodes.list()["data"]):
        output.note(said)


@node.command(
    short_help="Claim again.",
    examples=("taskq node resume --all",),
)
@_ids
@_every
@server_options
def resume(*, ids: tuple[str, ...], every: bool) -> None:
    """Have drained nodes claim jobs again."""
    place = app()
    _tell(place, _named(ids, every, place), place.nodes.resume, _is("active"), every=every)


@node.command(
    short_help="Change how much nodes run at a time.",
    examples=(
        "taskq node scale web-1-4711-3fa9c1 --workers 4",
        "taskq node scale --all --workers 2..8",
        "taskq node scale --all --slots 50",
    ),
)
@_ids
@_every
@click.option("-w", "--workers", metavar="N", help="Worker processes; 2..8: as many of these as are needed.")
@click.option("--slots", type=int, metavar="N", help="Coroutines at a time, a worker.")
@server_options
def scale(*, ids: tuple[str, ...], every: bool, workers: str | None, slots: int | None) -> None:
    """Change how many workers nodes have, or how many coroutines each runs at a time, until the nodes end. A number of
    workers stays; within a range it follows need.

    No running job is stopped for it: a worker that is too many finishes what it has.
    """
    place = app()
    wanted = None if workers is None else worker_count(workers, option="--workers")

    def order(id: str) -> None:
        with checked_values():
            place.nodes.scale(id, workers=wanted, slots=slots)

    def done(seen: Seen) -> str:
        if seen is None:
            return ""
        bounds, each = seen["stats"].get("workers"), seen["concurrency"].get("async")
        now = (bounds["least"], bounds["most"]) if bounds else seen["workers"]
        if wanted not in (None, now) or slots not in (None, each):
            return ""
        return f"{seen['workers'] if not bounds else _range(bounds)} workers of {each} slots"

    _tell(place, _named(ids, every, place), order, done, every=every)


@node.command(
    short_help="End nodes, as SIGTERM does.",
    examples=("taskq node stop web-1-4711-3fa9c1 --yes",),
)
@_ids
@_every
@yes_option
@server_options
def stop(*, ids: tuple[str, ...], every: bool, yes: bool) -> None:
    """End nodes, as SIGTERM does: running jobs get their grace, what is left is given back. A supervisor may start
    them again. Off a terminal --yes is needed.
    """
    place = app()
    named = _named(ids, every, place)
    if not named:
        return
    confirm(f"stop {len(named)} node(s)?", yes=yes, does="ends nodes")
    _tell(place, named, place.nodes.stop, lambda seen: "" if seen else "ends", every=every)
