"""Takes jobs for this worker: claims when there is something and a slot is free, and sleeps on markers otherwise.

It goes round the queues, best first, and sends one claim at a time; it is kicked by freed slots, popped markers and
timers. Beside it a `Watch` blocks on the markers of the classes that have a free slot and of which no more is known to
be there. Whoever takes a marker and can't act on it sets it again.

In a cluster each queue may be on a shard of its own (`apart`): each has a watch, and a claim that isn't answered soon
goes on beside the others, its slots lent to them. What it turns out to have got beyond the free slots is given back.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from taskq import needs
from taskq.commands import Claim
from taskq.errors import Unavailable
from taskq.keys import QueueKeys
from taskq.log import get_logger
from taskq.node.loop import Outage, again_s
from taskq.node.worker.alarm import Alarm
from taskq.node.worker.beside import Beside
from taskq.node.worker.learn import learned
from taskq.node.worker.markers import Line, Markers
from taskq.node.worker.pools import Pools
from taskq.node.worker.source import TIMER_MS, Offer, Source, is_kind
from taskq.node.worker.turns import Turns
from taskq.record.failure import line_of

EVERY_S = 5.0  # a plain claim, whatever the markers say
UNHEARD_S = 0.1  # how often one of the queues is asked whose markers nothing waits for, since no slot stays free
_UNHEARD_PART = 0.1  # of the time, at most, is spent on waiting for their answers
NODE_AGE_MS = 3_000  # nobody renews: what is claimed now would be lost
_LOOK_AGAIN_S = 0.25
_UNBLOCK_AGAIN_S = 0.05
_PATIENT_S = 0.25  # for so long the others wait for a claim of a queue apart
_FIRST_FINISHES_S = 0.1  # what is read beside the first finishes takes a connection more, and keeps it

_ANYWHERE = needs.Place({}, None, ())

log = get_logger(__name__)


class Claimer:
    """Claims for one worker.

    Args:
        line: the way to Redis.
        queues: best first.
        slots: what there is of each pool: how many jobs of each executor kind run at a time, and of each resource.
        place: what this worker is known by, and what it has in all.
        worker, lease_ms: as claimed with.
        start: given the queue, the claimed jobs and the end of their leases (monotonic ms): begins them, and says
            how many slots of each class they take. Given free slots too, it releases what they don't suffice for.
        room: how many more jobs can be written down.
        node_age_ms: how long ago the node last beat.
        gone: called when Redis says that this worker was declared dead.
        outage: shared with the other callers of this process.
        weights: queue → weight, where the order isn't strict.
        kinds: queue → the classes that its tasks are of; asked where its slots are limited.
        apart: whether each queue may be on a shard of its own, which may be away without the others.
    """

    def __init__(
        self,
        line: Line,
        queues: Sequence[QueueKeys],
        slots: Mapping[str, int],
        *,
        worker: str,
        place: needs.Place = _ANYWHERE,
        lease_ms: int,
        start: Callable[..., Mapping[str, int]],
        room: Callable[[], int],
        node_age_ms: Callable[[], int],
        gone: Callable[[], None],
        outage: Outage,
        weights: Mapping[str, float] | None = None,
        kinds: Mapping[str, Collection[str]] | None = None,
        apart: bool = False,
    ) -> None:
        self._line = line
        self._sources = [Source(keys) for keys in queues]
        self._pools = Pools(slots, [source.keys.name for source in self._sources], kinds)
        self._worker = worker
        self._place = place
        self._lease_ms = lease_ms
        self._start = start
        self._room = room
        self._node_age_ms = node_age_ms
        self._gone = gone
        self._outage = outage
        self._turns = Turns([source.keys.name for source in self._sources], weights or {})
        self._apart = apart
        self._stopped = asyncio.Event()
        self._resting = False
        self._unheard_from = 0.0
        self._kick = asyncio.Event()
        self._answered = asyncio.Event()
        self._alarm = Alarm(self._kick.set)
        self._beside = Beside()
        self._markers = Markers(
            line,
            self._sources,
            apart=apart,
            beside=self._beside,
            free=lambda source: self._pools.of(source.keys.name),
            waits=self._waits,
            kick=self._kick.set,
            stopped=self._stopped,
            outage=outage,
        )

    @property
    def stopping(self) -> bool:
        """Whether it claims no more."""
        return self._stopped.is_set()

    @property
    def free(self) -> dict[str, int]:
        """What is free, by pool."""
        return self._pools.free

    def freed(self, kind: str, queue: str, *takes: tuple[str, int]) -> None:
        """A slot is free again, that a job of this queue had, and what else it took."""
        self._pools.freed(kind, queue, *takes)
        self._kick.set()

    def limit(self, slots: Mapping[str, int]) -> None:
        """From now on no more than so many slots for each of these queues, and so many kept for it from the others that
        have no limit. What runs above that runs on.
        """
        self._pools.limits = dict(slots)
        self._kick.set()

    def stop(self) -> None:
        """Claim no more. `run` ends once the claim under way is answered (its jobs are started, to be released)."""
        self._stopped.set()
        self._kick.set()
        self._markers.look()
        self._answered.set()

    def rest(self) -> None:
        """Claim nothing until `go_on`, and leave the markers to others. What a claim under way gives still runs."""
        self._resting = True
        self._kick.set()

    def go_on(self) -> None:
        """Claim again, after a rest."""
        if self._resting:
            self._resting = False
            for source in self._sources:
                source.wanted = True
            self._kick.set()

    def resize(self, pool: str, slots: int) -> None:
        """Have so much of a pool from now on. Less than is taken now: no job is stopped, none is claimed."""
        self._pools.resize(pool, slots)
        for source in self._sources:
            source.wanted = True
        self._kick.set()

    def endow(self, amounts: Mapping[str, int]) -> None:
        """Have so much of each resource from now on: other classes may fit."""
        self._place = self._place._replace(capacity=dict(amounts))
        for source in self._sources:
            source.version = None
        for name, amount in amounts.items():
            self.resize(f"+{name}", amount)

    async def nothing_left(self) -> bool:
        """Ask every queue once more: whether none has anything available or due now. For a worker that runs nothing."""
        asked = [
            source for source in self._sources if self._pools.limits.get(source.keys.name) != 0
        ]  # others serve those
        for source in asked:
            source.question()
        self._kick.set()
        while not self.stopping and any(source.empty is None for source in asked):
            self._answered.clear()
            await self._answered.wait()
        return all(source.empty for source in asked)

    async def run(self) -> None:
        """Claim until `stop`."""
        waiting = self._markers.wait()
        periodic = asyncio.get_running_loop().create_task(self._look_now_and_then(), name="look now and then")
        try:
            self._kick.set()
            while not self.stopping:
                await self._kick.wait()
                self._kick.clear()
                await self._round()
                self._look_at_the_waits()
            while any(source.offer is not None for source in self._sources):
                await self._round()  # a claim in doubt may have given jobs: they must be known to be released
                await asyncio.sleep(_LOOK_AGAIN_S)
            while not all(each.done() for each in waiting):
                self._look_at_the_waits()
                await asyncio.wait(waiting, timeout=_UNBLOCK_AGAIN_S)
            await self._markers.pass_on(everything=True, last=True)
        finally:
            self._answered.set()
            for task in (periodic, *waiting):
                task.cancel()
            self._beside.cancel()
            self._alarm.cancel()

    # --- claiming

    async def _round(self) -> None:
        """Claim from the queue whose turn it is, as long as there are free slots and something to be had."""
        self._ask_the_unheard()
        left = by_name = {source.keys.name: source for source in self._sources}
        while (name := self._turns.next(left)) is not None:
            if await self._claim(by_name[name]):
                left = by_name
            else:
                left = {each: source for each, source in left.items() if each != name}
        await self._markers.pass_on(everything=self._resting)

    def _ask_the_unheard(self) -> None:
        """Where one queue has more than there are slots for, each slot is claimed for as it gets free, and no marker of
        another queue is ever waited for: what comes there, better or owed its part, is found by asking, one after the
        other, so that many queues cost no more than one, and a slow one little of the busy one's time.
        """
        now = time.monotonic()
        if now < self._unheard_from or not any(source.more for source in self._sources):
            return
        unheard = [each for each in self._sources if not (each.more or each.wanted or each.offer)]
        source = min(unheard, key=lambda each: each.asked, default=None)
        if source is not None and source.asked <= now - UNHEARD_S:
            source.wanted = source.unheard = True
            self._unheard_from = now + UNHEARD_S

    def _offered(self, source: Source) -> Mapping[str, int]:
        """What this queue may take now, less what is left to others whose turn comes too."""
        contending = [each.keys.name for each in self._sources if each.wanted or each.more]
        free = self._pools.of(source.keys.name)
        return Pools.of_kinds(free, lambda _, n: self._turns.part(source.keys.name, n, contending))

    def _left(self, source: Source) -> int:
        """How many more jobs of this queue may be claimed."""
        in_doubt = sum(each.offer.limit for each in self._sources if each.offer is not None)
        return self._pools.left(source.keys.name, self._room() - in_doubt)

    async def _claim(self, source: Source) -> bool:
        """One claim, if one is due. Whether it got all it asked for: then the best queue is asked again first."""
        if ((self.stopping or self._resting) and source.offer is None) or source.keys.name in self._beside:
            return False
        if source.offer is None and self._node_age_ms() > NODE_AGE_MS:
            self._alarm.later(_LOOK_AGAIN_S)
            return False
        fresh = source.offer is None
        offer = source.ask(self._offered(source), self._pools.slots, self._left(source), time.monotonic())
        if offer is None:
            return False
        if fresh:  # its slots stay taken until it is answered
            self._pools.take(offer.free)
        if not self._apart:
            return await self._ask(source, offer)
        task = self._beside.start(source.keys.name, self._ask(source, offer))
        await asyncio.wait({task}, timeout=0 if source.failures else _PATIENT_S)
        if task.done():
            return bool(task.result())
        self._lend(source, offer)
        return False

    async def _ask(self, source: Source, offer: Offer) -> bool:
        sent_ms = time.monotonic_ns() // 1_000_000
        try:
            claim: Claim = await self._line.run(offer.command(source.keys, self._worker, self._lease_ms))
        except Exception as error:  # noqa: BLE001 (a claimer that ends would leave a worker that does nothing)
            self._failed(source, offer, error)
            return False
        self._outage.ends(source.keys.name)
        if source.unheard:
            took_s = time.monotonic() - sent_ms / 1000
            self._unheard_from = max(self._unheard_from, time.monotonic() + took_s * (1 / _UNHEARD_PART - 1))
        until_ms, room = sent_ms + self._lease_ms, (self.free,) if source.lent else ()
        if claim.jobs and time.monotonic_ns() // 1_000_000 > until_ms - self._lease_ms // 2:
            # Read late: this process stood still, or the server did. Others may have these jobs, or may soon. Asked
            # for once more they are what of them is still ours, for a whole lease.
            source.in_doubt = True
            self._kick.set()
            return False
        got = self._start(source.keys, claim.jobs, until_ms, *room) if claim.jobs else {}
        self._pools.running[source.keys.name] += len(claim.jobs)
        self._turns.took(source.keys.name, len(claim.jobs))
        self._take_back(source, offer, got)
        source.answer(claim, got)
        if source.wanted:  # what came up while this was in doubt: until it is claimed for, no marker is waited for
            self._kick.set()
        due = claim.next_ms is not None and claim.next_ms <= TIMER_MS
        self._alarm.due(source.keys.name, claim.next_ms if due else None, lambda: self._want(source))
        self._answered.set()
        if claim.word == "gone":
            self.stop()
            self._gone()
            return False
        if source.told != source.version:
            if not claim.jobs:
                await self._learn(source)
            elif (name := f"{source.keys.name} classes") not in self._beside:
                self._beside.start(name, self._learn(source, later_s=_FIRST_FINISHES_S))
        return bool(source.more)

    async def _learn(self, source: Source, later_s: float = 0.0) -> None:
        """Read the queue's classes anew; and pass the marker on, so that the next who waits does the same: it may be he
        who can serve what is new.
        """
        first, kinds = source.version is None, {pool for pool, n in self._pools.slots.items() if is_kind(pool) and n}
        if not first:
            source.woken |= kinds  # if this is cut short, they are passed on at the end
        await asyncio.sleep(later_s)
        told = source.told
        if not await learned(source, self._line, lambda: self._place):
            return
        source.wanted |= source.told not in {told, source.version}  # another came while these were read
        self._kick.set()
        if not first:
            await self._markers.set_again(source, source.woken | kinds)

    def _lend(self, source: Source, offer: Offer) -> None:
        """Give the slots of a claim in doubt to the others meanwhile."""
        if not source.lent:
            self._take_back(source, offer, {})
            source.lent = True
            self._kick.set()

    def _take_back(self, source: Source, offer: Offer, got: Mapping[str, int]) -> None:
        """What was offered is free again, but for what the claimed jobs take."""
        self._pools.take_back({} if source.lent else offer.free, got)
        source.lent = False

    def _failed(self, source: Source, offer: Offer, error: Exception) -> None:
        now = time.monotonic()
        away = isinstance(error, Unavailable)
        if away:
            source.in_doubt = True
            self._outage.begins(error, source.keys.name)
        elif not source.failures:
            log.error("a claim was refused; it is tried again", queue=source.keys.name, error=line_of(error))
        if not source.in_doubt:
            self._take_back(source, offer, {})
            source.give_up()
        elif self._apart or not away:  # what stands in its way may not stand in the others'
            self._lend(source, offer)
        source.failures += 1
        delay_s = again_s(source.failures) * random.uniform(0.5, 1)
        source.not_before = now + delay_s
        self._alarm.later(delay_s)

    # --- waking

    def _want(self, source: Source) -> None:
        source.wanted = True
        self._kick.set()

    async def _look_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S * random.uniform(0.8, 1.2))
            for source in self._sources:
                source.wanted = True
            self._kick.set()

    def _waits(self, source: Source) -> bool:
        """Whether there is anything to wait for: no claim is due or under way, and what it gave wouldn't be lost."""
        at_rest = not (self.stopping or self._resting or source.wanted or source.offer is not None)
        return at_rest and self._node_age_ms() <= NODE_AGE_MS

    def _look_at_the_waits(self) -> None:
        """See that the waiting tasks wait for what they should."""
        if self._markers.look():
            self._alarm.later(_UNBLOCK_AGAIN_S)
