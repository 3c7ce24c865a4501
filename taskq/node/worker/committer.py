"""Tells Redis how jobs ended: group commit, one call under way per queue while the next gathers.

A finish may be repeated: the record remembers which lease ended how. So a call whose answer got lost is sent again
until it is answered, however long Redis is away; if the lease was lost meanwhile, that is the answer.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from taskq import commands
from taskq.commands import Command, Done, Failure, Release, Snoozed
from taskq.errors import Unavailable
from taskq.keys import QueueKeys
from taskq.log import get_logger
from taskq.node.loop import Outage, again_s
from taskq.node.worker.outcome import Ending
from taskq.node.worker.running import Running
from taskq.record.failure import line_of

CALL_JOBS = 250
CALL_BYTES = 1024 * 1024
TRIES = 15  # of a finish that the server refuses: about half a minute

log = get_logger(__name__)

Send = Callable[[Sequence[Command[Any]]], Awaitable[list[Any]]]
Item = tuple[Running, Ending]


class Committer:
    """The finishes of one worker.

    Args:
        send: sends commands in one go and gives their answers in order; raises Unavailable.
        keys: of the queues served, by name.
        worker: this worker's id.
        grace_ms: how long a job may be handed back before it fails (`unknown_grace`).
        settled: told of each job whose finish is answered, and the word of the answer.
        refused: told of each job whose finish is given up.
        outage: shared with the other callers of this process.
    """

    def __init__(
        self,
        send: Send,
        keys: dict[str, QueueKeys],
        *,
        worker: str,
        grace_ms: int,
        settled: Callable[[Running, str], None],
        refused: Callable[[str], None],
        outage: Outage,
    ) -> None:
        self._send = send
        self._outbound = {name: _Outbound(each) for name, each in keys.items()}
        self._worker = worker
        self._grace_ms = grace_ms
        self._settled = settled
        self._refused = refused
        self._outage = outage
        self._alone: set[asyncio.Task[None]] = set()

    def add(self, job: Running, ending: Ending) -> None:
        """Queue a finish; it leaves with the next call."""
        outbound = self._outbound[job.queue]
        outbound.waiting.append((job, ending))
        if ending[2]:  # not the Done of a job without a result, which is most of them
            outbound.bytes += _bytes_of(ending)
        if outbound.sender is None:
            # In a context of its own: it sends the finishes of many, and its log lines are about none of them.
            outbound.sender = asyncio.get_running_loop().create_task(
                self._empty(outbound), name=f"commit {job.queue}", context=contextvars.Context()
            )

    async def flush(self) -> None:
        """Wait until everything added so far is answered."""
        while senders := [
            *self._alone,
            *(outbound.sender for outbound in self._outbound.values() if outbound.sender is not None),
        ]:
            await asyncio.wait(senders)

    async def _empty(self, outbound: _Outbound) -> None:
        try:
            while outbound.waiting:
                batch = outbound.take()
                try:
                    await self._commit(outbound.keys, batch)
                except Exception as error:  # noqa: BLE001 (whatever it is, the other jobs must be finished)
                    log.warning("a call of finishes was refused; each is sent alone", error=line_of(error))
                    for item in batch:
                        sender = asyncio.get_running_loop().create_task(self._commit_alone(outbound.keys, item))
                        self._alone.add(sender)
                        sender.add_done_callback(self._alone.discard)
        finally:
            outbound.sender = None

    async def _commit(self, q: QueueKeys, batch: list[Item]) -> None:
        """Send until answered."""
        failures, settled = 0, self._settled
        while True:
            try:
                answered = await self._answers(q, batch)
            except Unavailable as error:
                self._outage.begins(error, q.name)
                failures += 1
                await asyncio.sleep(again_s(failures) * random.uniform(0.5, 1))
            else:
                self._outage.ends(q.name)
                for job, word in answered:
                    settled(job, word)
                return

    async def _commit_alone(self, q: QueueKeys, item: Item) -> None:
        """Send one finish that the server may refuse. After some tries its lease is left to end."""
        for failures in range(1, TRIES + 1):
            try:
                await self._commit(q, [item])
            except Exception as error:  # noqa: BLE001 (as above)
                if failures == TRIES:
                    log.error("a finish was refused; its lease is left to end", job_id=item[0].id, error=line_of(error))
                else:
                    await asyncio.sleep(again_s(failures))
            else:
                return
        self._settled(item[0], "refused")
        self._refused(item[0].id)

    async def _answers(self, q: QueueKeys, batch: list[Item]) -> list[tuple[Running, str]]:
        kinds: dict[type, list[Item]] = {}
        for item in batch:
            kind = type(item[1])
            if kind in kinds:
                kinds[kind].append(item)
            else:
                kinds[kind] = [item]
        replies = await self._send([self._command(q, kind, [each[1] for each in kinds[kind]]) for kind in kinds])
        return [
            (item[0], word)
            for items, words in zip(kinds.values(), replies, strict=True)
            for item, word in zip(items, words, strict=True)
        ]

    def _command(self, q: QueueKeys, kind: type, endings: list[Any]) -> Command[list[str]]:
        if kind is Done:
            return commands.complete(q, worker=self._worker, done=endings)
        if kind is Failure:
            return commands.fail(q, worker=self._worker, failures=endings)
        if kind is Release:
            return commands.release(q, worker=self._worker, jobs=endings)
        return commands.snooze(q, worker=self._worker, grace_ms=self._grace_ms, jobs=endings)


class _Outbound:
    """One queue's finishes that wait for their call."""

    __slots__ = ("bytes", "keys", "sender", "waiting")

    def __init__(self, keys: QueueKeys) -> None:
        self.keys = keys
        self.waiting: list[Item] = []
        self.bytes = 0
        self.sender: asyncio.Task[None] | None = None

    def take(self) -> list[Item]:
        """The next call's jobs: as many as fit its bounds, one at least."""
        count, size = len(self.waiting), self.bytes
        if count > CALL_JOBS or size > CALL_BYTES:
            count = size = 0
            for _, ending in self.waiting[:CALL_JOBS]:
                more = _bytes_of(ending)
                if count and size + more > CALL_BYTES:
                    break
                size += more
                count += 1
        batch, self.waiting = self.waiting[:count], self.waiting[count:]
        self.bytes -= size
        return batch


def _bytes_of(ending: Ending) -> int:
    if isinstance(ending, Done):
        return len(ending.result)
    if isinstance(ending, Failure):
        return _sent(ending.error) + _sent(ending.reason)
    return _sent(ending.reason) if isinstance(ending, Snoozed) else 0


def _sent(text: str | bytes) -> int:
    return len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode())
