"""Whether any node could ever run a job, asked before it is sent: by what the nodes said of themselves a moment ago.

A job too large for every worker would wait for ever. Where a node hasn't said what it has, nobody can know, and
nothing is refused; nor where no node lives, which may still come. `strict` jobs are refused then too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taskq import needs
from taskq.errors import Unschedulable
from taskq.lacking import largest, place_of
from taskq.needs import Needs, amount_text

if TYPE_CHECKING:
    from taskq.calls import Plan

KEPT_S = 5.0
UNANSWERED_S = 30.0
"""So long after a question that nobody answered none is asked: each job would wait for it, though its queue is well."""
ASKED = 1000
"""Of more nodes than this not all are known, and nothing is refused."""

Node = Mapping[str, Any]


class Lately:
    """The live nodes as they were at most 5 s ago, unless the registry is away. `clock`: seconds, monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: tuple[float, Sequence[Node]] | None = None
        self._unanswered: float | None = None

    def asks(self, plan: Plan) -> bool:
        """Whether they must be asked for first: nobody is refused by what is no longer true."""
        if self._unanswered is not None and not plan.strict and self._clock() - self._unanswered < UNANSWERED_S:
            return False
        seen = self._seen
        return seen is None or self._clock() - seen[0] >= KEPT_S or _refusal(plan, seen[1]) is not None

    def take(self, nodes: Sequence[Node]) -> None:
        """Keeps them, each as the registry shows it, for a while."""
        self._seen, self._unanswered = (self._clock(), nodes), None

    def unanswered(self) -> None:
        """Nobody could say who is there: nothing is known for a while, and nobody is refused but who is strict."""
        self._seen, self._unanswered = None, self._clock()

    def check(self, plan: Plan) -> None:
        """Unschedulable says why none of them could run jobs of this plan."""
        seen = self._seen
        if seen is not None and (why := _refusal(plan, seen[1])):
            raise Unschedulable(f"a job of task {plan.task} would wait for ever: {why}")


def _refusal(plan: Plan, nodes: Sequence[Node]) -> str | None:
    return refusal(plan.q.name, plan.task, plan.needs, strict=plan.strict, nodes=nodes)


def refusal(queue: str, task: str, text: str, *, strict: bool, nodes: Sequence[Node]) -> str | None:
    """Why no node could run such a job; None if one could, or if that can't be known.

    Args:
        queue: where it would wait.
        task: its task's name.
        text: what it needs (`taskq.needs`).
        strict: whether somebody must be there now who is the one it is for.
        nodes: the nodes that live, as the registry shows them.
    """
    wanted = needs.parsed(text)
    if wanted is None or len(nodes) >= ASKED:
        return None
    serving = [node for node in nodes if queue in node["queues"] and node["state"] != "dead"]
    if strict:
        serving, why = _matching(serving, queue, task, wanted)
        if why:
            return why
    if not wanted.takes or not serving or not all(node["capacity"] for node in serving):
        return None
    return _too_large(queue, wanted, [largest(node) for node in serving])


def _matching(serving: list[Node], queue: str, task: str, wanted: Needs) -> tuple[list[Node], str]:
    """The nodes that the job is for; or why there are none."""
    found = serving
    if not found:
        return [], f"no live node serves queue {queue}"
    found = [node for node in found if task in node["tasks"]]
    if not found:
        return [], f"no live node of queue {queue} knows task {task}"
    found = [node for node in found if needs.matches(wanted._replace(target=""), place_of(node))]
    if not found:
        labels = ", ".join(f"{name}={value}" for name, value in wanted.labels)
        return [], f"no live node of queue {queue} with task {task} is labelled {labels}"
    found = [node for node in found if needs.matches(wanted, place_of(node))]
    if not found:
        return [], f"target {wanted.target} is no live node of queue {queue} with task {task} and these labels"
    return found, ""


def _too_large(queue: str, wanted: Needs, workers: Sequence[Mapping[str, int]]) -> str | None:
    def short(worker: Mapping[str, int]) -> list[tuple[str, int]]:
        return [(name, each) for name, each in wanted.takes if each > worker.get(name, 0)]

    nearest = min(workers, key=lambda worker: len(short(worker)))
    if not short(nearest):
        return None
    most = {name: max(worker.get(name, 0) for worker in workers) for name, _ in wanted.takes}
    for name, each in wanted.takes:
        if each > most[name]:
            has = amount_text(most[name])
            return f"it needs {name}={amount_text(each)}, and the largest worker of queue {queue} has {has}"
    name, each = short(nearest)[0]
    rest = ", ".join(f"{other}={amount_text(n)}" for other, n in wanted.takes if other != name)
    return (
        f"it needs {name}={amount_text(each)} together with {rest}, and no worker of queue {queue} has both:"
        f" the nearest has {name}={amount_text(nearest.get(name, 0))}"
    )
