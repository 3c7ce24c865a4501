"""Says that this node lives and what it knows: its record every 10 s; its queues, executor kinds and tasks at each new
hello, and once a minute after.

A node whose record was lost (somebody emptied the server), or that was taken for dead (a laptop that slept, a server
that was away), registers again, and says the rest again at once, which may have gone with it.
Presence is for people and for "does anyone know this task?". It never ends a lease.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from taskq import commands, keys
from taskq.commands import Declared, Registered
from taskq.errors import NodeNotFound, Unavailable
from taskq.keys import QueueKeys
from taskq.log import get_logger
from taskq.node.channel import Hello
from taskq.node.doings import identity
from taskq.node.options import NodeOptions
from taskq.node.queues import Queues
from taskq.settings import Settings

EVERY_S = 10.0
LOOK_S = 0.5  # how soon a change is told
RECORD_MS = 600_000  # for how long a record outlives its last beat: whether a node lives is judged by that beat
DECLARE_S = 60.0
CALL_TASKS = 250
DEPART_S = 1.0
_TASKS = ("tasks", "")
_QUEUE = Declared._fields.index("queue")

log = get_logger(__name__)


def _known(name: str, task: Mapping[str, Any]) -> commands.KnownTask:
    options = task.get("options")
    told = json.dumps(options, ensure_ascii=False, separators=(",", ":")) if options else ""
    about = {word: task[word] for word in ("parameters", "settings") if task.get(word)}
    more = json.dumps(about, ensure_ascii=False, separators=(",", ":")) if about else ""
    return commands.KnownTask(name, str(task["queue"]), str(task["executor"]), told, more)


class Registry:
    """One node's entry in the registry.

    Args:
        queues: the way to Redis.
        settings: the node's.
        node: its id.
        options: what it was asked for.
        hello: the latest of its workers.
        doings: what it does now, as fields of its record.
        lost: called when the record was lost.
    """

    def __init__(
        self,
        queues: Queues,
        settings: Settings,
        node: str,
        options: NodeOptions,
        *,
        hello: Callable[[], Hello | None],
        doings: Callable[[], dict[str, str | int]],
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._queues = queues
        self._cluster = keys.cluster(settings.namespace)
        self._retention = settings.retention
        self._node = node
        self._options = options
        self._hello = hello
        self._doings = doings
        self._lost = lost
        self._said: dict[tuple[str, str], tuple[Hello, float]] = {}
        self._registered = Registered(0, 0)
        self._told: Hello | None = None
        self._limits: dict[str, dict[str, str]] | None = None
        self._limits_since = 0.0
        self._told_of: dict[tuple[str, str], str] = {}
        self._beaten = float("-inf")
        self._under_way: asyncio.Task[Registered] | None = None

    def soon(self) -> None:
        """Something has changed that people wait to see: beat at once."""
        self._beaten = float("-inf")

    async def step(self) -> float:
        """Beat, if it is time; say what is new, or was said long enough ago."""
        hello = self._hello()
        if hello is None or (hello is self._told and time.monotonic() - self._beaten < EVERY_S):
            return LOOK_S
        beaten, self._beaten = self._beaten, time.monotonic()
        failure: Unavailable | None = None
        for say in (self._beat, self._register, self._declare):
            try:  # the registry and the queues may be on different shards, of which one is away
                await say(hello)
            except Unavailable as error:
                failure = failure or error
        if failure is not None:
            self._beaten = beaten
            raise failure
        return LOOK_S

    async def _beat(self, hello: Hello) -> None:
        if self._told is None:
            await self._queues.run(commands.forget_nodes(self._cluster))
            await self._enter(hello)
        due, fields = self._is_due(_TASKS, hello), self._doings()
        if hello is not self._told:
            fields = identity(hello, self._options) | fields
        try:
            await self._say(fields, hello if due else None)
        except NodeNotFound as error:
            log.warning("this node registers again", node=self._node, reason=str(error))
            await self._enter(hello)
            self._said.clear()
            self._lost()
            due = True
            await self._say(fields, hello)
        self._told = hello
        if due:
            self._is_said(_TASKS, hello)

    async def _say(self, fields: dict[str, str | int], hello: Hello | None) -> None:
        """A beat, with the tasks of the hello, if one is given."""
        tasks = [_known(name, task) for name, task in hello.tasks.items()] if hello else []
        for at in range(0, max(1, len(tasks)), CALL_TASKS):
            await self._queues.run(self._command(commands.beat, fields, tasks[at : at + CALL_TASKS]))

    async def _enter(self, hello: Hello) -> None:
        """Register. Seen to its end even if this loop is ended meanwhile: it must not come after the leave."""
        fields = identity(hello, self._options) | self._doings()
        command = self._command(commands.register_node, fields, (), known=self._registered)
        self._under_way = asyncio.create_task(self._queues.run(command))
        self._registered = await asyncio.shield(self._under_way)

    def _command(self, build: Callable[..., commands.Command[Any]], fields: Any, tasks: Any, **more: Any) -> Any:
        return build(self._cluster, node=self._node, ttl_ms=RECORD_MS, fields=fields, tasks=tasks, **more)

    async def _register(self, hello: Hello) -> None:
        for queue in hello.queues:
            if self._is_due(("registered", queue), hello):
                await self._queues.run(commands.register_queue(self._cluster, queue))
                self._is_said(("registered", queue), hello)

    async def _declare(self, hello: Hello) -> None:
        # Of a queue that it doesn't serve it says the limits of what its schedules put there: no producer would.
        fired = [each[_QUEUE] for each in hello.schedules if each[_QUEUE] in hello.limits]
        queues = dict.fromkeys([*hello.queues, *fired])
        due = [(queue, hello) for queue in queues if self._is_due(("declared", queue), hello)]
        await self._queues.each_part(due, self._declare_queue)

    async def _declare_queue(self, q: QueueKeys, hello: Hello) -> None:
        is_served = q.name in hello.queues
        retention = self._kept() if is_served else {}
        tasks = hello.tasks.items() if is_served else ()
        kinds = [(name, str(task["executor"])) for name, task in tasks if task["queue"] == q.name]
        for at in range(0, max(1, len(kinds)), CALL_TASKS):
            part = dict(kinds[at : at + CALL_TASKS])
            limits = hello.limits.get(q.name, {}) if at == 0 else {}
            age_ms = self._age_ms(hello)
            command = commands.declare(q, kinds=part, retention=retention, limits=limits, age_ms=age_ms)
            self._tell_of(q.name, limits, (await self._queues.run(command)).later)
        self._is_said(("declared", q.name), hello)

    def _kept(self) -> dict[str, int]:
        kept = self._retention
        return {
            "keep_completed": kept.completed_ms,
            "keep_failed": kept.failed_ms,
            "keep_cancelled": kept.cancelled_ms,
            "max_completed": kept.max_completed,
            "max_failed": kept.max_failed,
        }

    def _age_ms(self, hello: Hello) -> int:
        """How long this node has said these numbers: a worker that starts again with the same code says nothing new."""
        if hello.limits != self._limits:
            self._limits, self._limits_since = hello.limits, time.monotonic()
        return int((time.monotonic() - self._limits_since) * 1000)

    def _tell_of(self, queue: str, limits: dict[str, str], later: dict[str, str]) -> None:
        for name, numbers in later.items():
            if self._told_of.get((queue, name)) != numbers:
                log.warning(
                    "another version of the code says otherwise of a limit, and said it later: that counts",
                    queue=queue,
                    limit=name,
                    here=limits[name],
                    there=numbers,
                )
            self._told_of[queue, name] = numbers

    def _is_due(self, what: tuple[str, str], hello: Hello) -> bool:
        said, at = self._said.get(what, (None, 0.0))
        return said is not hello or time.monotonic() - at >= DECLARE_S

    def _is_said(self, what: tuple[str, str], hello: Hello) -> None:
        self._said[what] = hello, time.monotonic()

    async def depart(self) -> None:
        """Take the record away; no step may follow. Raises Unavailable; the record is then forgotten after a while."""
        if self._under_way is not None and not self._under_way.done():
            await asyncio.wait({self._under_way}, timeout=DEPART_S)
        await self._queues.run(commands.depart(self._cluster, self._node), deadline_s=DEPART_S)
