"""What becomes of what a dead worker held: decided here, done by the `bury` script, repeated until it is answered.

Where Redis refuses it again and again, the leases are left to end, and the node won't end with 0.

One call per queue the worker served, also where its table shows nothing: the call marks the worker gone, gives back
what its last claim remembers, and sets the markers it may have taken along.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Literal, TypeVar

from taskq import commands, keys
from taskq.commands import Buried, Command
from taskq.connection import AsyncServer, run_async
from taskq.errors import Unavailable
from taskq.log import get_logger
from taskq.node.children.child import Child
from taskq.node.loop import again_s
from taskq.node.table import Entry
from taskq.record.failure import line_of
from taskq.retry import DEFAULT_BACKOFF, Backoff

CALL_JOBS = 250
_CALL_S = 2.0
_PAUSE_S = 0.5
TRIES = 15  # of a call that the server refuses: about half a minute

log = get_logger(__name__)

T = TypeVar("T")
Verb = Literal["lost", "ended", "refund", "timeout"]


def verb_for(entry: Entry, killed_for: str, culprits: frozenset[tuple[str, int]]) -> Verb:
    """What had ended has had its attempt, whoever killed the worker: given back for nothing it would run once more than
    it may. A worker that died by itself takes an attempt of all it ran: one of them may have killed it, nobody knows
    which; so does one that was killed for its memory. Where the node killed it otherwise, only those it was killed for
    pay. What hadn't begun never does.
    """
    if (entry.id, entry.epoch) in culprits:
        return "timeout"
    if entry.ended:
        return "ended"
    return "refund" if killed_for or not entry.begun else "lost"


def plan(held: Iterable[Entry], queues: Iterable[str]) -> dict[str, list[list[Entry]]]:
    """The calls to make, in order: at least one per queue served, at most 250 jobs each.

    The newest epochs go first. A call also refunds what the last claim remembers beyond what it is told, so the jobs of
    that claim, which have the newest epochs, must be told in the first.
    """
    by_queue: dict[str, list[Entry]] = {queue: [] for queue in queues}
    for entry in sorted(held, key=lambda entry: entry.epoch, reverse=True):
        by_queue.setdefault(keys.queue_of(entry.id), []).append(entry)
    return {
        queue: [entries[at : at + CALL_JOBS] for at in range(0, max(1, len(entries)), CALL_JOBS)]
        for queue, entries in by_queue.items()
    }


class Undertaker:
    """Buries the workers of one node. A queue that can't be reached keeps no other waiting."""

    def __init__(self, server: AsyncServer, namespace: str) -> None:
        self._server = server
        self._namespace = namespace

    async def bury(self, child: Child) -> int:
        """Return all that the dead `child` held, trying until every queue has answered. Gives the number returned.

        Raises what a queue went on to answer instead, after all the others are done.
        """
        if child.hello is None:
            return 0  # it never claimed
        calls = plan(child.held(), child.hello.queues)
        answers = await asyncio.gather(
            *(self._bury(child, queue, calls[queue]) for queue in calls), return_exceptions=True
        )
        for error in answers:
            if isinstance(error, BaseException):
                raise error
        return sum(answer for answer in answers if isinstance(answer, int))

    async def _bury(self, child: Child, queue: str, calls: list[list[Entry]]) -> int:
        returned: list[tuple[str, str]] = []
        for entries in calls:
            jobs = [await self._buried(child, entry) for entry in entries]
            command = commands.bury(keys.queue(self._namespace, queue), worker=child.worker, why=child.cause, jobs=jobs)
            moved: list[tuple[str, str]] = await self._until_answered(command)
            returned += moved
        for id, state in returned:
            log.info("job returned", job_id=id, state=state, worker=child.worker, why=child.cause)
        return len(returned)

    async def _buried(self, child: Child, entry: Entry) -> Buried:
        verb = verb_for(entry, child.killed_for if child.forgiven else "", child.culprits)
        return Buried(entry.id, entry.epoch, verb, await self._delay_ms(child, entry.id) if verb == "timeout" else 0)

    async def _delay_ms(self, child: Child, id: str) -> int:
        """The backoff before the next attempt of a job whose hard timeout has passed: its own, else its task's."""
        try:
            found = await self._until_answered(
                commands.fetch(keys.queue(self._namespace, keys.queue_of(id)), [id]), tries=1
            )
        except Exception:  # noqa: BLE001 (its neighbours must not wait for what can't be read)
            return DEFAULT_BACKOFF.delay_ms(1)
        fields = found[0][1] if found[0] else {}
        tasks = child.hello.tasks if child.hello else {}
        task = tasks.get(fields.get(b"task", b"").decode(errors="replace"), {})
        try:
            spec = fields[b"backoff"].decode() if b"backoff" in fields else task.get("backoff")
            backoff = Backoff.from_spec(spec) if spec else DEFAULT_BACKOFF
            return backoff.delay_ms(int(fields.get(b"attempt", b"1")))
        except ValueError:  # a damaged record: whoever runs it next says so
            return DEFAULT_BACKOFF.delay_ms(1)

    async def _until_answered(self, command: Command[T], *, tries: int = TRIES) -> T:
        refusals = 0
        while True:
            try:
                return await run_async(self._server, command, deadline_s=_CALL_S)
            except Unavailable:
                await asyncio.sleep(_PAUSE_S)
            except Exception as error:
                refusals += 1
                if refusals >= tries:
                    raise
                if refusals == 1:
                    log.warning("a burial was refused; it is tried again", error=line_of(error))
                await asyncio.sleep(again_s(refusals))
