"""Declares the schedules of the app's code: at each new hello, and once a minute after, since what nobody declares any
more stops firing.

All the nodes of an app say the same, and it is one schedule. Of two versions of the code that run beside each other
the later one counts: a hello's age is told with it, by the server's clock.
"""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Callable, Iterator

from taskq import commands
from taskq.commands import Declared
from taskq.keys import ClusterKeys
from taskq.node.channel import Hello
from taskq.node.queues import Queues

EVERY_S = 2.0  # a look at the hello, no call
DECLARE_S = 60.0
CALL_SCHEDULES = 250
CALL_BYTES = 262_144


class Timetable:
    """What one node declares. `hello`: the latest of its workers."""

    def __init__(self, queues: Queues, c: ClusterKeys, *, hello: Callable[[], Hello | None]) -> None:
        self._queues = queues
        self._c = c
        self._hello = hello
        self._said: list[list[str]] = []
        self._declared_at: int | None = None
        self._at = float("-inf")

    def soon(self) -> None:
        """What was declared may be lost: declare it again at the next step, as the same that was said before."""
        self._at = float("-inf")

    async def step(self) -> float:
        """Declare, if it is new or was said long enough ago."""
        hello = self._hello()
        if hello is None:
            return EVERY_S
        if hello.schedules != self._said:  # a worker that was started again with the same code says nothing new
            self._said, self._declared_at, self._at = hello.schedules, None, float("-inf")
        if self._said and time.monotonic() - self._at >= DECLARE_S:
            for part in parts([read(each) for each in self._said]):
                command = commands.declare_schedules(self._c, part, declared_at=self._declared_at)
                answer = await self._queues.run(command)
                self._declared_at = answer[0]
            self._at = time.monotonic()
        return EVERY_S


def read(told: list[str]) -> Declared:
    """A schedule as a hello has it."""
    name, rule, overlap, queue, task, template = told
    return Declared(name, rule, overlap, queue, task, b64decode(template))


def parts(declared: list[Declared]) -> Iterator[list[Declared]]:
    """As many at once as a call may carry."""
    part: list[Declared] = []
    size = 0
    for each in declared:
        if part and (len(part) == CALL_SCHEDULES or size + len(each.template) > CALL_BYTES):
            yield part
            part, size = [], 0
        part.append(each)
        size += len(each.template)
    yield part
