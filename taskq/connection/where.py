"""Where a call goes: to the one server, to the primary that sentinels name, or to the shard of its key.

One object for all loops and threads of a client; asking is done with connections of its own, made for the question.
"""

from __future__ import annotations

import asyncio

from taskq.address import Address
from taskq.connection.cluster import LEARN_S, Place, Route, Shards
from taskq.connection.dial import AsyncDial, SyncDial
from taskq.connection.patience import Patience
from taskq.connection.sentinel import Primary
from taskq.connection.translate import failures, moved_primary, passing, unreachable

HERE = Route(None)


class Where:
    """What is known. `kind` as in `Address`: single, sentinel, cluster."""

    def __init__(self, address: Address) -> None:
        self.kind = address.kind
        self.shards = Shards(address.hosts) if address.kind == "cluster" else None
        self.primary = Primary() if address.kind == "sentinel" else None

    def follow(self, error: BaseException, place: Place | None) -> Route | None:
        """Where a call goes on that was answered by this error; None if nobody said."""
        return self.shards.follow(error, place) if self.shards is not None else None

    def failed(self, error: BaseException, place: Place | None) -> bool:
        """Takes in an error. Whether it speaks against the node: idle connections to it are no better."""
        if not (unreachable(error) or moved_primary(error)):
            return False
        known = self.shards or self.primary
        if known is not None and place is not None:
            known.fell_silent(place)
        return True

    def answered(self, place: Place | None) -> None:
        """A node answered."""
        if self.shards is not None and place is not None:
            self.shards.answered(place)

    def away(self, key: str) -> object:
        """What serves this key, if the last we heard of it is that it doesn't answer; else None. Known in clusters."""
        return self.shards.away(key) if self.shards is not None else None

    def group(self, key: str) -> str:
        """What can be waited for on one connection: in a cluster a queue, by the hash tag of its keys."""
        return "" if self.shards is None else key.partition("}")[0]

    def _of(self, shards: Shards, key: str | None) -> Route:
        place = shards.owner(key) if key is not None else shards.to_ask()[0]
        if place is None:
            raise ConnectionError("no node of the cluster serves the queue's slot")
        return Route(place)


class SyncWhere(Where):
    """For threads."""

    def __init__(self, dial: SyncDial) -> None:
        super().__init__(dial.address)
        self._dial = dial

    def route(self, key: str | None, patience: Patience | None = None) -> Route:
        """The node to call for a key, or any for None. Nobody new is asked once the patience is over.

        Raises:
            ConnectionError: nobody knows one.
        """
        if self.shards is not None:
            if self.shards.stale:
                self._learn(self.shards, patience or Patience(self._dial.timeout_s))
            return self._of(self.shards, key)
        return HERE if self.primary is None else Route(self._look_up(self.primary))

    def _look_up(self, primary: Primary) -> Place:
        known = primary.place
        if known is not None and primary.fresh:
            return known
        primary.asking()
        try:
            # Who knows it already needn't hear from more than one: the call that asks has other things to do.
            found = self._dial.primary(ask=None if known is None else 1)
        except failures():
            if known is None:
                raise
            primary.unknown()
            return known
        primary.place = found
        return found

    def _learn(self, shards: Shards, patience: Patience) -> None:
        """Asks the nodes who serves what, until one answers. If none does, what was known before must do."""
        for place in shards.to_ask():
            left_s = patience.left_s()
            if left_s <= 0:
                return
            connection = self._dial.open(place, read_timeout_s=LEARN_S)
            try:
                self._dial.ready(connection, min(LEARN_S, left_s))
                connection.send_command("CLUSTER", "SLOTS")
                shards.learn(connection.read_response(), place)
            except failures() as error:
                if not passing(error):
                    raise
                shards.fell_silent(place)
            else:
                return
            finally:
                connection.disconnect()


class AsyncWhere(Where):
    """For coroutines. One of them asks, the others of its loop wait for the answer."""

    def __init__(self, dial: AsyncDial) -> None:
        super().__init__(dial.address)
        self._dial = dial

    async def route(self, key: str | None, asking: asyncio.Lock) -> Route:
        """As `SyncWhere.route`; `asking` is the loop's."""
        if self.shards is not None:
            if self.shards.stale:
                async with asking:
                    await self._learn(self.shards)
            return self._of(self.shards, key)
        if self.primary is None:
            return HERE
        if self.primary.fresh:
            return Route(self.primary.place)
        async with asking:
            return Route(await self._look_up(self.primary))

    async def _look_up(self, primary: Primary) -> Place:
        known = primary.place
        if known is not None and primary.fresh:
            return known
        primary.asking()
        try:
            found = await self._dial.primary(ask=None if known is None else 1)
        except failures():
            if known is None:
                raise
            primary.unknown()
            return known
        primary.place = found
        return found

    async def _learn(self, shards: Shards) -> None:
        for place in shards.to_ask() if shards.stale else ():
            connection = await self._dial.open(place)
            try:
                async with asyncio.timeout(LEARN_S):
                    await connection.connect()
                    await connection.send_command("CLUSTER", "SLOTS")
                    shards.learn(await connection.read_response(), place)
            except failures() as error:
                if not passing(error):
                    raise
                shards.fell_silent(place)
            else:
                return
            finally:
                await connection.disconnect(nowait=True)
