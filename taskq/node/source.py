"""One queue as a worker's claimer sees it: what its next claim should ask for, and what the last answer means.

No I/O: decided here, done by the claimer. Claims are numbered so that one whose answer got lost can be sent again and
gives the same jobs. It is never given up, however long Redis is away: what it took is known by its number alone, and
the next number makes Redis forget it. Until it is answered the slots it offered stay taken, or are lent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from taskq.commands import BATCH_MAX, Claim
from taskq.keys import QueueKeys

TIMER_MS = 10_000  # what is due later than this is found by the claims that are made anyway


@dataclass(frozen=True, slots=True)
class Offer:
    """A claim to send: its number, and the free slots it offers by class."""

    request: int
    free: dict[str, int]
    limit: int


class Source:
    """A queue to claim from.

    Attributes:
        keys: its keys.
        wanted: a claim is due whatever the last one said: a marker was popped, a timer ran out, nobody has looked yet.
        woken: classes whose marker was taken from the other workers, and for which no claim was sent since.
        more: classes of which the last claim got all that it asked for.
        offer: the claim under way.
        in_doubt: it was sent before and not answered, so it may have got jobs.
        failures: how many claims in a row have failed.
        not_before: when the next may be tried, after a failure (monotonic s).
        lent: the slots of the offer were given to other queues until it is answered.
        empty: no claim since the last `question` found anything, or anything due; None while none is answered.
    """

    __slots__ = (
        "empty", "failures", "in_doubt", "keys", "lent", "more", "not_before", "offer", "questioned", "request",
        "wanted", "woken",
    )  # fmt: skip

    def __init__(self, keys: QueueKeys) -> None:
        self.keys = keys
        self.wanted = True
        self.woken: set[str] = set()
        self.more: frozenset[str] = frozenset()
        self.offer: Offer | None = None
        self.in_doubt = False
        self.request = 0
        self.failures = 0
        self.not_before = 0.0
        self.lent = False
        self.empty: bool | None = None
        self.questioned = 0

    def question(self) -> None:
        """Have the next claim say whether there is anything left. If one that is under way finds nothing, that doesn't
        count: it may have been sent before the last job enqueued another. Nor does it once anything was found: what was
        found takes the slots that a later claim would have to offer.
        """
        self.wanted, self.empty, self.questioned = True, None, self.request

    def ask(self, free: Mapping[str, int], slots: Mapping[str, int], room: int, now: float) -> Offer | None:
        """The claim to send now, or None. The same again until `answer` or `give_up`.

        Args:
            free: free slots by class; below 0 where more runs than there are slots for.
            slots: all slots by class.
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
        offered = {each: min(n, -(-slots[each] // 2)) for each, n in served.items()} if self.more else served
        limit = min(sum(offered.values()), room, BATCH_MAX)
        if limit <= 0:
            return None
        self.request += 1
        self.wanted = False
        self.woken -= {each for each, n in offered.items() if n > 0}
        self.offer = Offer(self.request, offered, limit)
        return self.offer

    def answer(self, claim: Claim, got: Mapping[str, int]) -> None:
        """Take in the answer to the offer. `got`: how many jobs it gave, by class."""
        offer = self.offer
        if offer is None:
            raise RuntimeError("an answer without a claim")
        self.offer, self.in_doubt = None, False
        self.failures, self.not_before = 0, 0.0
        if len(claim.jobs) >= offer.limit:
            self.more = frozenset(offer.free)
        else:
            self.more = frozenset(each for each, n in got.items() if n and n >= offer.free.get(each, 0))
        if claim.word not in {"ok", "paused"} or claim.jobs or claim.next_ms == 0:
            self.empty = False
        elif offer.request > self.questioned and self.empty is None:
            self.empty = True

    def give_up(self) -> None:
        """Redis refused the claim, and nothing is in doubt: another is made later."""
        self.offer, self.wanted = None, True
