"""What is known of a Redis Cluster: which node serves which slot, and whom to ask when that is in doubt. No I/O.

The library has a client for clusters; it isn't used. Its calls are bound by its own timeouts and retries, a cancelled
one leaves its answer for the next caller, and a node that is away holds up calls to the others. What is left for us is
little: a slot is 14 bits of a checksum, and a server that doesn't serve it says who does.
"""

from __future__ import annotations

import random
import time
from binascii import crc_hqx
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

#: A node of a cluster; None stands for the one server there is, or the primary that sentinels name.
Place = tuple[str, int]

SLOTS = 16_384
#: How often one call is sent on; a cluster that has come to rest needs one or two.
REDIRECTS_MAX = 5
#: How long one node may take to say who serves what.
LEARN_S = 1.0
_NOWHERE = ("", "?")  # what a node says that doesn't know its own address: the one it was asked at


class Route(NamedTuple):
    """Where to send a call. `asking`: the slot is still on its way there, and the node must be told that we know."""

    place: Place | None
    asking: bool = False


@lru_cache(maxsize=4096)
def slot_of(key: str) -> int:
    """The slot of a key: of its hash tag, if it has one."""
    _, opened, rest = key.partition("{")
    tag, closed, _ = rest.partition("}")
    return crc_hqx((tag if opened and closed and tag else key).encode(), 0) % SLOTS


class Shards:
    """One client's view of a cluster, for all its loops and threads: what is changed is replaced whole.

    Attributes:
        stale: the view may be wrong: a node fell silent, or nobody was asked yet.
    """

    def __init__(self, seeds: Sequence[Place]) -> None:
        self.stale = True
        self._seeds = tuple(seeds)
        self._starts: list[int] = []
        self._ranges: list[tuple[int, Place]] = []  # last slot, node
        self._moved: dict[int, Place] = {}
        self._silent: dict[Place, float] = {}

    def owner(self, key: str) -> Place | None:
        """The node that serves a key; None if none is known to."""
        slot = slot_of(key)
        moved = self._moved.get(slot)
        if moved is not None:
            return moved
        starts, ranges = self._starts, self._ranges
        at = bisect_right(starts, slot) - 1
        return ranges[at][1] if at >= 0 and at < len(ranges) and slot <= ranges[at][0] else None

    def to_ask(self) -> list[Place]:
        """Whom to ask for the slots: every node that was ever named, those last that did not answer of late."""
        known = [*dict.fromkeys([*(place for _, place in self._ranges), *self._moved.values(), *self._seeds])]
        random.shuffle(known)
        return sorted(known, key=lambda place: self._silent.get(place, 0.0))

    def learn(self, reply: Sequence[Any], asked: Place) -> None:
        """Takes in the answer to CLUSTER SLOTS: [first, last, [host, port, ...], replicas ...] for each range."""
        rows = sorted((row[0], row[1], _place(row[2][0], row[2][1], asked)) for row in reply)
        self._ranges = [(last, place) for _, last, place in rows]
        self._starts = [first for first, _, _ in rows]
        self._moved = {}
        self.stale = False

    def follow(self, error: BaseException, at: Place | None) -> Route | None:
        """Where a call goes on that was answered by this error; None if nobody said. Notes what the error tells."""
        import redis.exceptions as redis_errors

        if at is None:
            return None
        if isinstance(error, redis_errors.MovedError):
            to = _place(error.host, error.port, at)
            self._moved[error.slot_id] = to
            return Route(to)
        if isinstance(error, redis_errors.AskError):
            return Route(_place(error.host, error.port, at), asking=True)
        if isinstance(error, redis_errors.ClusterDownError):
            self.stale = True
        return None

    def fell_silent(self, place: Place) -> None:
        """A node did not answer."""
        self._silent[place] = time.monotonic()
        self.stale = True

    def answered(self, place: Place) -> None:
        """A node answered."""
        self._silent.pop(place, None)

    def away(self, key: str) -> Place | None:
        """The node that serves a key, if the last we heard of it is that it doesn't answer."""
        place = self.owner(key)
        return place if place in self._silent else None


def _place(host: Any, port: int, asked: Place) -> Place:
    name = host.decode() if isinstance(host, bytes) else host or ""
    return (asked[0] if name in _NOWHERE else name, port)
