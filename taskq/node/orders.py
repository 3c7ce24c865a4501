"""Does what the node was told to do from afar. Each order may come twice: it says how things shall be.

What was ordered stands in the node's own memory, so that it holds when Redis forgets; whether it was done is seen in
the node's record, which is written at once.
"""

from __future__ import annotations

from collections.abc import Callable

from taskq.commands import Order
from taskq.log import get_logger
from taskq.node.supervisor import Supervisor

log = get_logger(__name__)


class Orders:
    """One node's obedience.

    Args:
        supervisor: who sees to it.
        show: called when people may wait to see the change.
    """

    def __init__(self, supervisor: Supervisor, show: Callable[[], None]) -> None:
        self._supervisor = supervisor
        self._show = show

    def obey(self, order: Order) -> None:
        """Do it."""
        changed = False
        match order.verb:
            case "drain":
                changed = self._supervisor.rest()
            case "resume":
                changed = self._supervisor.go_on()
            case "stop":
                changed = not self._supervisor.ending.is_set()
                if changed:
                    self._supervisor.drain()
            case _:
                log.warning("an order that this version doesn't know", verb=order.verb, by=order.by)
        if changed:
            log.info("this node was told", verb=order.verb, by=order.by)
        self._show()
