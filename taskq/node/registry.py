"""Says that this node lives and what it knows: its record every 10 s; its queues, executor kinds and tasks at each new
hello, and once a minute after, because whoever emptied the server took them too.

Presence is for people and for "does anyone know this task?". It never ends a lease.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from taskq import commands, keys
from taskq.errors import Unavailable
from taskq.keys import QueueKeys
from taskq.node.channel import Hello
from taskq.node.options import NodeOptions
from taskq.node.queues import Queues
from taskq.settings import Settings

EVERY_S = 10.0
TTL_MS = 30_000
DECLARE_S = 60.0
CALL_TASKS = 250
_TASKS = ("tasks", "")


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


def _known(name: str, task: Mapping[str, Any]) -> commands.KnownTask:
    options = task.get("options")
    told = json.dumps(options, ensure_ascii=False, separators=(",", ":")) if options else ""
    return commands.KnownTask(name, str(task["queue"]), str(task["executor"]), told)


class Registry:
    """One node's entry in the registry. `hello`: the latest of its workers; `workers`: how many live now."""

    def __init__(
        self,
        queues: Queues,
        settings: Settings,
        node: str,
        options: NodeOptions,
        *,
        hello: Callable[[], Hello | None],
        workers: Callable[[], int],
    ) -> None:
        self._queues = queues
        self._cluster = keys.cluster(settings.namespace)
        self._retention = settings.retention
        self._node = node
        self._options = options
        self._hello = hello
        self._workers = workers
        self._said: dict[tuple[str, str], tuple[Hello, float]] = {}

    async def step(self) -> float:
        """Beat; say what is new, or was said long enough ago."""
        hello = self._hello()
        if hello is None:
            return EVERY_S
        failure: Unavailable | None = None
        for say in (self._beat, self._register, self._declare):
            try:  # the registry and the queues may be on different shards, of which one is away
                await say(hello)
            except Unavailable as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return EVERY_S

    async def _beat(self, hello: Hello) -> None:
        due, fields = self._is_due(_TASKS, hello), record(hello, self._options, self._workers())
        tasks = [_known(name, task) for name, task in hello.tasks.items()] if due else []
        for at in range(0, max(1, len(tasks)), CALL_TASKS):
            part = tasks[at : at + CALL_TASKS]
            await self._queues.run(
                commands.beat(self._cluster, node=self._node, ttl_ms=TTL_MS, fields=fields, tasks=part)
            )
        if due:
            self._is_said(_TASKS, hello)

    async def _register(self, hello: Hello) -> None:
        for queue in hello.queues:
            if self._is_due(("registered", queue), hello):
                await self._queues.run(commands.register_queue(self._cluster, queue))
                self._is_said(("registered", queue), hello)

    async def _declare(self, hello: Hello) -> None:
        due = [(queue, hello) for queue in hello.queues if self._is_due(("declared", queue), hello)]
        await self._queues.each_part(due, self._declare_queue)

    async def _declare_queue(self, q: QueueKeys, hello: Hello) -> None:
        kept = self._retention
        retention = {
            "keep_completed": kept.completed_ms,
            "keep_failed": kept.failed_ms,
            "keep_cancelled": kept.cancelled_ms,
            "max_completed": kept.max_completed,
            "max_failed": kept.max_failed,
        }
        kinds = [(name, str(task["executor"])) for name, task in hello.tasks.items() if task["queue"] == q.name]
        for at in range(0, max(1, len(kinds)), CALL_TASKS):
            part = dict(kinds[at : at + CALL_TASKS])
            await self._queues.run(commands.declare(q, kinds=part, retention=retention))
        self._is_said(("declared", q.name), hello)

    def _is_due(self, what: tuple[str, str], hello: Hello) -> bool:
        said, at = self._said.get(what, (None, 0.0))
        return said is not hello or time.monotonic() - at >= DECLARE_S

    def _is_said(self, what: tuple[str, str], hello: Hello) -> None:
        self._said[what] = hello, time.monotonic()

    async def depart(self) -> None:
        """Take the record away. Raises Unavailable; it then goes by itself."""
        await self._queues.run(commands.depart(self._cluster, self._node), deadline_s=1.0)
