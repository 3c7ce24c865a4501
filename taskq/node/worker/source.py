"""One queue as a worker's claimer sees it: what its next claim should ask for, and what the last answer means.

No I/O: decided here, done by the claimer. Claims are numbered so that one whose answer got lost can be sent again and
gives the same jobs. It is never given up, however long Redis is away: what it took is known by its number alone, and
the next number makes Redis forget it. Until it is answered the slots it offered stay taken, or are lent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from taskq import commands, needs
from taskq.commands import BATCH_MAX, Claim, Classes, Command
from taskq.keys import QueueKeys

TIMER_MS = 10_000  # what is due later than this is found by the claims that are made anyway


@dataclass(frozen=True, slots=True)
class Offer:
    """A claim to send: its number, what is free of each pool, and the narrow classes for which that suffices."""

    request: int
    free: dict[str, int]
    limit: int
    narrow: dict[str, dict[str, int]] = field(default_factory=dict)

    def command(self, q: QueueKeys, worker: str, lease_ms: int) -> Command[Claim]:
        """As it is sent, each time the same."""
        said: dict[str, Any] = {"request": self.request, "limit": self.limit, "free": self.free, "narrow": self.narrow}
        return commands.claim(q, worker=worker, lease_ms=lease_ms, **said)


def is_kind(pool: str) -> bool:
    """Whether a pool is an executor kind's slots; else it is a resource, `+gpu` say."""
    return pool[0] != "+"


class Runs(Protocol):
    """What is needed of `AsyncServer` to send a command."""

    def run(self, command: Command[Any], /) -> Awaitable[Any]:
        """Send a command."""


class Source:
    """A queue to claim from.

    Attributes:
        keys: its keys.
        wanted: a claim is due whatever the last one said: a marker was popped, a timer ran out, nobody has looked yet.
        woken: classes whose marker was taken from the other workers, and for which no claim was sent since.
        more: executor kinds of which the last claim got all that it asked for.
        narrow: the classes that need more than a kind and that this worker may serve → what a job takes of which pools.
        version: of the queue's classes, when they were last read; None before.
        told: their version as the last claim told it.
        asked: when the last claim was made (monotonic s).
        unheard: the claim that is due or under way asks whether anything is there, of which no marker could tell.
        offer: the claim under way.
        in_doubt: it was sent before and not answered, so it may have got jobs.
        failures: how many claims in a row have failed.
        not_before: when the next may be tried, after a failure (monotonic s).
        lent: the slots of the offer were given to other queues until it is answered.
        empty: no claim since the last `question` found anything, or anything due; None while none is answered.
    """

    __slots__ = (
        "asked", "empty", "failures", "in_doubt", "keys", "lent", "more", "narrow", "not_before", "offer", "questioned",
        "request", "told", "unheard", "version", "wanted", "woken",
    )  # fmt: skip

    def __init__(self, keys: QueueKeys) -> None:
        self.keys = keys
        self.wanted = True
        self.woken: set[str] = set()
        self.more: frozenset[str] = frozenset()
        self.asked = 0.0
        self.unheard = False
        self.offer: Offer | None = None
        self.in_doubt = False
        self.request = 0
        self.failures = 0
        self.not_before = 0.0
        self.lent = False
        self.empty: bool | None = None
        self.questioned = 0
        self.narrow: dict[str, dict[str, int]] = {}
        self.version: int | None = None
        self.told: int | None = None

    def learn(self, found: Classes, place: needs.Place) -> None:
        """Take in the queue's classes. If there are new ones that this worker may serve, a claim is due."""
        before, self.narrow, self.version = self.narrow, {}, found.version
        for klass, requirement in found.classes.items():
            kind, wanted = needs.of_requirement(requirement)
            if wanted is not None and needs.fits(wanted, place):
                self.narrow[klass] = needs.pools(kind, wanted)
        self.wanted |= not self.narrow.keys() <= before.keys()

    def room(self, klass: str, free: Mapping[str, int]) -> int:
        """For how many jobs of a class what is free suffices; none if this worker may not serve it (any more)."""
        if ";" not in klass:
            return free.get(klass, 0)
        return needs.room(self.narrow[klass], free) if klass in self.narrow else 0

    def awaited(self, free: Mapping[str, int]) -> list[str]:
        """The classes whose markers to wait for: there is room for them, and no more is known to be there."""
        kinds = {pool for pool, n in free.items() if n > 0 and is_kind(pool) and pool not in self.more}
        return [*kinds, *(each for each in self.narrow if each.partition(";")[0] in kinds and self.room(each, free))]

    def question(self) -> None:
        """Have the next claim say whether there is anything left. If one that is under way finds nothing, that doesn't
        count: it may have been sent before the last job enqueued another. Nor does it once anything was found: what was
        found takes the slots that a later claim would have to offer.
        """
        self.wanted, self.empty, self.questioned = True, None, self.request

    def ask(self, free: Mapping[str, int], slots: Mapping[str, int], room: int, now: float) -> Offer | None:
        """The claim to send now, or None. The same again until `answer` or `give_up`.

        Args:
            free: what is free by pool; below 0 where more runs than there are slots for.
            slots: what there is by pool.
            room: how many more jobs this worker can write down.
            now: monotonic s.

        While there is known to be more, a claim takes at most half of the slots: the other half is claimed while the
        first runs, so that neither Redis nor this process waits for the other.
        """
        if now < self.not_before:
            return None
        if self.offer is not None:
            return self.offer
        if not self.wanted and not any(free.get(each, 0) > 0 for each in self.more):
            return None
        served = {each: max(n, 0) for each, n in free.items() if slots[each]}
        offered = served
        if self.more:
            offered = {each: min(n, -(-slots[each] // 2)) if is_kind(each) else n for each, n in served.items()}
        limit = min(sum([n for each, n in offered.items() if is_kind(each)]), room, BATCH_MAX)
        if limit <= 0:
            return None
        self.request += 1
        self.asked = now
        self.wanted = False
        self.woken = {each for each in self.woken if self.room(each, offered) <= 0}
        narrow = {each: takes for each, takes in self.narrow.items() if needs.room(takes, offered)}
        self.offer = Offer(self.request, offered, limit, narrow)
        return self.offer

    def answer(self, claim: Claim, got: Mapping[str, int]) -> None:
        """Take in the answer to the offer. `got`: what the jobs it gave take, by pool."""
        offer = self.offer
        if offer is None:
            raise RuntimeError("an answer without a claim")
        self.offer, self.in_doubt, self.unheard = None, False, False
        self.failures, self.not_before = 0, 0.0
        if len(claim.jobs) >= offer.limit:
            self.more = frozenset(filter(is_kind, offer.free))
        else:
            self.more = frozenset(
                each for each, n in got.items() if n and is_kind(each) and n >= offer.free.get(each, 0)
            )
        if claim.word in {"ok", "paused"}:
            self.told = claim.version
        if claim.word not in {"ok", "paused"} or claim.jobs or claim.next_ms == 0:
            self.empty = False
        elif offer.request > self.questioned and self.empty is None:
            self.empty = True

    def give_up(self) -> None:
        """Redis refused the claim, and nothing is in doubt: another is made later."""
        self.offer, self.wanted = None, True
