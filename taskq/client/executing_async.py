"""What an executor of one's own says, awaited: claims, leases, ends. The twin of `executing.py`.

How to write one stands in docs/executors.md, and for other languages in lua/README.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from taskq import commands, keys
from taskq.asked import spelled
from taskq.client import batch, claims, operations
from taskq.client.claiming import ClaimedJob, asked
from taskq.connection import AsyncServer, run_async
from taskq.errors import TaskQError, Unavailable
from taskq.keys import QueueKeys
from taskq.record.lease import Lease
from taskq.settings import Settings, checked_name
from taskq.units import Duration


class AsyncExecuting:
    """A part of `AsyncClient`, which opens its connections."""

    settings: Settings
    server: AsyncServer
    _namespace: str
    _known: dict[str, float]

    async def register(self, queue: str) -> None:
        """Makes a queue known to everybody who lists them; once a process is enough."""
        await run_async(self.server, operations.register(self._namespace, queue))
        self._known[queue] = time.monotonic()

    @spelled
    async def claim(
        self,
        queues: str | Sequence[str],
        *,
        worker: str,
        poller: str = "",
        limit: int = 1,
        start: bool = True,
        offer_ttl: Duration | None = None,
        lease: Duration | None = None,
        request: str | None = None,
        labels: Mapping[str, str] | None = None,
        free: Mapping[str, float | str] | None = None,
    ) -> list[ClaimedJob]:
        """Take waiting jobs, best first, for an executor of your own. Arguments and errors as `Client.claim`."""
        what = asked(
            self.settings, queues, worker=worker, poller=poller, limit=limit, start=start, offer_ttl=offer_ttl,
            lease=lease, request=request, labels=labels, free=free,
        )  # fmt: skip
        given: list[ClaimedJob] = []
        for q in what.queues:
            if len(given) == limit:
                break
            try:
                if q.name not in self._known:
                    await self.register(q.name)
                known = None
                if what.place is not None:
                    known = await run_async(self.server, what.classes(q))
                some = await run_async(self.server, what.command(q, given, known))
            except Unavailable:
                if not given:
                    raise
                break
            await self._remind(q.name)
            given += some
        return given

    async def start(self, token: str, *, lease: Duration | None = None) -> None:
        """Make an offer a lease: from now on the job runs. Arguments and errors as `Client.start`."""
        await run_async(self.server, claims.start(self.settings, token, lease))

    async def release(self, token: str) -> str:
        """Give an offer or a job back untouched, and tell where it went. Arguments and errors as `Client.release`."""
        return await run_async(self.server, claims.release(self.settings, token))

    async def renew(self, token: str, *, lease: Duration | None = None) -> str:
        """Extend a lease, and tell whether the job was asked to stop. Arguments and errors as `Client.renew`."""
        return await run_async(self.server, claims.renew(self.settings, token, lease))

    async def complete(self, token: str, result: Any = None) -> None:
        """End an attempt well, with its result. Arguments and errors as `Client.complete`."""
        await run_async(self.server, claims.complete(self.settings, token, result))

    async def fail(
        self, token: str, error: BaseException | str, *, retry: bool = True, delay: Duration | None = None
    ) -> str:
        """End an attempt badly, and tell where the job went. Arguments and errors as `Client.fail`."""
        found = await run_async(self.server, claims.seen(self.settings, token))
        return await run_async(
            self.server, claims.fail(self.settings, token, error, retry=retry, delay=delay, found=found)
        )

    async def report(
        self, token: str, n: float | None = None, total: float | None = None, note: str | None = None
    ) -> None:
        """Keep how far a job is, for those who look at it. Arguments and errors as `Client.report`."""
        await run_async(self.server, claims.report(self.settings, token, n, total, note))

    async def get_claim(self, token: str) -> Lease:
        """The claim as it stands, an offer or a lease. Arguments and errors as `Client.get_claim`."""
        return await run_async(self.server, claims.by_token(self.settings, token))

    async def outstanding(self, queue: str | None = None) -> int:
        """How many jobs wait, or are offered and not started. Arguments and errors as `Client.outstanding`."""
        count = 0
        for q in await self._chosen(queue):
            count += claims.waiting(await run_async(self.server, commands.counts(q)))
            count += sum(lease.offered for lease in await self._leases(q))
        return count

    async def has_outstanding(self, attempt_key: str) -> bool:
        """Whether this attempt waits or is only offered. Arguments and errors as `Client.has_outstanding`."""
        command = claims.has_outstanding(self.settings, attempt_key)
        return command is not None and await run_async(self.server, command)

    async def lease(self, attempt_key: str) -> Lease:
        """Who holds this attempt of a job. Arguments and errors as `Client.lease`."""
        return await run_async(self.server, claims.by_key(self.settings, attempt_key))

    async def leases(self, queue: str | None = None) -> list[Lease]:
        """All leases and offers, those that end first before the others. Arguments and errors as `Client.leases`."""
        found: list[Lease] = []
        for q in await self._chosen(queue):
            found += await self._leases(q)
        return found

    async def _chosen(self, queue: str | None) -> list[QueueKeys]:
        """One queue, which must exist, or all."""
        if queue is not None:
            return [await self._there(queue)]
        names = await run_async(self.server, commands.queues(keys.cluster(self._namespace)))
        return [keys.queue(self._namespace, name) for name in names]

    async def _leases(self, q: QueueKeys) -> list[Lease]:
        found: dict[str, Lease] = {}
        offset = 0
        while True:
            page = await run_async(self.server, commands.leases(q, offset=offset, limit=claims.PAGE))
            found |= {lease.id: lease for lease in claims.leases_of(page)}
            offset += claims.PAGE
            if offset >= page.total:
                return list(found.values())

    async def _there(self, queue: str) -> QueueKeys:
        """The keys of a queue that exists: a mistyped name must not look like success."""
        q = keys.queue(self._namespace, checked_name(queue, name="queue"))
        if queue not in self._known:
            await run_async(self.server, commands.expect_queue(keys.cluster(self._namespace), queue))
        return q

    async def _remind(self, queue: str) -> None:
        """Registers a queue again, now and then: a server may have been emptied. If it fails now, the next will do."""
        if time.monotonic() - self._known[queue] > batch.REGISTER_AGAIN_S:
            self._known[queue] = time.monotonic()
            with suppress(TaskQError):
                await run_async(self.server, operations.register(self._namespace, queue), deadline_s=1.0)
