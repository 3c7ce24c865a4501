"""The queues a node serves, and how its loops care for all of them: a few at a time, so that many queues need few
connections, and so that one whose shard is away delays no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from taskq import keys
from taskq.commands import Command
from taskq.connection import AsyncServer, run_async, run_many_async
from taskq.errors import Unavailable
from taskq.keys import QueueKeys

AT_ONCE = 4
CALL_S = 2.0

T = TypeVar("T")


class Queues:
    """The queues of one namespace, behind one server.

    Args:
        server: the way to Redis.
        namespace: of all the queues.
        names: asked each time: a worker started later may serve more.
    """

    def __init__(self, server: AsyncServer, namespace: str, names: Callable[[], Iterable[str]] = tuple) -> None:
        self._server = server
        self._namespace = namespace
        self._names = names

    async def run(self, command: Command[T], *, deadline_s: float = CALL_S) -> T:
        """Send a command. Raises as `taskq.connection.run`."""
        return await run_async(self._server, command, deadline_s=deadline_s)

    async def run_many(self, commands: Sequence[Command[T]], *, deadline_s: float = CALL_S) -> list[T]:
        """Send commands together. Raises as `taskq.connection.run_many`."""
        return await run_many_async(self._server, commands, deadline_s=deadline_s)

    async def each(self, work: Callable[[QueueKeys], Awaitable[None]]) -> None:
        """Do `work` for every queue. Raises as `each_part`."""
        await self.each_part(((name, None) for name in self._names()), lambda q, _: work(q))

    async def each_part(self, parts: Iterable[tuple[str, T]], work: Callable[[QueueKeys, T], Awaitable[None]]) -> None:
        """Do `work` for every part, each said with the name of its queue.

        The first error is raised after all were tried; Unavailable only if there is no other. Those of a shard that is
        known not to answer come last, and once one of them has failed, the others of that shard are left out: they
        would wait in vain, and the step with them.
        """
        places = asyncio.Semaphore(AT_ONCE)
        failed: dict[object, Unavailable] = {}

        async def one(q: QueueKeys, part: T) -> None:
            async with places:
                if failed and (known := failed.get(self._away(q))) is not None:
                    raise known
                try:
                    await work(q, part)
                except Unavailable as error:
                    if (shard := self._away(q)) is not None:
                        failed[shard] = error
                    raise

        known = [(keys.queue(self._namespace, name), part) for name, part in parts]
        known.sort(key=lambda pair: self._away(pair[0]) is not None)
        answers = await asyncio.gather(*(one(q, part) for q, part in known), return_exceptions=True)
        errors = [answer for answer in answers if answer is not None]
        for error in sorted(errors, key=lambda error: isinstance(error, Unavailable)):
            raise error

    def _away(self, q: QueueKeys) -> object:
        """The shard of a queue while that is known not to answer, else None."""
        return self._server.away(q.prefix)
