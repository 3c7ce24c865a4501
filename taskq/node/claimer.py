"""Takes jobs for this worker: claims when there is something and a slot is free, and sleeps on markers otherwise.

Two things run side by side. The claiming one goes round the queues, best first, and sends one claim at a time; it is
kicked by freed slots, popped markers and timers. The waiting one blocks on the markers of the classes that have a free
slot and of which no more is known to be there. A marker is a hint that this worker takes from the others, so whoever
takes one and can't act on it sets it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from taskq import commands
from taskq.commands import Claim, Claimed, Command
from taskq.errors import Unavailable
from taskq.keys import QueueKeys
from taskq.log import get_logger
from taskq.node.failure import line_of
from taskq.node.loop import Outage, again_s
from taskq.node.source import TIMER_MS, Offer, Source

EVERY_S = 5.0  # a plain claim, whatever the markers say
BLOCK_S = 5.0
NODE_AGE_MS = 3_000  # nobody renews: what is claimed now would be lost
_LOOK_AGAIN_S = 0.25
_UNBLOCK_AGAIN_S = 0.05  # an unblock that arrives before the wait it should end does nothing

log = get_logger(__name__)


class Line(Protocol):
    """What the claimer needs of `AsyncServer`."""

    def run(self, command: Command[Any], /) -> Awaitable[Any]:
        """Send a command."""

    def block(self, keys: Sequence[str], timeout_s: float, /) -> Awaitable[str | None]:
        """Wait for a marker and take it."""

    def unblock(self) -> Awaitable[None]:
        """End a wait early."""


class Claimer:
    """Claims for one worker.

    Args:
        line: the way to Redis.
        queues: best first.
        slots: how many jobs of each class run at a time.
        worker, lease_ms: as claimed with.
        start: given the queue, the claimed jobs and the end of their leases (monotonic ms): begins them, and says
            how many slots of each class they take.
        room: how many more jobs can be written down.
        node_age_ms: how long ago the node last beat.
        gone: called when Redis says that this worker was declared dead.
        outage: shared with the other callers of this process.
        one_at_a_time: markers of different queues can't be waited for together (in a cluster): those of the best are,
            the others are looked at every second.
    """

    def __init__(
        self,
        line: Line,
        queues: Sequence[QueueKeys],
        slots: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        start: Callable[[QueueKeys, list[Claimed], int], Mapping[str, int]],
        room: Callable[[], int],
        node_age_ms: Callable[[], int],
        gone: Callable[[], None],
        outage: Outage,
        one_at_a_time: bool = False,
    ) -> None:
        self.free = dict(slots)
        self._slots = dict(slots)
        self._line = line
        self._sources = [Source(keys) for keys in queues]
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._worker = worker
        self._lease_ms = lease_ms
        self._start = start
        self._room = room
        self._node_age_ms = node_age_ms
        self._gone = gone
        self._outage = outage
        self._one_at_a_time = one_at_a_time
        self._every_s = 1.0 if one_at_a_time and len(queues) > 1 else EVERY_S
        self._stopped = asyncio.Event()
        self._kick = asyncio.Event()
        self._rest = asyncio.Event()
        self._answered = asyncio.Event()
        self._blocked: dict[str, tuple[Source, str]] | None = None
        self._again: asyncio.TimerHandle | None = None

    @property
    def stopping(self) -> bool:
        """Whether it claims no more."""
        return self._stopped.is_set()

    def freed(self, klass: str) -> None:
        """A slot is free again."""
        self.free[klass] += 1
        self._kick.set()

    def stop(self) -> None:
        """Claim no more. `run` ends once the claim under way is answered (its jobs are started, to be released)."""
        self._stopped.set()
        self._kick.set()
        self._rest.set()
        self._answered.set()

    async def nothing_left(self) -> bool:
        """Ask every queue once more: whether none has anything available or due now. For a worker that runs nothing."""
        for source in self._sources:
            source.wanted, source.empty = True, None
        self._kick.set()
        while not self.stopping and any(source.empty is None for source in self._sources):
            self._answered.clear()
            await self._answered.wait()
        return all(source.empty for source in self._sources)

    async def run(self) -> None:
        """Claim until `stop`."""
        loop = asyncio.get_running_loop()
        waiting = loop.create_task(self._wait_for_markers(), name="wait for markers")
        periodic = loop.create_task(self._look_now_and_then(), name="look now and then")
        try:
            self._kick.set()
            while not self.stopping:
                await self._kick.wait()
                self._kick.clear()
                await self._round()
                await self._look_at_the_wait()
            while any(source.offer is not None for source in self._sources):
                await self._round()  # a claim in doubt may have given jobs: they must be known to be released
                await asyncio.sleep(_LOOK_AGAIN_S)
            while not waiting.done():
                await self._look_at_the_wait()
                await asyncio.wait([waiting], timeout=_UNBLOCK_AGAIN_S)
            await self._pass_on(everything=True)
        finally:
            self._answered.set()
            periodic.cancel()
            waiting.cancel()
            for timer in [*self._timers.values(), self._again]:
                if timer is not None:
                    timer.cancel()

    # --- claiming

    async def _round(self) -> None:
        """Claim from the best queue that has something, as long as there are free slots and something to be had."""
        at = 0
        while at < len(self._sources):
            at = 0 if await self._claim(self._sources[at]) else at + 1
        await self._pass_on()

    async def _claim(self, source: Source) -> bool:
        """One claim, if one is due. Whether it got all it asked for: then the best queue is asked again first."""
        if self.stopping and source.offer is None:
            return False
        if source.offer is None and self._node_age_ms() > NODE_AGE_MS:
            self._later(_LOOK_AGAIN_S)
            return False
        fresh = source.offer is None
        in_doubt = sum(each.offer.limit for each in self._sources if each.offer is not None)
        offer = source.ask(self.free, self._slots, self._room() - in_doubt, time.monotonic())
        if offer is None:
            return False
        if fresh:  # its slots stay taken until it is answered
            for klass, n in offer.free.items():
                self.free[klass] -= n
        sent_ms = time.monotonic_ns() // 1_000_000
        try:
            claim: Claim = await self._line.run(
                commands.claim(
                    source.keys,
                    worker=self._worker,
                    request=offer.request,
                    lease_ms=self._lease_ms,
                    limit=offer.limit,
                    free=offer.free,
                )
            )
        except Exception as error:  # noqa: BLE001 (a claimer that ends would leave a worker that does nothing)
            self._failed(source, offer, error)
            return False
        self._outage.ends()
        got = self._start(source.keys, claim.jobs, sent_ms + self._lease_ms) if claim.jobs else {}
        source.answer(claim, got)
        for klass, n in offer.free.items():
            self.free[klass] += n - got.get(klass, 0)
        self._set_timer(source, claim.next_ms)
        self._answered.set()
        if claim.word == "gone":
            self.stop()
            self._gone()
            return False
        return bool(source.more)

    def _failed(self, source: Source, offer: Offer, error: Exception) -> None:
        now = time.monotonic()
        if isinstance(error, Unavailable):
            self._outage.begins(error)
            over = source.unanswered(now, self._lease_ms / 1000)
        else:  # an answer, if no good one: nothing is in doubt, and no slot is kept from the other queues
            if not source.failures:
                log.error("a claim was refused; it is tried again", queue=source.keys.name, error=line_of(error))
            over = source.refused()
        if over:
            for klass, n in offer.free.items():
                self.free[klass] += n
        source.failures += 1
        delay_s = again_s(source.failures) * random.uniform(0.5, 1)
        source.not_before = now + delay_s
        self._later(delay_s)

    # --- waking

    def _later(self, delay_s: float) -> None:
        """Look again after a while; the earliest such wish counts."""
        loop = asyncio.get_running_loop()
        if self._again is not None and loop.time() < self._again.when() <= loop.time() + delay_s:
            return
        if self._again is not None:
            self._again.cancel()
        self._again = loop.call_later(delay_s, self._kick.set)

    def _set_timer(self, source: Source, next_ms: int | None) -> None:
        """Claim again exactly when something is due: a blocked wait would notice it up to a tenth of a second late."""
        timer = self._timers.pop(source.keys.name, None)
        if timer is not None:
            timer.cancel()
        if next_ms is not None and next_ms <= TIMER_MS:
            loop = asyncio.get_running_loop()
            self._timers[source.keys.name] = loop.call_later((next_ms + 1) / 1000, self._want, source)

    def _want(self, source: Source) -> None:
        source.wanted = True
        self._kick.set()

    async def _look_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._every_s * random.uniform(0.8, 1.2))
            for source in self._sources:
                source.wanted = True
            self._kick.set()

    def _watchlist(self) -> dict[str, tuple[Source, str]]:
        """The markers to wait for, and what each is of."""
        if self.stopping or self._node_age_ms() > NODE_AGE_MS:
            return {}
        quiet = [each for each in self._sources if not each.wanted and each.offer is None]
        if self._one_at_a_time:
            del quiet[1:]
        return {
            source.keys.wake(klass): (source, klass)
            for source in quiet
            for klass, n in self.free.items()
            if n > 0 and klass not in source.more
        }

    async def _look_at_the_wait(self) -> None:
        """See that the waiting task waits for what it should."""
        if self._blocked is None:
            self._rest.set()
        elif self.stopping or not self._watchlist().keys() <= self._blocked.keys():
            try:
                await self._line.unblock()
            except Exception as error:  # noqa: BLE001 (the wait ends by itself soon)
                log.debug("unblock failed", error=line_of(error))
            self._later(_UNBLOCK_AGAIN_S)

    async def _wait_for_markers(self) -> None:
        failures = 0
        while not self.stopping:
            self._blocked = watchlist = self._watchlist()
            if not watchlist:
                self._blocked = None
                self._rest.clear()
                await self._rest.wait()
                continue
            try:
                popped = await self._line.block(list(watchlist), BLOCK_S)
            except Exception as error:  # noqa: BLE001 (as for a claim)
                # A marker may have been popped and lost on its way: every queue is looked at.
                failures += 1
                if isinstance(error, Unavailable):
                    self._outage.begins(error)
                else:
                    log.warning("waiting for work failed; trying again", error=line_of(error))
                for source, klass in watchlist.values():
                    source.wanted = True
                    source.woken.add(klass)
                self._kick.set()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), again_s(failures))
                continue
            finally:
                self._blocked = None
            failures = 0
            if popped is not None:
                source, klass = watchlist[popped]
                source.wanted = True
                source.woken.add(klass)
                self._kick.set()

    async def _pass_on(self, *, everything: bool = False) -> None:
        """Set the markers again that were taken and can't be acted on: no slot is free, or no more is claimed."""
        for source in self._sources:
            classes = {each for each in source.woken if everything or not self.free.get(each)}
            if not classes:
                continue
            try:
                await self._line.run(commands.wake(source.keys, sorted(classes)))
            except Exception as error:  # noqa: BLE001 (a hint; the others look now and then as well)
                log.debug("a marker could not be set again", queue=source.keys.name, error=line_of(error))
            source.woken -= classes
