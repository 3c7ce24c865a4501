"""What a job needs and no worker that lives has: for whoever asks why it isn't running. Pure.

It looks at what there is now. A node that never said what it has is given no job that needs an amount, so here it has
none; whether a job could ever run is another question (`taskq.fitting`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from taskq.needs import WHOLE, Needs, Place, amount_text, fits, number, part_of

Node = Mapping[str, Any]

_OPTIONS = {"async": "-c", "thread": "--threads"}


class Lack(NamedTuple):
    """Why none of these nodes may run a job: a sentence, its numbers, and what to do where nobody else comes for it."""

    text: str
    numbers: dict[str, Any]
    hint: str = ""


def place_of(node: Node) -> Place:
    """What the largest of a node's workers has, and the targets that the node is."""
    return Place(node["labels"], largest(node), {node["id"], node["hostname"]} - {None})


def largest(node: Node) -> dict[str, int]:
    """What the largest of a node's workers has: the first place has the odd units of everything."""
    scaling = node["stats"].get("workers", {}).get("least")
    counts = [n for n in (node["workers"], scaling) if isinstance(n, int) and n > 0]
    parts = min(counts, default=1)
    return {name: part_of(round(each * WHOLE), 0, parts) for name, each in node["capacity"].items()}


def able(queue: str, task: str, kind: str, wanted: Needs, nodes: Sequence[Node]) -> Sequence[Node] | Lack:
    """The nodes that may run such a job; or what is in the way.

    Args:
        queue: where it waits.
        task: its task's name.
        kind: its executor kind.
        wanted: what else it needs.
        nodes: the nodes that live, as the registry shows them.
    """
    if wanted.target:
        return _of_target(queue, task, kind, wanted, nodes)
    serving = [node for node in nodes if queue in node["queues"] and node["state"] == "active"]
    if not serving:
        drained = sum(queue in node["queues"] for node in nodes)
        also = f" ({drained} that do are draining)" if drained else ""
        text = f"no live taskq worker serves queue {queue}{also}"
        return Lack(text, {"nodes": 0}, f": taskq worker APP -q {queue}")
    knowing = [node for node in serving if task in node["tasks"]]
    if not knowing:
        verb = "s" if len(serving) == 1 else ""
        text = f"{counted(len(serving), 'live node')} serve{verb} queue {queue}, and none knows task {task}"
        return Lack(text, {"nodes": len(serving)})
    return _with_enough(kind, wanted, knowing)


def _of_target(queue: str, task: str, kind: str, wanted: Needs, nodes: Sequence[Node]) -> Sequence[Node] | Lack:
    target, numbers = wanted.target, {"target": wanted.target, "nodes": len(nodes)}
    named = [node for node in nodes if target in place_of(node).names]
    if not named:
        return Lack(f"its target {target} is not there: {counted(len(nodes), 'live node')}, none of that name", numbers)
    tests: tuple[tuple[Callable[[Node], bool], str], ...] = (
        (lambda node: node["state"] == "active", "is draining"),
        (lambda node: queue in node["queues"], f"does not serve queue {queue}"),
        (lambda node: task in node["tasks"], f"does not know task {task}"),
    )
    for passes, what in tests:
        named = [node for node in named if passes(node)]
        if not named:
            return Lack(f"its target {target} {what}", numbers)
    found = _with_enough(kind, wanted, named)
    return Lack(f"{found.text} (its target is {target})", found.numbers) if isinstance(found, Lack) else found


def _with_enough(kind: str, wanted: Needs, nodes: Sequence[Node]) -> Sequence[Node] | Lack:
    """Those with a slot of the kind, every label and, on one worker, every amount."""
    workers = sum(node["workers"] or 1 for node in nodes)
    there = f"{counted(workers, 'live worker')}, none"
    numbers: dict[str, Any] = {"needs": _told(wanted), "workers": workers, "nodes": len(nodes)}
    if not any(node["concurrency"].get(kind, 1) for node in nodes):
        option = f": taskq worker APP {_OPTIONS[kind]} N" if kind in _OPTIONS else ""
        return Lack(f"it needs a slot for {kind} tasks, {there} with one{option}", numbers)
    places = [(node, place_of(node)) for node in nodes if node["concurrency"].get(kind, 1)]
    found = [node for node, place in places if fits(wanted, place)]
    if found:
        return found
    all_of = [*(Needs(labels=(each,)) for each in wanted.labels), *(Needs(takes=(each,)) for each in wanted.takes)]
    missing = [each for each in all_of if not any(fits(each, place) for _, place in places)]
    if not missing:
        numbers["missing"] = []
        return Lack(f"it needs {_listed(all_of)} on one worker, {there} with all of it", numbers)
    numbers["missing"] = [_word(each) for each in missing]
    it = "it" if len(missing) == 1 else "them"
    return Lack(f"it needs {_listed(missing)}, {there} with {it}{_most(missing, places)}", numbers)


def _most(missing: Sequence[Needs], places: Sequence[tuple[Node, Place]]) -> str:
    """How much there is of the first amount that is too small everywhere; or that nobody was told to have any."""
    amounts = [each.takes[0][0] for each in missing if each.takes]
    if not amounts:
        return ""
    if not any(node["capacity"] for node, _ in places):
        return ": none was given a --capacity"
    most = max((place.capacity or {}).get(amounts[0], 0) for _, place in places)
    return f": the largest has {amounts[0]}={amount_text(most)}" if most else ""


def _word(each: Needs) -> str:
    if each.labels:
        return "label {}={}".format(*each.labels[0])
    name, amount = each.takes[0]
    return f"{name}={amount_text(amount)}"


def listed(wanted: Needs) -> str:
    """The amounts that are wanted: `cpu=2 and gpu=1`."""
    return _listed([Needs(takes=(each,)) for each in wanted.takes])


def _listed(needs: Sequence[Needs]) -> str:
    words = [_word(each) for each in needs]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def counted(n: int, what: str, more: str = "") -> str:
    """`1 node`, `2 nodes`; `more` stands behind the number."""
    return f"{n}{more} {what}{'s' * (n != 1)}"


def _told(wanted: Needs) -> dict[str, Any]:
    return {
        "labels": dict(wanted.labels),
        "resources": {name: number(each) for name, each in wanted.takes},
        "target": wanted.target or None,
    }
