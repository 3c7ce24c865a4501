"""What goes on beside a loop that must not wait for it: named tasks, one of a name at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Beside:
    """Tasks of this event loop, by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    def __contains__(self, name: str) -> bool:
        """Whether one of that name is under way."""
        task = self._tasks.get(name)
        return task is not None and not task.done()

    def start(self, name: str, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Begin one, of whose name none is under way."""
        task = self._tasks[name] = asyncio.get_running_loop().create_task(coroutine, name=f"beside: {name}")
        return task

    def cancel(self) -> None:
        """End them all."""
        for task in self._tasks.values():
            task.cancel()
