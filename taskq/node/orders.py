"""Does what the node was told to do from afar. Each order may come twice: it says how things shall be.

What was ordered stands in the node's own memory, so that it holds when Redis forgets; whether it was done is seen in
the node's record, which is written at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from taskq.commands import Order
from taskq.log import get_logger
from taskq.node.children.allotment import Allotment
from taskq.node.children.supervisor import Supervisor

log = get_logger(__name__)


class Orders:
    """One node's obedience.

    Args:
        supervisor: who sees to it.
        allotment: the slots of the queues that are scaled.
        show: called when people may wait to see the change.
    """

    def __init__(self, supervisor: Supervisor, allotment: Allotment, show: Callable[[], None]) -> None:
        self._supervisor = supervisor
        self._allotment = allotment
        self._show = show

    def obey(self, order: Order) -> None:
        """Do it."""
        said, changed = _said(order.more), False
        match order.verb:
            case "drain":
                changed = self._supervisor.rest()
            case "resume":
                changed = self._supervisor.go_on()
            case "stop":
                changed = not self._supervisor.ending.is_set()
                if changed:
                    self._supervisor.drain()
            case "scale":
                changed = self._scale(order, said) | self._allotment.allot(said.get("queues"))
            case _:
                log.warning("an order that this version doesn't know", verb=order.verb, by=order.by)
        if changed:
            log.info("this node was told", verb=order.verb, by=order.by, **said)
        self._show()

    def _scale(self, order: Order, said: dict[str, Any]) -> bool:
        """`workers`: how many processes, or from how many to how many; `within`: how many of these, as the leader says;
        `slots`: how many coroutines each runs at a time. The rest is for others.
        """
        ours = {name: said[name] for name in ("workers", "within", "slots") if name in said}
        try:
            return self._supervisor.scale(**ours) if ours else False
        except (TypeError, ValueError) as error:
            log.warning("an order that can't be done", verb=order.verb, by=order.by, error=str(error))
            return False


def _said(more: str) -> dict[str, Any]:
    """What an order said besides its verb."""
    try:
        said = json.loads(more or "{}")
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
