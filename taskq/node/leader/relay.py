"""Relays firings to their queues while this node leads: what it has just caused at once, what others left behind too.

One task a queue, so that a shard that is away delays no other; it is tried again ever less often, and the time for that
stands in Redis, where the next leader finds it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from taskq import commands, keys
from taskq.commands import Command
from taskq.errors import LeadershipLost, ServerFull, TaskQError, Unavailable
from taskq.log import get_logger
from taskq.node.leader.lead import Leader
from taskq.node.queues import Queues
from taskq.schedules import Run
from taskq.schedules.relaying import adrive, relay

AGAIN_MS = 500  # after the first failure, doubled for each further one
AGAIN_MAX_MS = 30_000

log = get_logger(__name__)

T = TypeVar("T")


class Relay:
    """Relays for the leader.

    Args:
        queues: the way to Redis.
        namespace: whose.
        leader: whether this node leads.
        tell: called with each run once it is known what became of it.
    """

    def __init__(
        self, queues: Queues, namespace: str, leader: Leader, *, tell: Callable[[Run], None] = lambda _: None
    ) -> None:
        self._queues = queues
        self._namespace = namespace
        self._leader = leader
        self._tell = tell
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._failures: dict[str, int] = {}

    def begin(self, queue: str) -> None:
        """Relay what waits for a queue, beside whatever else there is to do."""
        if queue in self._tasks:
            self._again.add(queue)
            return
        task = asyncio.create_task(self._relay(queue), name=f"relay {queue}")
        self._tasks[queue] = task
        task.add_done_callback(lambda _: self._done(queue))

    def _done(self, queue: str) -> None:
        del self._tasks[queue]
        if queue in self._again:
            self._again.discard(queue)
            self.begin(queue)

    async def settle(self) -> None:
        """Wait until nothing is on its way."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Leave what is on its way to the next leader."""
        self._again.clear()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _relay(self, queue: str) -> None:
        term = self._leader.term
        if term is None:
            return

        async def run(command: Command[T]) -> T:
            if self._leader.term != term:
                raise LeadershipLost
            return await self._queues.run(command)

        try:
            for each in await adrive(relay(self._namespace, queue, term=term), run):
                self._tell(each)
        except LeadershipLost:
            return
        except (Unavailable, ServerFull) as error:
            await self._later(queue, error)
        except Exception:
            log.exception("relaying failed; it is tried again", queue=queue)
            await self._later(queue, None)
        else:
            if self._failures.pop(queue, 0):
                log.warning("firings reach their queue again", queue=queue)

    async def _later(self, queue: str, error: Exception | None) -> None:
        failures = self._failures[queue] = self._failures.get(queue, 0) + 1
        if failures == 1 and error is not None:
            log.warning("firings wait for their queue", queue=queue, error=str(error))
        again_ms = min(AGAIN_MAX_MS, AGAIN_MS * 2 ** min(failures - 1, 10))
        self._again.discard(queue)
        with contextlib.suppress(TaskQError):
            await self._queues.run(commands.relayed(keys.cluster(self._namespace), queue, again_ms=again_ms))
