"""Says that this node lives and what it knows: its record every 10 s; its queues, executor kinds and tasks at each new
hello, and once a minute after, because whoever emptied the server took them too.

Presence is for people and for "does anyone know this task?". It never ends a lease.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Sequence

from taskq import commands, keys
from taskq.connection import AsyncServer, run_async
from taskq.errors import Unavailable
from taskq.node.channel import Hello
from taskq.node.loop import each
from taskq.node.options import NodeOptions
from taskq.settings import Settings

EVERY_S = 10.0
TTL_MS = 30_000
DECLARE_S = 60.0
CALL_TASKS = 250
_CALL_S = 2.0


def record(hello: Hello, options: NodeOptions, workers: int) -> dict[str, str | int]:
    """What the node's record shows beside its id and last_seen; lists as JSON."""
    return {
        "hostname": socket.gethostname(),
        "pid": os.getpid(),
        "version": hello.version,
        "queues": json.dumps(hello.queues),
        "tasks": json.dumps(sorted(hello.tasks)),
        "workers": workers,
        "concurrency": options.concurrency,
        "threads": options.threads,
    }


class Registry:
    """One node's entry in the registry. `hello`: the latest of its workers; `workers`: how many live now."""

    def __init__(
        self,
        server: AsyncServer,
        settings: Settings,
        node: str,
        options: NodeOptions,
        *,
        hello: Callable[[], Hello | None],
        workers: Callable[[], int],
    ) -> None:
        self._server = server
        self._settings = settings
        self._node = node
        self._options = options
        self._hello = hello
        self._workers = workers
        self._declared: object = None
        self._declared_at = 0.0

    async def step(self) -> float:
        """Beat; declare what is new, or old enough to be said again."""
        hello = self._hello()
        if hello is None:
            return EVERY_S
        due = hello is not self._declared or time.monotonic() - self._declared_at >= DECLARE_S
        failure: Unavailable | None = None
        for say in (self._greet, self._declare) if due else (self._beat,):
            try:  # the registry and the queues may be on different shards, of which one is away
                await say(hello)
            except Unavailable as error:
                failure = failure or error
        if failure is not None:
            raise failure
        if due:
            self._declared, self._declared_at = hello, time.monotonic()
        return EVERY_S

    async def _greet(self, hello: Hello) -> None:
        await self._beat(
            hello, [(name, str(task["queue"]), str(task["executor"])) for name, task in hello.tasks.items()]
        )

    async def _beat(self, hello: Hello, tasks: Sequence[tuple[str, str, str]] = ()) -> None:
        fields = record(hello, self._options, self._workers())
        for at in range(0, max(1, len(tasks)), CALL_TASKS):
            command = commands.beat(
                keys.cluster(self._settings.namespace),
                node=self._node,
                ttl_ms=TTL_MS,
                fields=fields,
                tasks=tasks[at : at + CALL_TASKS],
            )
            await run_async(self._server, command, deadline_s=_CALL_S)

    async def _declare(self, hello: Hello) -> None:
        await each(lambda queue: self._declare_queue(hello, queue), hello.queues, self._away)
        for queue in hello.queues:
            command = commands.register_queue(keys.cluster(self._settings.namespace), queue)
            await run_async(self._server, command, deadline_s=_CALL_S)

    async def _declare_queue(self, hello: Hello, queue: str) -> None:
        kept = self._settings.retention
        retention = {
            "keep_completed": kept.completed_ms,
            "keep_failed": kept.failed_ms,
            "keep_cancelled": kept.cancelled_ms,
            "max_completed": kept.max_completed,
            "max_failed": kept.max_failed,
        }
        kinds = [(name, str(task["executor"])) for name, task in hello.tasks.items() if task["queue"] == queue]
        q = keys.queue(self._settings.namespace, queue)
        for at in range(0, max(1, len(kinds)), CALL_TASKS):
            command = commands.declare(q, kinds=dict(kinds[at : at + CALL_TASKS]), retention=retention)
            await run_async(self._server, command, deadline_s=_CALL_S)

    def _away(self, queue: str) -> object:
        return self._server.away(keys.queue(self._settings.namespace, queue).prefix)

    async def depart(self) -> None:
        """Take the record away. Raises Unavailable; it then goes by itself."""
        command = commands.depart(keys.cluster(self._settings.namespace), self._node)
        await run_async(self._server, command, deadline_s=1.0)
