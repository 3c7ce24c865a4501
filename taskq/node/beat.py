"""Tells every worker twice a second that its node lives. It needs no Redis: during an outage nobody can renew, and
what runs goes on; but when the node itself is stopped or gone, its workers must know within 3 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from taskq.node.children.child import Child

EVERY_S = 0.5


class Beat:
    """Beats in the table of every child there is."""

    def __init__(self, children: Callable[[], Iterable[Child]]) -> None:
        self._children = children

    async def step(self) -> float:
        """Beat once."""
        for child in self._children():
            child.table.beat_node()
        return EVERY_S
