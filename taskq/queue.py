"""`app.queue("email")`: a queue to pause, resume, empty and count. Making one does no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taskq.client.sweep import CLEARED
from taskq.commands import WAITING, Counts
from taskq.home import Home
from taskq.settings import checked_name
from taskq.state import State, StateName
from taskq.units import Duration


class Queue:
    """A queue of the app, by its name. ValueError if it can be no queue's name.

    Its methods raise QueueNotFound if nothing was ever enqueued in it and no worker serves it: a mistyped name.
    """

    __slots__ = ("_home", "name")

    def __init__(self, home: Home, name: str) -> None:
        self._home = home
        self.name = checked_name(name, name="queue")

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    def pause(self) -> bool:
        """Stop handing out its jobs, everywhere, from the next claim on; whether that changed anything."""
        return self._home.client.pause(self.name)

    async def apause(self) -> bool:
        """As `pause`, awaited."""
        return await self._home.aclient.pause(self.name)

    def resume(self) -> bool:
        """Hand them out again; whether that changed anything."""
        return self._home.client.resume(self.name)

    async def aresume(self) -> bool:
        """As `resume`, awaited."""
        return await self._home.aclient.resume(self.name)

    def purge(self, *, states: Sequence[str] = WAITING) -> int:
        """Cancel its waiting jobs (reason `purged`), all or those of some states; how many. Running ones go on."""
        return self._home.client.purge(self.name, states=states)

    async def apurge(self, *, states: Sequence[str] = WAITING) -> int:
        """As `purge`, awaited."""
        return await self._home.aclient.purge(self.name, states=states)

    def clear(self, *, states: Sequence[str] = CLEARED, older_than: Duration = 0, limit: int | None = None) -> int:
        """Delete its ended jobs for good; how many.

        Args:
            states: which; the failed and the cancelled unless it says otherwise.
            older_than: only those that ended at least so long ago.
            limit: at most so many, state after state, the longest ended of each first; None for all.
        """
        return self._home.client.clear(self.name, states=states, older_than=older_than, limit=limit)

    async def aclear(
        self, *, states: Sequence[str] = CLEARED, older_than: Duration = 0, limit: int | None = None
    ) -> int:
        """As `clear`, awaited."""
        return await self._home.aclient.clear(self.name, states=states, older_than=older_than, limit=limit)

    def counts(self) -> Counts:
        """How many jobs are in each state, and whether the queue is paused."""
        return self._home.inspector.counts(self.name)

    async def acounts(self) -> Counts:
        """As `counts`, awaited."""
        return await self._home.inspector.acounts(self.name)

    def jobs(self, state: State | StateName | None = None, *, limit: int = 50, offset: int = 0) -> Mapping[str, Any]:
        """A page of its jobs: `{data, total, limit, offset}`. See `Inspector.jobs`."""
        return self._home.inspector.jobs(state=state, queue=self.name, limit=limit, offset=offset)

    async def ajobs(
        self, state: State | StateName | None = None, *, limit: int = 50, offset: int = 0
    ) -> Mapping[str, Any]:
        """As `jobs`, awaited."""
        return await self._home.inspector.ajobs(state=state, queue=self.name, limit=limit, offset=offset)
