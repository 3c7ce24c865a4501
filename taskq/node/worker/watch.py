"""Sleeping on wake markers: one blocked call, on the markers of some queues, kept to what it should wait for.

A marker is a hint that this worker takes from the others. One server can hold a wait for all queues; in a cluster each
queue may be on a shard of its own, and has a wait of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from taskq.errors import Unavailable
from taskq.log import get_logger
from taskq.node.loop import Outage, again_s
from taskq.node.worker.source import Source
from taskq.record.failure import line_of

BLOCK_S = 5.0

log = get_logger(__name__)


class Bell(Protocol):
    """What a watch needs of `AsyncServer`."""

    def block(self, keys: Sequence[str], timeout_s: float, /) -> Awaitable[str | None]:
        """Wait for a marker and take it."""

    def unblock(self, key: str, /) -> Awaitable[None]:
        """End the wait for a key, or for others of its queue, early."""


class Watch:
    """One wait.

    Args:
        bell: the way to Redis.
        sources: the queues whose markers it waits for, best first.
        classes: asked for each: the classes that could be acted on.
        woken: told of each marker that was taken, or may have been.
        stopped: set when nothing more is waited for.
        outage: shared with the other callers of this process.
    """

    def __init__(
        self,
        bell: Bell,
        sources: Sequence[Source],
        *,
        classes: Callable[[Source], Iterable[str]],
        woken: Callable[[Source, str], None],
        stopped: asyncio.Event,
        outage: Outage,
    ) -> None:
        self._bell = bell
        self._sources = sources
        self._classes = classes
        self._woken = woken
        self._stopped = stopped
        self._outage = outage
        self._rest = asyncio.Event()
        self._blocked: dict[str, tuple[Source, str]] | None = None
        self._ending: asyncio.Task[None] | None = None

    def look(self) -> bool:
        """See that it waits for what it should. Whether it has to be looked at again soon: an unblock that arrives
        before the wait it should end does nothing.
        """
        if self._blocked is None:
            self._rest.set()
            return False
        if not self._stopped.is_set() and self._markers().keys() <= self._blocked.keys():
            return False
        if self._ending is None or self._ending.done():
            # Beside: what serves this queue may be away, and the others must not wait for that.
            self._ending = asyncio.get_running_loop().create_task(self._unblock(next(iter(self._blocked))))
        return True

    async def run(self) -> None:
        """Wait, again and again, until `stopped`."""
        failures = 0
        while not self._stopped.is_set():
            self._blocked = markers = self._markers()
            if not markers:
                self._blocked = None
                self._rest.clear()
                await self._rest.wait()
                continue
            try:
                popped = await self._bell.block(list(markers), BLOCK_S)
            except Exception as error:  # noqa: BLE001 (a watch that ends would leave a worker that does nothing)
                # A marker may have been popped and lost on its way: every queue is looked at.
                failures += 1
                if isinstance(error, Unavailable):
                    self._outage.begins(error, self._sources[0].keys.name)
                else:
                    log.warning("waiting for work failed; trying again", error=line_of(error))
                for source, klass in markers.values():
                    self._woken(source, klass)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), again_s(failures))
                continue
            finally:
                self._blocked = None
            failures = 0
            if popped is not None:
                self._woken(*markers[popped])

    def _markers(self) -> dict[str, tuple[Source, str]]:
        """The markers to wait for, and what each is of."""
        return {source.keys.wake(klass): (source, klass) for source in self._sources for klass in self._classes(source)}

    async def _unblock(self, key: str) -> None:
        try:
            await self._bell.unblock(key)
        except Exception as error:  # noqa: BLE001 (the wait ends by itself soon)
            log.debug("unblock failed", error=line_of(error))
