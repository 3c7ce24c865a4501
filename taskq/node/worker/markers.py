"""The wake markers of a worker's queues: those it waits for, and those it took and can't act on, which it sets again.

A marker says "someone should claim", to one worker alone. Whoever takes one and has no slot for it passes it on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from taskq import commands
from taskq.log import get_logger
from taskq.node.loop import Outage
from taskq.node.worker.beside import Beside
from taskq.node.worker.source import Runs, Source
from taskq.node.worker.watch import Bell, Watch
from taskq.record.failure import line_of

log = get_logger(__name__)


class Line(Bell, Runs, Protocol):
    """What is needed of `AsyncServer`."""


class Markers:
    """The markers of some queues.

    Args:
        line: the way to Redis.
        sources: best first.
        apart: whether each queue may be on a shard of its own: then each has a wait of its own, and one that is away
            holds up none of the others.
        beside: where what they don't wait for goes on.
        free: asked for each queue: what it may take now, by pool.
        waits: asked for each: whether there is anything to wait for.
        kick: called when a marker was taken.
        stopped: set when nothing more is waited for.
        outage: shared with the other callers of this process.
    """

    def __init__(
        self,
        line: Line,
        sources: Sequence[Source],
        *,
        apart: bool,
        beside: Beside,
        free: Callable[[Source], Mapping[str, int]],
        waits: Callable[[Source], bool],
        kick: Callable[[], None],
        stopped: asyncio.Event,
        outage: Outage,
    ) -> None:
        self._line = line
        self._sources = sources
        self._apart = apart
        self._beside = beside
        self._free = free
        self._waits = waits
        self._kick = kick
        self._watches = [
            Watch(line, group, classes=self._awaited, woken=self._woken, stopped=stopped, outage=outage)
            for group in ([[source] for source in sources] if apart else [sources])
        ]

    def wait(self) -> list[asyncio.Task[None]]:
        """Begin to wait for them."""
        loop = asyncio.get_running_loop()
        return [loop.create_task(watch.run(), name="wait for markers") for watch in self._watches]

    def look(self) -> bool:
        """See that the waits are for what they should be. Whether they have to be looked at again soon."""
        again = [watch.look() for watch in self._watches]
        return any(again)

    async def pass_on(self, *, everything: bool, last: bool = False) -> None:
        """Set those again that were taken and can't be acted on: no slot is free, or no more is claimed (`everything`).

        What a shard holds up goes on beside, unless nothing comes after it (`last`).
        """
        for source in self._sources:
            free = self._free(source)
            classes = {each for each in source.woken if everything or source.room(each, free) <= 0}
            name = f"{source.keys.name} wake"
            if not classes or name in self._beside:
                continue
            if self._apart and not last:
                self._beside.start(name, self.set_again(source, classes))
            else:
                await self.set_again(source, classes)

    async def set_again(self, source: Source, classes: Iterable[str]) -> None:
        """Set the markers of these classes of a queue."""
        classes = sorted(classes)
        try:
            await self._line.run(commands.wake(source.keys, classes))
        except Exception as error:  # noqa: BLE001 (a hint; the others look now and then as well)
            log.debug("a marker could not be set again", queue=source.keys.name, error=line_of(error))
        source.woken.difference_update(classes)

    def _awaited(self, source: Source) -> list[str]:
        """The classes of a queue whose markers are to be waited for."""
        return source.awaited(self._free(source)) if self._waits(source) else []

    def _woken(self, source: Source, klass: str) -> None:
        source.wanted = True
        source.woken.add(klass)
        self._kick()
