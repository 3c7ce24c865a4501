"""What the nodes say of tasks that a producer knows by name alone: where they are served, and their jobs' options.

They are asked at a task's first job, and their word is kept while the process lives. Of a task that nobody knows a
line is logged once, because a mistyped one would wait for ever.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from taskq.commands import Declaration, declare
from taskq.errors import nearest
from taskq.fitting import Lately
from taskq.options import ORDER, Options, heard, merge

if TYPE_CHECKING:
    from taskq.calls import Plan
    from taskq.commands import Command
    from taskq.log import Logger

AGAIN_S = 10.0
SAID_S, MOST_SAID = 60.0, 10_000
"""So often limits that calls name are said to a queue; of more than so many, the oldest are forgotten first."""

FRESH_MS = 120_000
"""A node says once a minute which tasks it knows: what was said longer ago than twice that is no longer true."""

_NOTHING = Options()


class Hearsay:
    """What one app has heard. `lately`: the nodes that live."""

    def __init__(self) -> None:
        self.lately = Lately()
        self._heard: dict[str, Options] = {}
        self._order: dict[str, list[str]] = {}
        self._limited: dict[str, float] = {}  # queue and limits: when the queue was told of their numbers
        self._unknown: dict[str, float] = {}  # tasks that nobody knew: when they were last asked for

    def unsaid(self, plan: Plan) -> Command[Declaration] | None:
        """What tells the queue the numbers of limits that no worker's code may say, if it wasn't told lately."""
        if not plan.limits or time.monotonic() - self._limited.get(plan.limits_key, -SAID_S) < SAID_S:
            return None
        return declare(plan.q, kinds={}, retention={}, limits=plan.limits, by_call=True)

    def is_said(self, plan: Plan) -> None:
        """The queue was told."""
        now = time.monotonic()
        if len(self._limited) >= MOST_SAID:
            self._limited = {said: at for said, at in list(self._limited.items()) if now - at < SAID_S}
        if len(self._limited) >= MOST_SAID:
            self._limited.clear()
        self._limited[plan.limits_key] = now

    def options(self, task: str) -> Options:
        """The queue and the options that the nodes give to the task's jobs; nothing while none has said anything."""
        return self._heard.get(task, _NOTHING)

    def knows(self, task: str) -> bool:
        """Whether a node has said something of it."""
        return task in self._heard

    def order(self, task: str) -> list[str]:
        """The task's parameters by place, once its nodes have told of them."""
        return self._order.get(task, [])

    def is_due(self, task: str, *, urgent: bool) -> bool:
        """Whether to ask for the task: unless the answer is known, at each job if `urgent`, else now and then."""
        if task in self._heard:
            return False
        return urgent or time.monotonic() - self._unknown.get(task, -AGAIN_S) >= AGAIN_S

    def take(self, task: str, info: Mapping[str, str] | None) -> bool:
        """Take an answer in; whether it says for the first time that nobody knows the task."""
        if info is None:
            first = task not in self._unknown
            self._unknown[task] = time.monotonic()
            return first
        words = _words(info)
        self._heard[task] = merge(heard(words), Options(queue=info["queue"]))
        self._order[task] = _texts(words.get(ORDER)) if isinstance(words, dict) else []
        other = other_queue(info)
        if other is not None:
            _log().warning("workers serve this task from two queues", task=task, queue=info["queue"], other=other)
        return False


def doubt(task: str, queue: str, nodes: Iterable[Mapping[str, Any]]) -> None:
    """Log that nobody knows a task whose job is sent all the same, and the nearest of those that nodes know."""
    hint = nearest_task(task, {name for node in nodes for name in node["tasks"]}).strip(" ()")
    more = {"hint": hint} if hint else {}
    _log().warning("no worker knows this task: its jobs wait until one does", task=task, queue=queue, **more)


def _log() -> Logger:
    from taskq.log import get_logger  # it brings logging along, and most producers never mistype

    return get_logger(__name__)


def _words(info: Mapping[str, str]) -> Any:
    try:
        return json.loads(info.get("options") or "{}")
    except (ValueError, RecursionError):  # written by another version, or by hand
        return {}


def _texts(words: object) -> list[str]:
    return [word for word in words if isinstance(word, str)] if isinstance(words, list) else []


def other_queue(info: Mapping[str, str]) -> str | None:
    """The other queue from which living nodes serve the task too, if they do."""
    other, seen = info.get("also"), info.get("also_seen", "")
    if other in (None, info["queue"]) or not (seen.isdecimal() and info.get("now", "").isdecimal()):
        return None
    return other if int(info["now"]) - int(seen) <= FRESH_MS else None


def nearest_task(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'shop.orders.report'?)`: those that end in the name, else the one that looks like it, or ''."""
    names = sorted(known)
    ending = [each for each in names if each.endswith(f".{name}")]
    if ending:
        return f" (did you mean {' or '.join(map(repr, ending[:3]))}?)"
    near = nearest(name, names)
    if near is None and "." not in name:
        by_end = {each.rpartition(".")[2]: each for each in names}
        end = nearest(name, by_end)
        near = None if end is None else by_end[end]
    return "" if near is None else f" (did you mean {near!r}?)"
