"""The worker's side of `app.on_schedule`: its node says that a schedule has fired, and the app's observers are called.

In a thread of its own, one run after the other, because an observer may take its time; `async def` ones are awaited on
the worker's loop. It is told while the worker lives, and keeps nobody from ending.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from taskq.log import get_logger
from taskq.schedules import Run
from taskq.schedules.observing import tell

WAITING_MAX = 1000

log = get_logger(__name__)


class Teller:
    """Calls the observers. `loop`: where coroutines run."""

    def __init__(self, observers: Sequence[Callable[[Run], Any]], loop: asyncio.AbstractEventLoop) -> None:
        self._observers = observers
        self._loop = loop
        self._waiting: queue.Queue[Run] = queue.Queue(WAITING_MAX)
        self._thread: threading.Thread | None = None

    def hear(self, told: Mapping[str, Any]) -> None:
        """Take in what the node said. A run of a version that says it otherwise is passed over."""
        try:
            self._waiting.put_nowait(Run.from_dict(told))
        except (ValueError, TypeError, KeyError):
            return
        except queue.Full:
            log.warning("the observers of schedules are too slow: one run is not told", schedule=told["schedule"])
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._tell, name="observers", daemon=True)
            self._thread.start()

    def _tell(self) -> None:
        while True:
            tell(self._observers, self._waiting.get(), self._wait)

    def _wait(self, answer: Awaitable[Any]) -> Any:
        async def on_loop() -> Any:
            return await answer

        return asyncio.run_coroutine_threadsafe(on_loop(), self._loop).result()
